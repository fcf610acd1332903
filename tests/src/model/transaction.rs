//! Transactions: pushes, then acks, all or nothing.

use std::collections::HashMap;

use anyhow::{Context, bail, ensure};
use queen_core::api::{PushItem, TxnOperation, TxnOutcome, TxnReason, TxnRequest, TxnResult};
use queen_types::{AckStatus, Group, LeaseId, MessageId, PartitionId, PartitionName, QueueName};

use super::Model;
use super::ack::Placed;

type Key = (QueueName, PartitionName, String);
/// Whose acks they are.
type Hand<'a> = (PartitionId, &'a Group, Option<&'a LeaseId>);
/// Acks that are decided together, as (operation, key, status, error).
type Said<'a> = Vec<(usize, &'a str, AckStatus, Option<&'a str>)>;

impl Model {
    /// Checks the outcome of a transaction and takes it over.
    ///
    /// # Errors
    /// When it is not the right one.
    pub fn transaction(&mut self, request: &TxnRequest, outcome: &TxnOutcome) -> anyhow::Result<()> {
        let repeats = self.repeats(request)?;
        if !repeats.is_empty() {
            return refused_as_duplicate(&repeats, outcome);
        }
        // Only a committed transaction tells the ids of its pushes; for a refused one any will do.
        let results = match outcome {
            TxnOutcome::Committed(results) => {
                ensure!(results.len() == request.operations.len(), "{} results", results.len());
                Some(results)
            }
            TxnOutcome::RolledBack { .. } => None,
        };
        let mut after = self.clone();
        after.append_all(request, results)?;
        let expected = after.ack_all(request)?;
        match (expected, outcome) {
            (None, TxnOutcome::RolledBack { reason: TxnReason::AckRejected, .. }) => Ok(()),
            (Some(filed), TxnOutcome::Committed(results)) => {
                for (i, result) in results.iter().enumerate() {
                    if let TxnResult::Ack { dlq, .. } = result {
                        ensure!(*dlq == filed.contains(&i), "operation {i}: dlq {dlq}");
                    }
                }
                *self = after;
                Ok(())
            }
            (None, _) => bail!("an ack had to be refused: {outcome:?}"),
            (Some(_), _) => bail!("it had to commit: {outcome:?}"),
        }
    }

    /// Pushes that repeat stored messages, each with the id of what it repeats.
    fn repeats(&self, request: &TxnRequest) -> anyhow::Result<HashMap<usize, MessageId>> {
        let mut repeats = HashMap::new();
        for (i, item) in pushes(request) {
            let queue = self.queues.get(&item.queue).context("a queue of the test")?;
            let partition = queue.partitions.get(&item.partition);
            let key = item.transaction_id.as_ref().map(|key| key.as_str());
            if let (true, Some(partition), Some(key)) = (queue.rules.dedup, partition, key)
                && let Some(id) = partition.original(key)
            {
                repeats.insert(i, id);
            }
        }
        Ok(repeats)
    }

    fn append_all(&mut self, request: &TxnRequest, results: Option<&Vec<TxnResult>>) -> anyhow::Result<()> {
        let mut leaders: HashMap<Key, MessageId> = HashMap::new();
        for (i, item) in pushes(request) {
            let (id, key) = match results.map(|r| &r[i]) {
                None => (MessageId::mint(), item.transaction_id.as_ref().map(|k| k.to_string())),
                Some(TxnResult::Push { transaction_id, message_id, queue, duplicate }) => {
                    let key = item.transaction_id.as_ref().map_or(message_id.to_string(), |k| k.to_string());
                    ensure!(transaction_id.as_str() == key, "operation {i}: key {transaction_id}");
                    ensure!(*queue == item.queue, "operation {i}: queue {queue}");
                    let place = (item.queue.clone(), item.partition.clone(), key.clone());
                    let leader = leaders.get(&place);
                    ensure!(*duplicate == leader.is_some(), "operation {i}: duplicate {duplicate}");
                    ensure!(leader.is_none_or(|id| id == message_id), "operation {i}: id {message_id}");
                    (*message_id, Some(key))
                }
                Some(other) => bail!("operation {i} is a push, answered {other:?}"),
            };
            let key = key.unwrap_or_else(|| id.to_string());
            let place = (item.queue.clone(), item.partition.clone(), key.clone());
            if leaders.insert(place, id).is_none() {
                let queue = self.queues.get_mut(&item.queue).context("a queue of the test")?;
                queue.partitions.entry(item.partition.clone()).or_default().append(item, id, &key, None);
            }
        }
        Ok(())
    }

