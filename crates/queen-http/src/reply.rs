//! Answers as hyper responses.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use queen_wire::error_with_code;

use crate::error::ApiError;

/// Every answer is in memory as a whole.
pub type Answer = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const EXPOSITION: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

fn with(status: StatusCode, content_type: HeaderValue, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

/// JSON.
pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Answer {
    with(status, JSON, body)
}

/// 200 with JSON.
pub(crate) fn ok(body: Vec<u8>) -> Answer {
    json(StatusCode::OK, body)
}

/// 204: no body, no content type.
pub(crate) fn no_content() -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// Plain text.
pub(crate) fn text(status: StatusCode, text: String) -> Answer {
    with(status, TEXT, text.into_bytes())
}

/// The Prometheus page.
pub(crate) fn exposition(page: String) -> Answer {
    let mut answer = with(StatusCode::OK, EXPOSITION, page.into_bytes());
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// 404 of a path that no route has. Clients tell an old broker from a missing resource by this code.
pub(crate) fn no_such_route() -> Answer {
    json(StatusCode::NOT_FOUND, error_with_code("Not Found", "no_such_route"))
}

/// 405 with what would be allowed.
pub(crate) fn method_not_allowed(allow: &str) -> Answer {
    let mut answer =
        json(StatusCode::METHOD_NOT_ALLOWED, error_with_code("method not allowed", "method_not_allowed"));
    if let Ok(allow) = HeaderValue::from_str(allow) {
        answer.headers_mut().insert(ALLOW, allow);
    }
    answer
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        let mut answer = json(error.status, error.body);
        if let Some(seconds) = error.retry_after {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        answer
    }
}
