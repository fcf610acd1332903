//! The parameters that the status and analytics routes share.

use queen_types::{Namespace, QueueName, Task, Timestamp};

use crate::query::{Query, QueryError};

const MINUTE: i64 = 60_000_000;

/// Which span of time, and whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusQuery {
    /// From, inclusive.
    pub from: Timestamp,
    /// To, inclusive; not before `from`.
    pub to: Timestamp,
    /// Length of a bucket: the longer the span, the longer.
    pub bucket_minutes: i64,
    /// Only this queue.
    pub queue: Option<QueueName>,
    /// Only of this namespace.
    pub namespace: Option<Namespace>,
    /// Only of this task.
    pub task: Option<Task>,
    /// Only of this broker.
    pub hostname: Option<String>,
    /// Only of this worker.
    pub worker: Option<i32>,
    /// Page size.
    pub limit: i64,
    /// Entries to skip.
    pub offset: i64,
    /// `minute`, `hour`, `day`, or whatever was given.
    pub interval: String,
}

impl StatusQuery {
    /// Reads what follows the `?`; without `from` and `to` the last `minutes` up to `now`.
    ///
    /// # Errors
    /// A time, a name or a worker that cannot be read; `to` before `from`.
    pub fn parse(raw: Option<&str>, now: Timestamp, minutes: i64) -> Result<StatusQuery, QueryError> {
        let query = Query::parse(raw)?;
        let time = |key: &str| match query.lenient(key) {
            None => Ok(None),
            Some(text) => Timestamp::parse(text)
                .map(Some)
                .map_err(|_| QueryError::value(key, text, "an ISO 8601 time such as 2031-04-05T06:07:08Z")),
        };
        let to = time("to")?.unwrap_or(now);
        let from = time("from")?.unwrap_or(Timestamp(to.0.saturating_sub(minutes * MINUTE)));
        if to < from {
            return Err(QueryError::text(format!(
                "to must not be before from, got from {} and to {}",
                from.millis_text(),
                to.millis_text()
            )));
        }
        let worker = match query.lenient("workerId") {
            None => None,
            Some(text) => {
                Some(text.parse().map_err(|_| QueryError::value("workerId", text, "a whole number"))?)
            }
        };
        Ok(StatusQuery {
            from,
            to,
            bucket_minutes: bucket_minutes((to.0.saturating_sub(from.0)) / MINUTE),
            queue: query.lenient_name("queue", QueueName::new)?,
            namespace: query.lenient_name("namespace", Namespace::new)?,
            task: query.lenient_name("task", Task::new)?,
            hostname: query.lenient("hostname").map(str::to_owned),
            worker,
            limit: query.lenient_page("limit", 100),
            offset: query.lenient_page("offset", 0),
            interval: query.lenient("interval").unwrap_or("hour").to_owned(),
        })
    }

    /// Minutes of a point of [`StatusQuery::interval`].
    pub fn interval_minutes(&self) -> i64 {
        match self.interval.as_str() {
            "minute" => 1,
            "day" => 1_440,
            _ => 60,
        }
    }
}

fn bucket_minutes(span: i64) -> i64 {
    match span {
        ..=60 => 1,
        61..=360 => 5,
        361..=1_440 => 15,
        1_441..=10_080 => 60,
        _ => 360,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_900_000_000_000_000);

    #[test]
    fn the_span_decides_the_bucket() {
        for (query, minutes) in [
            (None, 1),
            (Some("from=2030-03-17T16:46:40Z&to=2030-03-17T17:46:40Z"), 1),
            (Some("from=2030-03-17T12:00:00Z&to=2030-03-17T17:00:00Z"), 5),
            (Some("from=2030-03-17T00:00:00Z&to=2030-03-17T23:00:00Z"), 15),
            (Some("from=2030-03-12T00:00:00Z&to=2030-03-17T23:00:00Z"), 60),
            (Some("from=2030-01-12T00:00:00Z&to=2030-03-17T23:00:00Z"), 360),
        ] {
            assert_eq!(StatusQuery::parse(query, NOW, 60).unwrap().bucket_minutes, minutes, "{query:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (query, part) in [
            ("from=yesterday", "from"),
            ("to=1", "to"),
            ("from=2030-03-17T16:46:40Z&to=2030-03-16T16:46:40Z", "before from"),
            ("workerId=x", "workerId"),
        ] {
            let error = StatusQuery::parse(Some(query), NOW, 60).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(StatusQuery::parse(Some("limit=-1&offset=x&interval=day"), NOW, 60).unwrap().limit, 0);
    }
}