    /// Settles the acks; the operations that dead-letter come back, or `None` when one is refused.
    fn ack_all(&mut self, request: &TxnRequest) -> anyhow::Result<Option<Vec<usize>>> {
        let mut groups: Vec<(Hand<'_>, Said<'_>)> = Vec::new();
        let mut hinted = !request.required_leases.is_empty();
        for (i, operation) in request.operations.iter().enumerate() {
            let TxnOperation::Ack { group, partition, transaction_id, status, lease, error } = operation
            else {
                continue;
            };
            hinted |= lease.is_some();
            let (key, said) = (
                (*partition, group, lease.as_ref()),
                (i, transaction_id.as_str(), *status, error.as_deref()),
            );
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, of)) => of.push(said),
                None => groups.push((key, vec![said])),
            }
        }
        let mut filed = Vec::new();
        for ((partition, group, named), said) in groups {
            let Some((rules, partition)) = self.by_id(partition) else { return Ok(None) };
            let Some(cursor) = partition.cursors.get(group) else { return Ok(None) };
            let holder = cursor.lease.as_ref().filter(|lease| lease.live).map(|lease| lease.id.clone());
            let member =
                |id: &LeaseId| request.required_leases.is_empty() || request.required_leases.contains(id);
            let lease = match (hinted, holder) {
                (false, _) => None,
                (true, Some(holder)) if member(&holder) => Some(named.cloned().unwrap_or(holder)),
                (true, _) => return Ok(None),
            };
            let place = |key: &str| partition.place(group, key);
            let placed = said.iter().map(|(_, k, status, error)| Placed {
                status: *status,
                place: place(k),
                error: *error,
            });
            let items: Vec<_> = placed.collect();
            let answers = partition.ack(&rules.clone(), group, lease.as_ref(), &items).unwrap_or_default();
            for ((i, ..), answer) in said.iter().zip(answers) {
                let late = answer.error.as_deref().is_some_and(|e| e.starts_with("already committed"));
                if !answer.success && !late {
                    return Ok(None);
                }
                if answer.dlq {
                    filed.push(*i);
                }
            }
        }
        Ok(Some(filed))
    }
}

fn pushes(request: &TxnRequest) -> impl Iterator<Item = (usize, &PushItem)> {
    request.operations.iter().enumerate().filter_map(|(i, operation)| match operation {
        TxnOperation::Push(item) => Some((i, item)),
        TxnOperation::Ack { .. } => None,
    })
}

/// Every duplicate is named with the message it repeats; one that also repeats an earlier push of the transaction need
/// not be.
fn refused_as_duplicate(repeats: &HashMap<usize, MessageId>, outcome: &TxnOutcome) -> anyhow::Result<()> {
    let TxnOutcome::RolledBack { reason: TxnReason::Duplicate, duplicates, .. } = outcome else {
        bail!("{} pushes repeat stored messages, yet {outcome:?}", repeats.len());
    };
    ensure!(!duplicates.is_empty(), "no duplicate is named");
    for (i, id) in duplicates {
        ensure!(repeats.get(i) == Some(id), "operation {i} is no duplicate of {id}");
    }
    let named: std::collections::HashSet<_> = duplicates.iter().map(|(_, id)| id).collect();
    ensure!(
        repeats.values().all(|id| *id == MessageId::ZERO || named.contains(id)),
        "a duplicate is not named: {duplicates:?}"
    );
    Ok(())
}
