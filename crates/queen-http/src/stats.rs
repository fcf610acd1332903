//! Requests by route and status, and how long they took.

use std::sync::OnceLock;
use std::time::Duration;

use hyper::StatusCode;
use metrics::{Counter, Histogram, counter, histogram};

use crate::router::{Endpoint, ROUTES, Route};

/// Statuses that have a series of their own from the first such answer on; others are counted as `other`.
const CODES: [&str; 11] = ["200", "201", "204", "400", "404", "405", "413", "422", "500", "503", "other"];

/// Handles of the series, resolved once: looking them up by their labels costs more than a small request's routing.
pub(crate) struct Stats {
    /// One per row of the table.
    routes: Box<[RouteStats]>,
}

impl Default for Stats {
    fn default() -> Self {
        Stats { routes: ROUTES.iter().map(|_| RouteStats::default()).collect() }
    }
}

#[derive(Default)]
struct RouteStats {
    codes: [OnceLock<Counter>; CODES.len()],
    seconds: OnceLock<Histogram>,
}

impl Stats {
    /// Counts one answer.
    pub(crate) fn answered(&self, route: usize, status: StatusCode, took: Duration) {
        let (Some(stats), Some(row)) = (self.routes.get(route), ROUTES.get(route)) else { return };
        let code = CODES.iter().position(|c| *c == status.as_str()).unwrap_or(CODES.len() - 1);
        stats.codes[code].get_or_init(|| series(row, CODES[code])).increment(1);
        // How long a pop was parked is its client's choice, so its duration says nothing.
        if !matches!(row.endpoint, Endpoint::PopDiscovery | Endpoint::PopQueue | Endpoint::PopPartition) {
            let seconds = stats.seconds.get_or_init(|| {
                histogram!("queen_http_request_duration_seconds",
                    "route" => row.pattern, "method" => row.method.as_str())
            });
            seconds.record(took.as_secs_f64());
        }
    }
}

fn series(row: &'static Route, code: &'static str) -> Counter {
    counter!("queen_http_requests_total", "route" => row.pattern, "method" => row.method.as_str(), "code" => code)
}
