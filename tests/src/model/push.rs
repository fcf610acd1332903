//! Pushing: repeats are named, everything else goes to the end of its partition in request order.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, ensure};
use queen_core::api::{PushItem, PushResult};
use queen_types::{MessageId, Offset, PartitionName, PushStatus, QueueName};

use super::{Message, Model, Partition};

impl Partition {
    /// The stored message that a push of this key repeats: the lowest one that is young enough.
    pub(super) fn original(&self, key: &str) -> Option<MessageId> {
        let at = self.occurrences(key).find(|at| !self.messages[*at as usize].aged)?;
        Some(if at < self.log_start { MessageId::ZERO } else { self.messages[at as usize].id })
    }

    pub(super) fn append(&mut self, item: &PushItem, id: MessageId, key: &str, producer: Option<&Arc<str>>) {
        self.messages.push(Message {
            id,
            key: key.to_owned(),
            payload: item.payload.clone(),
            trace: item.trace_id,
            producer: producer.map(|p| p.to_string()),
            aged: false,
        });
    }
}

impl Model {
    /// Checks the answer to a push and takes the push over. Returns where the new messages are.
    ///
    /// # Errors
    /// When the answer is not the right one.
    pub fn push(
        &mut self,
        items: &[PushItem],
        producer: Option<&Arc<str>>,
        results: &[PushResult],
    ) -> anyhow::Result<Vec<(QueueName, PartitionName, Offset)>> {
        ensure!(results.len() == items.len(), "{} results for {} items", results.len(), items.len());
        let mut leaders: HashMap<(QueueName, PartitionName, String), MessageId> = HashMap::new();
        let mut stored = Vec::new();
        for (i, (item, result)) in items.iter().zip(results).enumerate() {
            let queue = self.queues.get_mut(&item.queue).context("a queue of the test")?;
            let dedup = queue.rules.dedup;
            let partition = queue.partitions.entry(item.partition.clone()).or_default();
            let key = match &item.transaction_id {
                Some(key) => key.to_string(),
                None => result.message_id.to_string(),
            };
            ensure!(result.transaction_id.as_str() == key, "item {i}: key {}", result.transaction_id);
            ensure!(result.error.is_none(), "item {i}: {:?}", result.error);
            let place = (item.queue.clone(), item.partition.clone(), key.clone());
            let original = leaders.get(&place).copied();
            // What this very request stored is not history: only its leaders count.
            let original = original.or_else(|| dedup.then(|| partition.original(&key)).flatten());
            let expected = original.map_or(PushStatus::Queued, |_| PushStatus::Duplicate);
            ensure!(
                result.status == expected,
                "item {i} ({key}): {:?} instead of {expected:?}",
                result.status
            );
            let id = original.unwrap_or(result.message_id);
            ensure!(result.message_id == id, "item {i} ({key}): id {} instead of {id}", result.message_id);
            leaders.insert(place, id);
            if original.is_none() {
                stored.push((item.queue.clone(), item.partition.clone(), partition.log_end() + 1));
                partition.append(item, id, &key, producer);
            }
        }
        Ok(stored)
    }
}
