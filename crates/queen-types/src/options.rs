//! Options of a queue, with their defaults and ranges.

use crate::{Namespace, Task};

/// How long a partition waits for its group after a failed ack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RetryBackoff {
    /// Not at all.
    #[default]
    None,
    /// Always `retry_delay`.
    Fixed,
    /// `retry_delay`, doubled with every further retry.
    Exponential,
}

impl RetryBackoff {
    /// The word on the wire and in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            RetryBackoff::None => "none",
            RetryBackoff::Fixed => "fixed",
            RetryBackoff::Exponential => "exponential",
        }
    }

    /// Reads the wire word.
    pub fn parse(word: &str) -> Option<RetryBackoff> {
        match word {
            "none" => Some(RetryBackoff::None),
            "fixed" => Some(RetryBackoff::Fixed),
            "exponential" => Some(RetryBackoff::Exponential),
            _ => None,
        }
    }
}

/// Everything `/configure` can set on a queue. Field names are the columns of `queen.queues`; [`Default`] is what a
/// queue created by `/configure` starts from.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueOptions {
    /// First discovery key.
    pub namespace: Namespace,
    /// Second discovery key.
    pub task: Task,
    /// Lease of a pop that names none, seconds.
    pub lease_time: i32,
    /// Redeliveries after failed acks before a message is dead-lettered.
    pub retry_limit: i32,
    /// First retry delay, milliseconds; effective with `retry_backoff`.
    pub retry_delay: i32,
    /// Stored and echoed only.
    pub priority: i32,
    /// Stored and echoed only (`maxSize`).
    pub max_queue_size: i32,
    /// Stored and echoed only, seconds.
    pub ttl: i32,
    /// Dead-lettering on, combined by OR with the next.
    pub dead_letter_queue: bool,
    /// Dead-lettering on.
    pub dlq_after_max_retries: bool,
    /// A message is invisible for so long after its append, seconds.
    pub delayed_processing: i32,
    /// A partition is withheld until it has been quiet so long, seconds.
    pub window_buffer: i32,
    /// An under-full long poll may wait so long to fatten, milliseconds, 0..60000.
    pub min_pop_wait_time: i32,
    /// Deduplication window, seconds; 0 switches it off.
    pub dedup_window_seconds: i32,
    /// Gate of the next two.
    pub retention_enabled: bool,
    /// Older segments are deleted, consumed or not, seconds; 0 keeps.
    pub retention_seconds: i32,
    /// Older and consumed segments are deleted, seconds; 0 keeps.
    pub completed_retention_seconds: i32,
    /// Older segments are deleted whatever, seconds; 0 keeps.
    pub max_wait_time_seconds: i32,
    /// Payloads are stored encrypted.
    pub encryption_enabled: bool,
    /// Whether failed acks delay the redelivery.
    pub retry_backoff: RetryBackoff,
    /// Ceiling of the retry delay, milliseconds.
    pub retry_delay_max: i32,
    /// Random share added to the delay, 0..1.
    pub retry_jitter: f32,
    /// A head message delivered more often is dead-lettered; 0 is off.
    pub max_delivery_attempts: i32,
    /// Unmentioned messages below a dead letter are redelivered instead of passed.
    pub redeliver_skipped: bool,
    /// A cursor idle so long stops pinning retention, seconds; 0 is off.
    pub group_expiry_seconds: i32,
    /// Retention spares leased segments.
    pub protect_leased: bool,
    /// Dead letters older are swept, seconds; 0 keeps.
    pub dlq_retention_seconds: i32,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions {
            namespace: Namespace::new("").expect("the empty namespace is valid"),
            task: Task::new("").expect("the empty task is valid"),
            lease_time: 300,
            retry_limit: 3,
            retry_delay: 1000,
            priority: 0,
            max_queue_size: 0,
            ttl: 3600,
            dead_letter_queue: true,
            dlq_after_max_retries: true,
            delayed_processing: 0,
            window_buffer: 0,
            min_pop_wait_time: 0,
            dedup_window_seconds: 3600,
            retention_enabled: false,
            retention_seconds: 0,
            completed_retention_seconds: 0,
            max_wait_time_seconds: 0,
            encryption_enabled: false,
            retry_backoff: RetryBackoff::None,
            retry_delay_max: 60_000,
            retry_jitter: 0.0,
            max_delivery_attempts: 0,
            redeliver_skipped: false,
            group_expiry_seconds: 0,
            protect_leased: false,
            dlq_retention_seconds: 0,
        }
    }
}

impl QueueOptions {
    /// Lease of a queue born by a push or a subscription, seconds; such a queue has the column defaults.
    pub const IMPLICIT_LEASE_TIME: i32 = 60;
}
