//! Error bodies.

use crate::json;

/// `{"error":…}`.
pub fn error_body(error: &str) -> Vec<u8> {
    json::object(|o| {
        o.str("error", error);
    })
}

/// `{"error":…,"code":…}`.
pub fn error_with_code(error: &str, code: &str) -> Vec<u8> {
    json::object(|o| {
        o.str("error", error).str("code", code);
    })
}

/// The refusal of a pop that says nowhere to look: an answer in the shape of a pop.
pub fn pop_refusal(error: &str) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", false).str("error", error).raw("messages", "[]");
    })
}
