//! Where events of `tracing` go: stdout, one line each.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::text_format::{EscapedFields, TextLine};

/// How events are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// A level (`info`) or directives (`info,spool=debug`).
    pub filter: String,
    /// One flat JSON object per line instead of text.
    pub json: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions { filter: "info".to_owned(), json: false }
    }
}

/// A filter that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{reason}; allowed: a level (off, error, warn, info, debug, trace) or directives, e.g. info,spool=debug"
)]
pub struct FilterError {
    reason: String,
}

/// Why tracing could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The filter cannot be understood.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// This process has a subscriber already.
    #[error("another tracing subscriber is installed in this process")]
    Taken,
}

/// Sends the events of this process to stdout: RFC 3339 time in UTC, level, target, message, fields; no ANSI codes;
/// whatever is not printable in a value is escaped, so that no value can forge a line. Panics become events too.
///
/// # Errors
/// [`InitError::Filter`] on a bad filter, [`InitError::Taken`] when there is a subscriber already.
pub fn init_tracing(options: &LogOptions) -> Result<(), InitError> {
    let subscriber = subscriber(options, io::stdout)?;
    subscriber.try_init().map_err(|_| InitError::Taken)?;
    crate::install_panic_hook();
    Ok(())
}

/// Checks a filter without installing anything.
///
/// # Errors
/// [`FilterError`] says what cannot be understood.
pub fn check_filter(filter: &str) -> Result<(), FilterError> {
    parse_filter(filter).map(drop)
}

fn parse_filter(filter: &str) -> Result<EnvFilter, FilterError> {
    if filter.trim().is_empty() {
        return Err(FilterError { reason: "an empty filter".to_owned() });
    }
    // A lone word that is no level would be read as the name of a target, at its finest level: never what a mistyped
    // level was meant to say.
    for word in filter.split(',').map(str::trim) {
        let lone = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric());
        if lone && word.parse::<LevelFilter>().is_err() {
            return Err(FilterError { reason: format!("{word:?} is not a level") });
        }
    }
    EnvFilter::builder().parse(filter).map_err(|e| FilterError { reason: e.to_string() })
}

fn subscriber<W>(options: &LogOptions, writer: W) -> Result<Box<dyn Subscriber + Send + Sync>, FilterError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let registry = tracing_subscriber::registry().with(parse_filter(&options.filter)?);
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
    if options.json {
        // Spans are objects inside the object; flat means without them.
        let json = layer.json().flatten_event(true).with_current_span(false).with_span_list(false);
        Ok(Box::new(registry.with(json)))
    } else {
        Ok(Box::new(registry.with(layer.fmt_fields(EscapedFields).event_format(TextLine))))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn capture(filter: &str, json: bool, emit: impl FnOnce()) -> Vec<String> {
        let sink = Sink::default();
        let writer = sink.clone();
        let options = LogOptions { filter: filter.to_owned(), json };
        tracing::subscriber::with_default(subscriber(&options, move || writer.clone()).unwrap(), emit);
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_text_line_has_time_level_target_message_and_fields() {
        let lines = capture("info", false, || {
            tracing::info!(target: "boot", port = 6632, host = "a b", plain = "x", "listening");
            tracing::debug!(target: "boot", "not this one");
        });
        assert_eq!(lines.len(), 1);
        let (time, rest) = lines[0].split_once(' ').unwrap();
        assert!(time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
        assert_eq!(rest, r#" INFO boot: listening port=6632 host="a b" plain=x"#);
    }

    #[test]
    fn no_value_forges_a_line() {
        let evil = "q\n2031-01-01T00:00:00Z ERROR boot: \u{1b}[31mforged\u{85}\u{2028}";
        let lines = capture("info", false, || {
            let span = tracing::info_span!("queen.pop", queue = %evil);
            let _in = span.enter();
            tracing::warn!(target: "db", queue = %evil, debug = ?evil, "failed for {evil}");
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(!lines[0].chars().any(|c| c.is_control() || c == '\u{2028}'), "{lines:?}");
        assert!(lines[0].contains(r"failed for q\n2031"), "{lines:?}");
        assert!(lines[0].contains(r#"queen.pop{queue="q\n2031"#), "{lines:?}");
    }

    #[test]
    fn json_is_one_flat_object_per_line() {
        let lines = capture("info", true, || {
            let span = tracing::info_span!("queen.pop", queue = "q");
            let _in = span.enter();
            tracing::info!(target: "boot", port = 6632, host = "a\nb", "listening");
        });
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with(r#"{"timestamp":"2"#), "{lines:?}");
        let rest = r#""level":"INFO","message":"listening","port":6632,"host":"a\nb","target":"boot"}"#;
        assert!(lines[0].ends_with(rest), "{lines:?}");
    }

    #[test]
    fn filters() {
        for ok in
            ["info", "WARN", "off", "info,spool=debug", "info,queen_core::pop=trace", "queen_core::pop", "3"]
        {
            assert_eq!(check_filter(ok), Ok(()), "{ok}");
        }
        for bad in ["", " ", "debg", "info,spool=loud", "information", "a=b=c"] {
            assert!(check_filter(bad).is_err(), "{bad}");
        }
        assert_eq!(
            check_filter("debg").unwrap_err().to_string(),
            "\"debg\" is not a level; allowed: a level (off, error, warn, info, debug, trace) or directives, e.g. \
             info,spool=debug"
        );
    }

    #[test]
    fn directives_choose_by_target() {
        let lines = capture("warn,spool=debug", false, || {
            tracing::info!(target: "boot", "no");
            tracing::debug!(target: "spool", "yes");
        });
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("DEBUG spool: yes"), "{lines:?}");
    }

    #[test]
    fn a_panic_is_one_event() {
        let lines = capture("info", false, || {
            let before = std::panic::take_hook();
            crate::install_panic_hook();
            let caught = std::panic::catch_unwind(|| panic!("line one\nline two"));
            std::panic::set_hook(before);
            assert!(caught.is_err());
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].contains(r"ERROR panic: panicked: line one\nline two event=panic location="),
            "{lines:?}"
        );
        assert!(lines[0].contains("src/logging.rs:"), "{lines:?}");
        assert!(lines[0].contains(" thread="), "{lines:?}");
    }
}
