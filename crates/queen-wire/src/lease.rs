//! `POST /api/v1/lease/:leaseId/extend`.

use queen_types::Timestamp;
use serde_json::Value;

use crate::body::{self, BodyError};
use crate::json;

/// Seconds of an extension that says none.
const DEFAULT: i64 = 60;

/// The seconds asked for. No body, or an object without the key, means 60; beyond 32 bits is taken as the largest.
///
/// # Errors
/// A body that is not a JSON object, or `seconds` that is not an integer of at least 1.
pub fn extend_seconds(body: &[u8]) -> Result<i64, BodyError> {
    if body.is_empty() {
        return Ok(DEFAULT);
    }
    let Value::Object(object) = serde_json::from_str(body::text(body)?)? else {
        return Err(BodyError::bad("a JSON object is expected"));
    };
    let largest = i64::from(i32::MAX);
    match object.get("seconds") {
        None => Ok(DEFAULT),
        Some(Value::Number(n)) if n.as_u64().is_some_and(|n| n >= 1) => {
            Ok(n.as_i64().unwrap_or(largest).min(largest))
        }
        Some(other) => {
            Err(BodyError::refused(format!("seconds must be an integer of at least 1, got {other}")))
        }
    }
}

/// The answer to an extension.
pub fn lease_extended(lease: &str, renewed: u32, expires_at: Option<Timestamp>) -> Vec<u8> {
    let stamp = expires_at.map(Timestamp::micros_text);
    json::object(|o| {
        o.str("leaseId", lease).bool("success", renewed > 0).int("renewed", i64::from(renewed));
        for key in ["newExpiresAt", "expiresAt", "lease_expires_at"] {
            o.opt(key, stamp.as_deref());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds() {
        for (body, want) in [
            ("", 60),
            ("{}", 60),
            (r#"{"x":1}"#, 60),
            (r#"{"seconds":1}"#, 1),
            (r#"{"seconds":99999999999}"#, 2_147_483_647),
            (r#"{"seconds":18446744073709551615}"#, 2_147_483_647),
        ] {
            assert_eq!(extend_seconds(body.as_bytes()).unwrap(), want, "{body}");
        }
        for body in [
            "{",
            "5",
            "[]",
            "null",
            r#"{"seconds":null}"#,
            r#"{"seconds":0}"#,
            r#"{"seconds":-30}"#,
            r#"{"seconds":"soon"}"#,
            r#"{"seconds":{}}"#,
            r#"{"seconds":1.5}"#,
            r#"{"seconds":1e30}"#,
        ] {
            assert!(extend_seconds(body.as_bytes()).is_err(), "{body}");
        }
    }
}
