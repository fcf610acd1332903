//! Errors to answers.

use hyper::StatusCode;
use queen_core::Error;
use queen_types::{FailureClass, NameError};
use queen_wire::{BodyError, QueryError, error_body};

/// An answer that is an error: status and JSON body.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
    /// Sent as `Retry-After`, in seconds.
    pub(crate) retry_after: Option<u16>,
}

impl ApiError {
    /// `{"error":…}` with a status.
    pub(crate) fn new(status: StatusCode, text: &str) -> ApiError {
        ApiError::with_body(status, error_body(text))
    }

    /// A body of its own shape.
    pub(crate) fn with_body(status: StatusCode, body: Vec<u8>) -> ApiError {
        ApiError { status, body, retry_after: None }
    }

    /// 503 that asks the client to come again in a second: nothing was done, because too much is under way.
    pub(crate) fn overloaded(text: &str) -> ApiError {
        ApiError { retry_after: Some(1), ..ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text) }
    }

    /// 400.
    pub(crate) fn bad_request(text: &str) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, text)
    }

    /// The answer to a failed broker call. `prefix` names the call where the failure is a statement's.
    pub(crate) fn core(prefix: &str, error: Error) -> ApiError {
        match error {
            // The reason is the operator's business and in the log of whoever failed; clients know this one word.
            Error::Pool(_) => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "pool"),
            Error::Overloaded(text) => ApiError::overloaded(&text),
            Error::Statement { class, sqlstate, message } => ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                &format!("{prefix}: {}", statement(class, sqlstate.as_deref(), &message)),
            ),
            Error::BadInput(text) => ApiError::bad_request(&text),
            Error::Refused(text) => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, &text),
        }
    }
}

/// A failed statement in words: what the database said, its code, and whether trying again makes sense.
pub(crate) fn statement(class: FailureClass, sqlstate: Option<&str>, message: &str) -> String {
    let class = match class {
        FailureClass::Transient => "transient",
        FailureClass::Config => "configuration",
        FailureClass::Permanent => "permanent",
    };
    match sqlstate {
        Some(code) => format!("{message} (SQLSTATE {code}, {class})"),
        None => format!("{message} ({class})"),
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        ApiError::bad_request(&error.to_string())
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        ApiError::bad_request(&error.to_string())
    }
}

impl From<NameError> for ApiError {
    fn from(error: NameError) -> Self {
        ApiError::bad_request(&error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: Error, status: u16, body: &str) {
        let answer = ApiError::core("pop failed", error);
        assert_eq!(
            (answer.status.as_u16(), String::from_utf8(answer.body).unwrap()),
            (status, body.to_owned())
        );
    }

    #[test]
    fn broker_errors() {
        check(Error::Pool("refused".to_owned()), 500, r#"{"error":"pool"}"#);
        check(
            Error::Statement {
                class: FailureClass::Transient,
                sqlstate: Some("40P01".to_owned()),
                message: "deadlock detected".to_owned(),
            },
            500,
            r#"{"error":"pop failed: deadlock detected (SQLSTATE 40P01, transient)"}"#,
        );
        check(Error::BadInput("no".to_owned()), 400, r#"{"error":"no"}"#);
        check(Error::Overloaded("no push slot".to_owned()), 503, r#"{"error":"no push slot"}"#);
        let answer =
            crate::reply::Answer::from(ApiError::core("pop failed", Error::Overloaded(String::new())));
        assert_eq!(answer.headers()["retry-after"], "1");
        check(Error::Refused("no key".to_owned()), 422, r#"{"error":"no key"}"#);
    }
}
