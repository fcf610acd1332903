//! Random pushes and pops.

use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use queen_core::api::{PopRequest, PopTarget, PushItem};
use queen_types::{Group, Offset, PartitionName, QueueName, StartPoint, TransactionId, Uuid};
use rand::Rng;

use super::{Held, Scene, TENANT};

/// So few keys that most are pushed again.
const KEYS: u32 = 40;

impl Scene<'_> {
    pub(super) async fn push(&mut self) -> anyhow::Result<()> {
        let count = if self.rng.random_bool(0.4) { 1 } else { self.rng.random_range(2..12) };
        let items: Vec<PushItem> = (0..count).map(|_| self.some_item()).collect();
        let producer: Option<Arc<str>> = self.rng.random_bool(0.3).then(|| "somebody".into());
        self.note(format!("push {}", items.iter().map(describe).collect::<Vec<_>>().join(" ")));
        let results = self.broker().push(TENANT, items.clone(), producer.clone()).await;
        let stored = self.model.push(&items, producer.as_ref(), &results)?;
        self.read_ids().await?;
        self.remember_stored(&stored)
    }

    pub(super) fn remember_stored(
        &mut self,
        stored: &[(QueueName, PartitionName, Offset)],
    ) -> anyhow::Result<()> {
        for (queue, name, at) in stored {
            let partition = self.model.queues.get(queue).and_then(|q| q.partitions.get(name));
            let partition = partition.context("a partition that was pushed to")?;
            let id = partition.id.context("it has a row")?;
            let message = partition.message(*at).context("the model has it")?;
            self.history.stored(id, message.id, *at);
        }
        Ok(())
    }

    pub(super) fn some_item(&mut self) -> PushItem {
        let key = self.rng.random_range(0..KEYS);
        let named = self.rng.random_bool(0.85);
        let key = named.then(|| TransactionId::new(format!("k{key}"))).and_then(Result::ok);
        PushItem {
            queue: self.some_queue(),
            partition: self.some_partition_name(),
            transaction_id: key,
            payload: Bytes::from(format!("{{\"n\":{}}}", self.rng.random::<u32>())),
            trace_id: self.rng.random_bool(0.2).then(|| Uuid::from_u128(self.rng.random())),
        }
    }

    pub(super) async fn pop(&mut self) -> anyhow::Result<()> {
        let queue = self.some_queue();
        let target = match self.rng.random_range(0..10) {
            0..5 => PopTarget::Queue(queue),
            5..9 => PopTarget::Partition(queue, self.some_partition_name()),
            _ => {
                let namespace = self.model.queues.get(&queue).map(|q| q.namespace.clone());
                PopTarget::Discovery { namespace, task: None }
            }
        };
        let group = self.some_group();
        let start = self.some_start(&target, &group);
        let request = PopRequest {
            target,
            group,
            batch: if self.rng.random_bool(0.3) { 100 } else { self.rng.random_range(1..8) },
            partitions: self.rng.random_bool(0.8).then(|| self.rng.random_range(1..5)),
            wait: None,
            auto_ack: self.rng.random_bool(0.2),
            lease_seconds: self.rng.random_bool(0.5).then_some(500),
            start,
        };
        self.pop_with(request).await?;
        Ok(())
    }

    /// Pops of one partition by a group that is not registered begin with everything; what they owe to a group that
    /// begins after the newest message is a test of its own (`invariants_delivery.rs`).
    fn some_start(&mut self, target: &PopTarget, group: &Group) -> Option<StartPoint> {
        let all = match target {
            PopTarget::Partition(queue, _) => {
                self.model.queues.get(queue).is_none_or(|queue| !queue.groups.contains_key(group))
            }
            PopTarget::Queue(_) | PopTarget::Discovery { .. } => false,
        };
        match self.rng.random_range(0..3) {
            _ if all => Some(StartPoint::All),
            0 => None,
            1 => Some(StartPoint::New),
            _ => Some(StartPoint::All),
        }
    }

    /// Pops and checks the answer; the number of messages comes back.
    pub(super) async fn pop_with(&mut self, request: PopRequest) -> anyhow::Result<usize> {
        self.note(format!("pop {request:?}"));
        let answer = self.broker().pop(TENANT, request.clone()).await?;
        let given = answer.partitions.iter().map(|p| format!("{:?}: {}", p.partition, p.messages.len()));
        let given = given.collect::<Vec<_>>().join(", ");
        self.note(format!("  gave [{given}] under {:?}", answer.lease.as_ref().map(|l| l.as_str())));
        self.model.pop(&request, &answer)?;
        for batch in &answer.partitions {
            let place = (batch.partition_id, request.group.clone());
            self.history.batch(&place, batch.messages.iter().map(|(_, m)| m.id))?;
            self.held.push(Held {
                group: request.group.clone(),
                partition: batch.partition_id,
                lease: answer.lease.clone(),
                keys: batch.messages.iter().map(|(_, m)| m.transaction_id.to_string()).collect(),
            });
        }
        Ok(answer.len())
    }
}

pub(super) fn describe(item: &PushItem) -> String {
    let key = item.transaction_id.as_ref().map_or("-", |key| key.as_str());
    format!("{}/{:?}/{key}", item.queue, item.partition)
}
