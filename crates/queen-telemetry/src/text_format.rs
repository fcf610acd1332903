//! The text form of an event: one line, whatever its values hold.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// `time LEVEL span{fields}: target: message key=value`.
pub(crate) struct TextLine;

impl<S, N> FormatEvent<S, N> for TextLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        let metadata = event.metadata();
        write!(writer, " {:>5} ", metadata.level().as_str())?;
        for span in ctx.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            match extensions.get::<FormattedFields<N>>().filter(|fields| !fields.is_empty()) {
                Some(fields) => write!(writer, "{}{{{fields}}}: ", span.name())?,
                None => write!(writer, "{}: ", span.name())?,
            }
        }
        write!(writer, "{}: ", metadata.target())?;
        ctx.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Fields as `message key=value`, with everything escaped that is not printable. Values that hold spaces or quotes
/// are quoted.
pub(crate) struct EscapedFields;

impl<'w> FormatFields<'w> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut visitor = Fields { writer, first: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct Fields<'w> {
    writer: Writer<'w>,
    first: bool,
    result: fmt::Result,
}

impl Fields<'_> {
    fn value(&mut self, field: &Field, value: &str) {
        if self.result.is_ok() {
            self.result = self.write(field.name(), value);
        }
    }

    fn write(&mut self, name: &str, value: &str) -> fmt::Result {
        if !std::mem::take(&mut self.first) {
            self.writer.write_char(' ')?;
        }
        if name == "message" {
            return escape(&mut self.writer, value, false);
        }
        write!(self.writer, "{}=", name.trim_start_matches("r#"))?;
        let bare = !value.is_empty() && !value.chars().any(|c| c.is_whitespace() || needs_escape(c, true));
        if bare {
            return self.writer.write_str(value);
        }
        self.writer.write_char('"')?;
        escape(&mut self.writer, value, true)?;
        self.writer.write_char('"')
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.value(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.value(field, &format!("{value:?}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(cause) = source {
            let _ = write!(text, ": {cause}");
            source = cause.source();
        }
        self.value(field, &text);
    }
}

fn escape(out: &mut Writer<'_>, text: &str, quoted: bool) -> fmt::Result {
    for c in text.chars() {
        if needs_escape(c, quoted) {
            write!(out, "{}", c.escape_debug())?;
        } else {
            out.write_char(c)?;
        }
    }
    Ok(())
}

/// Control characters, and the separators that some viewers take for an end of line; in a quoted value also what ends
/// it.
fn needs_escape(c: char, quoted: bool) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || quoted && matches!(c, '"' | '\\')
}
