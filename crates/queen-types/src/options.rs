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

macro_rules! queue_options {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// Everything `/configure` can set on a queue. Field names are the columns of `queen.queues`; [`Default`] is
        /// what a queue created by `/configure` starts from.
        #[derive(Debug, Clone, PartialEq)]
        pub struct QueueOptions {
            $($(#[$doc])* pub $field: $type,)*
        }

        /// A change of some options: what is `None` is not touched.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct OptionsEdit {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        impl OptionsEdit {
            /// Sets what the edit names.
            pub fn apply(&self, options: &mut QueueOptions) {
                $(if let Some(value) = &self.$field {
                    options.$field = value.clone();
                })*
            }
        }
    };
}

queue_options! {
    /// First discovery key.
    namespace: Namespace,
    /// Second discovery key.
    task: Task,
    /// Lease of a pop that names none, seconds.
    lease_time: i32,
    /// Redeliveries after failed acks before a message is dead-lettered.
    retry_limit: i32,
    /// First retry delay, milliseconds; effective with `retry_backoff`.
    retry_delay: i32,
    /// Stored and echoed only.
    priority: i32,
    /// Stored and echoed only (`maxSize`).
    max_queue_size: i32,
    /// Stored and echoed only, seconds.
    ttl: i32,
    /// Dead-lettering on, combined by OR with the next.
    dead_letter_queue: bool,
    /// Dead-lettering on.
    dlq_after_max_retries: bool,
    /// A message is invisible for so long after its append, seconds.
    delayed_processing: i32,
    /// A partition is withheld until it has been quiet so long, seconds.
    window_buffer: i32,
    /// An under-full long poll may wait so long to fatten, milliseconds, 0..60000.
    min_pop_wait_time: i32,
    /// Deduplication window, seconds; 0 switches it off.
    dedup_window_seconds: i32,
    /// Gate of the next two.
    retention_enabled: bool,
    /// Older segments are deleted, consumed or not, seconds; 0 keeps.
    retention_seconds: i32,
    /// Older and consumed segments are deleted, seconds; 0 keeps.
    completed_retention_seconds: i32,
    /// Older segments are deleted whatever, seconds; 0 keeps.
    max_wait_time_seconds: i32,
    /// Payloads are stored encrypted.
    encryption_enabled: bool,
    /// Whether failed acks delay the redelivery.
    retry_backoff: RetryBackoff,
    /// Ceiling of the retry delay, milliseconds.
    retry_delay_max: i32,
    /// Random share added to the delay, 0..1.
    retry_jitter: f32,
    /// A head message delivered more often is dead-lettered; 0 is off.
    max_delivery_attempts: i32,
    /// Unmentioned messages below a dead letter are redelivered instead of passed.
    redeliver_skipped: bool,
    /// A cursor idle so long stops pinning retention, seconds; 0 is off.
    group_expiry_seconds: i32,
    /// Retention spares leased segments.
    protect_leased: bool,
    /// Dead letters older are swept, seconds; 0 keeps.
    dlq_retention_seconds: i32,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_touches_only_what_it_names() {
        let mut options = QueueOptions { retry_limit: 9, ..QueueOptions::default() };
        let edit = OptionsEdit { lease_time: Some(7), ..OptionsEdit::default() };
        edit.apply(&mut options);
        assert_eq!(options, QueueOptions { lease_time: 7, retry_limit: 9, ..QueueOptions::default() });
    }
}
