//! Panics as log events.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

/// Replaces the panic hook by one that logs a single ERROR on target `panic` with text, location and thread, and the
/// backtrace when `RUST_BACKTRACE` asks for it. What happens after the hook (unwinding, catching) is not changed.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(log));
}

fn log(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    let current = std::thread::current();
    let thread = current.name().unwrap_or("unnamed");
    let payload = info.payload();
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "a payload that is not text",
    };
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        tracing::error!(target: "panic", event = "panic", location, thread, %backtrace, "panicked: {text}");
    } else {
        tracing::error!(target: "panic", event = "panic", location, thread, "panicked: {text}");
    }
}
