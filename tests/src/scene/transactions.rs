//! Random transactions.

use queen_core::api::{TxnOperation, TxnRequest};
use queen_types::LeaseId;
use rand::Rng;
use rand::seq::SliceRandom;

use super::push_pop::describe;
use super::{Held, Scene, TENANT};
use crate::model::Model;

impl Scene<'_> {
    pub(super) async fn transact(&mut self) -> anyhow::Result<()> {
        let request = self.some_transaction();
        for operation in &request.operations {
            match operation {
                TxnOperation::Push(item) => self.note(format!("txn push {}", describe(item))),
                other => self.note(format!("txn {other:?}")),
            }
        }
        self.note(format!("txn requires {:?}", request.required_leases));
        self.acked = true;
        let outcome = self.broker().transaction(TENANT, request.clone(), None).await?;
        self.note(format!("  {outcome:?}"));
        let before = log_ends(&self.model);
        self.model.transaction(&request, &outcome)?;
        self.read_ids().await?;
        let mut stored = Vec::new();
        for ((queue, name), end) in log_ends(&self.model) {
            let old = before.iter().find(|((q, n), _)| *q == queue && *n == name).map_or(-1, |(_, end)| *end);
            stored.extend((old + 1..=end).map(|at| (queue.clone(), name.clone(), at)));
        }
        self.remember_stored(&stored)
    }

    fn some_transaction(&mut self) -> TxnRequest {
        let mut operations = Vec::new();
        for _ in 0..self.rng.random_range(0..4) {
            operations.push(TxnOperation::Push(self.some_item()));
        }
        let mut all: Vec<Held> = Vec::new();
        for _ in 0..self.rng.random_range(0..3) {
            let other = self.some_held();
            all.extend(
                other.filter(|o| all.iter().all(|h| h.partition != o.partition || h.group != o.group)),
            );
        }
        let leases: Vec<LeaseId> = all.iter().filter_map(|held| held.lease.clone()).collect();
        let (named, required) = match self.rng.random_range(0..5) {
            0 => (false, Vec::new()),
            1 => (true, Vec::new()),
            2 => (true, leases),
            3 => (false, leases),
            _ => (false, self.some_held().and_then(|held| held.lease).into_iter().collect()),
        };
        for held in &all {
            for (key, status) in self.some_words(held) {
                operations.push(TxnOperation::Ack {
                    group: held.group.clone(),
                    partition: held.partition,
                    transaction_id: key,
                    status,
                    lease: held.lease.clone().filter(|_| named),
                    error: None,
                });
            }
        }
        if self.rng.random_bool(0.5) {
            operations.shuffle(&mut self.rng);
        }
        TxnRequest { operations, required_leases: required }
    }
}

type Ends = Vec<((queen_types::QueueName, queen_types::PartitionName), i64)>;

fn log_ends(model: &Model) -> Ends {
    let queues = model.queues.iter();
    let ends =
        queues.flat_map(|(queue, q)| q.partitions.iter().map(move |(name, p)| (queue, name, p.log_end())));
    ends.map(|(queue, name, end)| ((queue.clone(), name.clone()), end)).collect()
}
