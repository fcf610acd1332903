//! One request: cap, route, handler, answer.

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt;
use hyper::body::Body;
use hyper::http::request::Parts;
use hyper::service::Service;
use hyper::{Request, StatusCode};
use queen_core::Broker;

use crate::app::App;
use crate::body::{self, BodyFailure};
use crate::context::RequestContext;
use crate::error::ApiError;
use crate::options::HttpOptions;
use crate::reply::{self, Answer};
use crate::router::{Found, ROUTES, find};
use crate::routes::{self, Call};

/// All routes as one service, for a hyper server of this crate or of a host.
///
/// A call whose future is dropped, as hyper does when the client has gone, drops the broker call inside it; a pop
/// that had claimed by then gives its leases back.
#[derive(Clone)]
pub struct Router {
    pub(crate) app: Arc<App>,
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router").field("options", &self.app.options).finish_non_exhaustive()
    }
}

/// Makes the service over a broker. The listener options of `options` are without effect here.
pub fn router(broker: Broker, options: HttpOptions) -> Router {
    Router { app: Arc::new(App::new(broker, options)) }
}

impl<B> Service<Request<B>> for Router
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display + Send,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        let app = self.app.clone();
        Box::pin(async move { Ok(answer(&app, request).await) })
    }
}

/// Routes a request and answers it; a panic on the way is a 500 of this request alone.
async fn answer<B>(app: &App, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let found = find(&parts.method, parts.uri.path());
    let route = if let Found::Route(index, _) = &found { Some(*index) } else { None };
    let handled = AssertUnwindSafe(handle(app, &parts, body, found)).catch_unwind().await;
    let answer = handled.unwrap_or_else(|_| {
        metrics::counter!("queen_panics_total", "where" => "request").increment(1);
        reply::json(StatusCode::INTERNAL_SERVER_ERROR, queen_wire::error_body("internal"))
    });
    if let Some(route) = route {
        app.stats.answered(route, answer.status(), started.elapsed());
    }
    tracing::debug!(
        target: "http",
        method = parts.method.as_str(),
        route = route.map_or("-", |r| ROUTES[r].pattern),
        status = answer.status().as_u16(),
        duration_ms = started.elapsed().as_secs_f64() * 1e3,
        "request",
    );
    answer
}

/// The order of checks is part of the contract: the body cap comes before the route.
async fn handle<B>(app: &App, parts: &Parts, body: B, found: Found) -> Answer
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let context = RequestContext::open();
    let max = app.options.max_body_bytes;
    let declared_too_large = body::declared(&parts.headers).is_some_and(|n| n > max);
    let (route, params) = match found {
        Found::Route(index, params) => (&ROUTES[index], params),
        _ if declared_too_large => return refuse_body(parts, body, max).await,
        // A body left unread would make the connection close under a client that reuses it.
        refused => return refuse_route(refused, body::read(&parts.headers, body, max).await, max),
    };
    let body = match body::read(&parts.headers, body, max).await {
        Ok(body) => body,
        Err(failure) => return body_failure(failure, max),
    };
    let call = Call { context, params, query: parts.uri.query(), body };
    match routes::dispatch(app, route.endpoint, call).await {
        Ok(answer) => answer,
        Err(error) => error.into(),
    }
}

/// Answers a request that no handler takes, its body read.
fn refuse_route(found: Found, body: Result<Bytes, BodyFailure>, max: usize) -> Answer {
    if let Err(failure) = body {
        return body_failure(failure, max);
    }
    match found {
        Found::Route(..) | Found::NoSuchRoute => reply::no_such_route(),
        Found::MethodNotAllowed(allow) => reply::method_not_allowed(&allow),
        Found::NotUtf8(name) => {
            reply::text(StatusCode::BAD_REQUEST, format!("Invalid URL: invalid UTF-8 in `{name}`"))
        }
    }
}

/// Reads an oversized body away and refuses it.
async fn refuse_body<B>(parts: &Parts, body: B, max: usize) -> Answer
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let failure = body::read(&parts.headers, body, max).await.err().unwrap_or(BodyFailure::TooLarge);
    body_failure(failure, max)
}

fn body_failure(failure: BodyFailure, max: usize) -> Answer {
    match failure {
        BodyFailure::TooLarge => ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("Failed to buffer the request body: length limit exceeded ({max} bytes)"),
        ),
        BodyFailure::Broken(text) => ApiError::bad_request(&format!("bad body: {text}")),
    }
    .into()
}
