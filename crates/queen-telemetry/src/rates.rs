//! The numbers of the JSON metrics route.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::catalogue::names;

/// What the caller knows of its connection pool.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatabaseNumbers {
    /// Configured size.
    pub pool_size: usize,
    /// Open and unused.
    pub idle: usize,
    /// Waiting for a connection.
    pub waiting: usize,
}

/// Shortest window that a rate is taken over; a faster reader gets the rate of the window before.
const WINDOW: Duration = Duration::from_secs(1);

/// Totals over all operations, fed by the recorder, and their rates.
#[derive(Debug)]
pub(crate) struct Totals {
    requests: AtomicU64,
    messages: AtomicU64,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    requests: u64,
    messages: u64,
    rates: Rates,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Rates {
    requests: f64,
    messages: f64,
}

/// Which total a counter belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    Requests,
    Messages,
}

impl Total {
    pub(crate) fn of(name: &str) -> Option<Total> {
        match name {
            names::PROCESS_PUSH_REQUESTS_TOTAL
            | names::PROCESS_POP_REQUESTS_TOTAL
            | names::PROCESS_ACK_REQUESTS_TOTAL => Some(Total::Requests),
            names::PROCESS_PUSH_MESSAGES_TOTAL
            | names::PROCESS_POP_MESSAGES_TOTAL
            | names::PROCESS_ACK_MESSAGES_TOTAL => Some(Total::Messages),
            _ => None,
        }
    }
}

impl Totals {
    pub(crate) fn new(now: Instant) -> Totals {
        Totals {
            requests: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            window: Mutex::new(Window { began: now, requests: 0, messages: 0, rates: Rates::default() }),
        }
    }

    pub(crate) fn add(&self, which: Total, value: u64) {
        match which {
            Total::Requests => self.requests.fetch_add(value, Ordering::Relaxed),
            Total::Messages => self.messages.fetch_add(value, Ordering::Relaxed),
        };
    }

    fn read(&self, now: Instant) -> (u64, u64, Rates) {
        let requests = self.requests.load(Ordering::Relaxed);
        let messages = self.messages.load(Ordering::Relaxed);
        let mut window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let elapsed = now.saturating_duration_since(window.began);
        if elapsed >= WINDOW {
            let per_second = |grown: u64| (grown as f64 / elapsed.as_secs_f64() * 100.0).round() / 100.0;
            let rates = Rates {
                requests: per_second(requests.saturating_sub(window.requests)),
                messages: per_second(messages.saturating_sub(window.messages)),
            };
            *window = Window { began: now, requests, messages, rates };
        }
        (requests, messages, window.rates)
    }

    /// The body of `GET /metrics`: keys and types of the public route, the heap keys always 0.
    pub(crate) fn json(&self, now: Instant, uptime: Duration, database: DatabaseNumbers) -> String {
        let (requests, messages, rates) = self.read(now);
        let rss = crate::process::resident_bytes().unwrap_or(0);
        let (user, system) = crate::process::cpu_micros().unwrap_or((0, 0));
        format!(
            concat!(
                r#"{{"uptime":{uptime},"requests":{{"total":{requests},"rate":{request_rate}}},"#,
                r#""messages":{{"total":{messages},"rate":{message_rate}}},"#,
                r#""database":{{"poolSize":{size},"idleConnections":{idle},"waitingRequests":{waiting}}},"#,
                r#""memory":{{"rss":{rss},"heapTotal":0,"heapUsed":0,"external":0,"arrayBuffers":0}},"#,
                r#""cpu":{{"user":{user},"system":{system}}}}}"#
            ),
            uptime = uptime.as_secs(),
            requests = requests,
            request_rate = rates.requests,
            messages = messages,
            message_rate = rates.messages,
            size = database.pool_size,
            idle = database.idle,
            waiting = database.waiting,
            rss = rss,
            user = user,
            system = system,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_covers_the_window_since_the_last_reading() {
        let start = Instant::now();
        let totals = Totals::new(start);
        totals.add(Total::Requests, 10);
        totals.add(Total::Messages, 40);
        let at = |s: f64| start + Duration::from_secs_f64(s);
        assert_eq!(totals.read(at(0.5)), (10, 40, Rates::default()));
        assert_eq!(totals.read(at(4.0)), (10, 40, Rates { requests: 2.5, messages: 10.0 }));
        totals.add(Total::Requests, 6);
        assert_eq!(totals.read(at(4.5)).2, Rates { requests: 2.5, messages: 10.0 });
        assert_eq!(totals.read(at(6.0)), (16, 40, Rates { requests: 3.0, messages: 0.0 }));
    }

    #[test]
    fn the_body_has_the_public_keys() {
        let totals = Totals::new(Instant::now());
        totals.add(Total::Messages, 3);
        let database = DatabaseNumbers { pool_size: 160, idle: 30, waiting: 1 };
        let body = totals.json(Instant::now(), Duration::from_secs(8412), database);
        assert!(
            body.starts_with(
                r#"{"uptime":8412,"requests":{"total":0,"rate":0},"messages":{"total":3,"rate":0},"database":{"poolSize":160,"idleConnections":30,"waitingRequests":1},"memory":{"rss":"#
            ),
            "{body}"
        );
        assert!(body.contains(r#""heapTotal":0,"heapUsed":0,"external":0,"arrayBuffers":0},"cpu":{"user":"#));
        assert!(body.ends_with("}}"));
    }
}
