//! Popping: a claim hands out what follows the cursor, and nothing that another live claim holds.

use std::collections::BTreeSet;

use anyhow::{Context, bail, ensure};
use queen_core::api::{PartitionBatch, PopAnswer, PopRequest, PopTarget};
use queen_types::{Group, Offset, PartitionId, PartitionName, QueueName, StartPoint};

use super::{Cursor, Lease, Model, Partition, Queue};

impl Partition {
    /// Where a group without a cursor begins.
    fn seed(&self, newest: bool) -> Offset {
        if newest { self.log_end() } else { self.log_start - 1 }
    }

    /// Offsets that the group would be given now, all of them.
    fn ready(&self, group: &Group, newest: bool) -> std::ops::Range<Offset> {
        let committed = match self.cursors.get(group) {
            Some(cursor) if cursor.is_held() || cursor.waiting => return 0..0,
            Some(cursor) => cursor.committed,
            None => self.seed(newest),
        };
        (committed + 1).max(self.log_start)..self.log_end() + 1
    }
}

impl Queue {
    /// First contact: what is there gets its cursor, what comes later will be given whole.
    fn register(&mut self, group: &Group, newest: bool) {
        if self.groups.contains_key(group) {
            return;
        }
        self.groups.insert(group.clone(), newest);
        if newest {
            for partition in self.partitions.values_mut() {
                let end = partition.log_end();
                partition.cursors.entry(group.clone()).or_insert_with(|| Cursor::at(end));
            }
        }
    }
}

impl Model {
    /// Checks the answer to a pop and takes the claim over.
    ///
    /// # Errors
    /// When the answer is none of the right ones.
    pub fn pop(&mut self, request: &PopRequest, answer: &PopAnswer) -> anyhow::Result<()> {
        let newest = !request.group.is_queue_mode() && matches!(request.start, None | Some(StartPoint::New));
        let ready = match &request.target {
            PopTarget::Partition(queue, partition) => {
                self.pinned(queue, partition, &request.group, newest)?
            }
            PopTarget::Queue(_) | PopTarget::Discovery { .. } => {
                let queues = self.queues_of(&request.target);
                for name in &queues {
                    self.queues
                        .get_mut(name)
                        .context("a queue of the test")?
                        .register(&request.group, newest);
                }
                self.ready_in(&queues, &request.group)
            }
        };
        self.check_budget(request, answer, &ready)?;
        ensure!(
            answer.lease.is_some() == (!answer.is_empty() && !request.auto_ack),
            "a lease exactly when messages are leased: {:?}",
            answer.lease
        );
        for batch in &answer.partitions {
            self.claim(request, answer, batch)?;
        }
        Ok(())
    }

    /// A pop of one partition: registers nothing, yet the first one decides where an unregistered group begins there.
    fn pinned(
        &mut self,
        queue: &QueueName,
        name: &PartitionName,
        group: &Group,
        newest: bool,
    ) -> anyhow::Result<BTreeSet<PartitionId>> {
        let queue = self.queues.get_mut(queue).context("a queue of the test")?;
        let Some(partition) = queue.partitions.get_mut(name) else { return Ok(BTreeSet::new()) };
        if newest && !queue.groups.contains_key(group) {
            let end = partition.log_end();
            partition.cursors.entry(group.clone()).or_insert_with(|| Cursor::at(end));
        }
        let ready = !partition.ready(group, false).is_empty();
        Ok(partition.id.filter(|_| ready).into_iter().collect())
    }

    fn ready_in(&self, queues: &[QueueName], group: &Group) -> BTreeSet<PartitionId> {
        let partitions = queues.iter().filter_map(|q| self.queues.get(q)).flat_map(|q| q.partitions.values());
        partitions.filter(|p| !p.ready(group, false).is_empty()).filter_map(|p| p.id).collect()
    }

    /// The budget of messages runs over the partitions in the order of the answer, and nothing ready is left behind
    /// while there is budget, unless the pop went by a hot list.
    fn check_budget(
        &mut self,
        request: &PopRequest,
        answer: &PopAnswer,
        ready: &BTreeSet<PartitionId>,
    ) -> anyhow::Result<()> {
        let cap = request.partitions.map_or(usize::MAX, |n| n as usize);
        let mut budget = Offset::from(request.batch.max(1));
        let mut seen = BTreeSet::new();
        for batch in &answer.partitions {
            ensure!(ready.contains(&batch.partition_id), "{:?} was not to be claimed", batch.partition);
            ensure!(seen.insert(batch.partition_id), "{:?} stands twice in the answer", batch.partition);
            let (_, partition) = self.by_id(batch.partition_id).context("a partition of the test")?;
            let offered = partition.ready(&request.group, false);
            let fits = (offered.end - offered.start).min(budget);
            let given = batch.messages.len() as Offset;
            ensure!(given == fits && fits > 0, "{:?}: {given} messages instead of {fits}", batch.partition);
            budget -= given;
        }
        ensure!(seen.len() <= cap, "{} partitions, {cap} asked for", seen.len());
        // A hot list knows what was announced. What the test did to the rows by hand shows when the list is empty.
        let hinted =
            crate::has_hotlist() && matches!(request.target, PopTarget::Queue(_)) && !answer.is_empty();
        if budget > 0 && seen.len() < cap && seen.len() < ready.len() && !hinted {
            let left = self
                .partitions()
                .filter(|p| p.id.is_some_and(|id| ready.contains(&id) && !seen.contains(&id)));
            let left: Vec<_> =
                left.map(|p| (p.log_start, p.log_end(), p.cursors.get(&request.group))).collect();
            bail!("ready partitions were left although {budget} more fitted: {left:?}");
        }
        Ok(())
    }

    fn claim(
        &mut self,
        request: &PopRequest,
        answer: &PopAnswer,
        batch: &PartitionBatch,
    ) -> anyhow::Result<()> {
        let (_, partition) = self.by_id(batch.partition_id).context("a partition of the test")?;
        let first = partition.ready(&request.group, false).start;
        let last = first + batch.messages.len() as Offset - 1;
        for (at, (_, given)) in (first..).zip(&batch.messages) {
            let stored = partition.message(at).context("an offset of the log")?;
            ensure!(given.id == stored.id, "offset {at}: {} ({}) was given", given.id, given.transaction_id);
            ensure!(*given.transaction_id == *stored.key, "offset {at}: key {}", given.transaction_id);
            ensure!(given.payload == stored.payload, "offset {at}: the payload differs");
            ensure!(given.trace_id == stored.trace, "offset {at}: trace {:?}", given.trace_id);
            ensure!(given.producer_sub.as_deref() == stored.producer.as_deref(), "offset {at}: producer");
        }
        let seed = partition.seed(false);
        let cursor = partition.cursors.entry(request.group.clone()).or_insert_with(|| Cursor::at(seed));
        cursor.waiting = false;
        let attempt = match &answer.lease {
            None => {
                cursor.committed = last;
                cursor.lease = None;
                cursor.consumed += last - first + 1;
                1
            }
            Some(id) => {
                cursor.lease = Some(Lease { id: id.clone(), end: last, live: true });
                let before = cursor.attempt.filter(|(at, _)| *at == first).map_or(0, |(_, count)| count);
                cursor.attempt = Some((first, before + 1));
                before + 1
            }
        };
        ensure!(
            i64::from(batch.delivery_attempt) == i64::from(attempt),
            "delivery attempt {} instead of {attempt}",
            batch.delivery_attempt
        );
        Ok(())
    }
}
