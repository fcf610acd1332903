//! What this broker counted since its last row of metrics, in all and by queue.

use std::collections::HashMap;

use parking_lot::Mutex;
use queen_storage::metrics::{Lag, QueueCounts, WorkerCounts};
use queen_types::{QueueName, TenantId, Timestamp};

use crate::api::{AckResult, PopAnswer};

/// Queues that are counted apart between two rows; what is beyond counts in all alone.
const QUEUES_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct Tally {
    state: Mutex<State>,
}

/// Everything between two rows.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) worker: WorkerCounts,
    pub(crate) queues: HashMap<(TenantId, QueueName), QueueCounts>,
}

impl State {
    fn queue(&mut self, tenant: TenantId, queue: &QueueName) -> Option<&mut QueueCounts> {
        let key = (tenant, queue.clone());
        if self.queues.len() >= QUEUES_MAX && !self.queues.contains_key(&key) {
            return None;
        }
        Some(self.queues.entry(key).or_default())
    }
}

impl Tally {
    /// A push call with items for these queues, in runs.
    pub(crate) fn push_request<'a>(&self, tenant: TenantId, queues: impl Iterator<Item = &'a QueueName>) {
        let mut state = self.state.lock();
        state.worker.push_requests += 1;
        let mut last: Option<&QueueName> = None;
        for name in queues {
            if last != Some(name)
                && let Some(queue) = state.queue(tenant, name)
            {
                queue.push_requests += 1;
            }
            last = Some(name);
        }
    }

    /// Messages that were stored in a queue.
    pub(crate) fn stored(&self, tenant: TenantId, queue: &QueueName, messages: usize) {
        let mut state = self.state.lock();
        let messages = count(messages);
        state.worker.push_messages += messages;
        if let Some(queue) = state.queue(tenant, queue) {
            queue.push_messages += messages;
        }
    }

    /// A pop was answered; without a queue for a pop over several.
    pub(crate) fn popped(&self, tenant: TenantId, queue: Option<&QueueName>, answer: &PopAnswer) {
        let now = now();
        let mut lag = Lag::default();
        for (at, _) in answer.partitions.iter().flat_map(|p| &p.messages) {
            lag.add((now.0 - at.0).max(0) / 1_000);
        }
        let mut state = self.state.lock();
        state.worker.pop_requests += 1;
        state.worker.pop_messages += lag.count;
        state.worker.lag.merge(lag);
        if let Some(counts) = queue.and_then(|queue| state.queue(tenant, queue)) {
            counts.pop_messages += lag.count;
            counts.pop_empty += i64::from(lag.count == 0);
            counts.lag.merge(lag);
        }
    }

    /// An ack call was answered.
    pub(crate) fn acked(&self, results: &[AckResult]) {
        let done = results.iter().filter(|result| result.success).count();
        let dead = results.iter().filter(|result| result.dlq).count();
        let mut state = self.state.lock();
        state.worker.ack_requests += 1;
        state.worker.ack_messages += count(results.len());
        state.worker.ack_success += count(done);
        state.worker.ack_failed += count(results.len() - done);
        state.worker.dead_letters += count(dead);
    }

    /// Items of a queue were settled.
    pub(crate) fn settled(&self, tenant: TenantId, queue: &QueueName, done: usize, failed: usize) {
        if let Some(queue) = self.state.lock().queue(tenant, queue) {
            queue.ack_requests += 1;
            queue.ack_success += count(done);
            queue.ack_failed += count(failed);
        }
    }

    /// A transaction was committed that pushed to these queues.
    pub(crate) fn transaction<'a>(&self, tenant: TenantId, queues: impl Iterator<Item = &'a QueueName>) {
        let mut state = self.state.lock();
        state.worker.transactions += 1;
        for queue in queues {
            if let Some(queue) = state.queue(tenant, queue) {
                queue.transactions += 1;
            }
        }
    }

    /// The database did not do what it was asked.
    pub(crate) fn failed(&self) {
        self.state.lock().worker.db_errors += 1;
    }

    /// Partitions of a queue were deleted.
    pub(crate) fn partition_deleted(&self, tenant: TenantId, queue: &QueueName) {
        if let Some(queue) = self.state.lock().queue(tenant, queue) {
            queue.partitions_deleted += 1;
        }
    }

    /// Takes what was counted.
    pub(crate) fn take(&self) -> State {
        std::mem::take(&mut *self.state.lock())
    }
}

/// This broker's clock.
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
