//! Transactions: from the flat list of operations to pushes and acks, and back.

use std::collections::HashMap;
use std::sync::Arc;

use queen_admission::Lane;
use queen_storage::ack::AckRequest;
use queen_storage::{NewFrame, PartitionKey, TxnFailure, TxnPush, TxnSuccess};
use queen_types::{MessageId, PartitionId, QueueName, TenantId};

use crate::announce::Landed;

use crate::api::{TxnOperation, TxnOutcome, TxnReason, TxnRequest, TxnResult};
use crate::push::minted_key;
use crate::{Broker, Error};

/// Which push or ack an operation became.
#[derive(Clone, Copy)]
enum Slot {
    Push(usize),
    Ack(usize),
}

impl Broker {
    /// Commits every operation or none. A verdict of the database is an outcome, not an error.
    ///
    /// # Errors
    /// [`Error::Pool`] when no connection could be had, [`Error::Overloaded`] when too much is under way or
    /// [`crate::Mode::Transactions`] is on.
    ///
    /// # Cancel safety
    /// A dropped call may have committed. Repeating it is safe when every push carries its own transaction id.
    pub async fn transaction(
        &self,
        tenant: TenantId,
        request: TxnRequest,
        producer: Option<Arc<str>>,
    ) -> Result<TxnOutcome, Error> {
        let (slots, pushes, acks) = split(tenant, request.operations, producer);
        if slots.is_empty() {
            return Ok(TxnOutcome::Committed(Vec::new()));
        }
        let _under_way = self.inner.modes.begin_transaction().ok_or_else(|| {
            Error::Overloaded("transactions are held back by push maintenance; try again later".to_owned())
        })?;
        let admitted = self.inner.admission.enter(Lane::Push, tenant).await?;
        let outcome = self.inner.storage.transaction(tenant, &pushes, &acks, &request.required_leases).await;
        if let Ok(TxnSuccess { effects, .. }) = &outcome
            && let Some(took) = effects.commit
        {
            admitted.committed_work(took, slots.len() as u64);
        }
        drop(admitted);
        match outcome {
            Ok(success) => {
                self.after_transaction(tenant, &pushes, &acks, &success);
                Ok(TxnOutcome::Committed(results(&slots, &pushes, &acks, &success)))
            }
            Err(TxnFailure::Duplicate(duplicates)) => Ok(TxnOutcome::RolledBack {
                reason: TxnReason::Duplicate,
                error: format!("QDUP {} pushed transactionId(s) already stored", duplicates.len()),
                duplicates: duplicates
                    .into_iter()
                    .filter_map(|(push, id)| Some((position(&slots, push)?, id)))
                    .collect(),
            }),
            Err(TxnFailure::AckRejected { error, .. }) => {
                Ok(TxnOutcome::RolledBack { reason: TxnReason::AckRejected, error, duplicates: Vec::new() })
            }
            Err(TxnFailure::Storage(error)) if error.is_pool() => Err(error.into()),
            Err(TxnFailure::Storage(error)) => {
                self.inner.tally.failed();
                metrics::counter!("queen_db_errors_total", "op" => "txn").increment(1);
                Ok(TxnOutcome::RolledBack {
                    reason: TxnReason::DbError,
                    error: error.to_string(),
                    duplicates: Vec::new(),
                })
            }
        }
    }

    fn after_transaction(
        &self,
        tenant: TenantId,
        pushes: &[TxnPush],
        acks: &[AckRequest],
        success: &TxnSuccess,
    ) {
        self.after_ack(tenant, acks, &success.effects);
        self.count_settled(tenant, acks, &success.acks, &success.effects);
        let mut queues: HashMap<&QueueName, HashMap<PartitionId, Landed<'_>>> = HashMap::new();
        for (push, pushed) in pushes.iter().zip(&success.pushes) {
            let (partition, name) = (pushed.partition, &push.key.partition);
            let landed = queues.entry(&push.key.queue).or_default().entry(partition);
            landed.or_insert(Landed { partition, name, messages: 0 }).messages +=
                usize::from(!pushed.duplicate);
        }
        self.inner.tally.transaction(tenant, queues.keys().copied());
        for (queue, landed) in queues {
            let landed: Vec<Landed<'_>> = landed.into_values().collect();
            self.inner.landed(tenant, queue, &landed);
        }
    }
}

fn split(
    tenant: TenantId,
    operations: Vec<TxnOperation>,
    producer: Option<Arc<str>>,
) -> (Vec<Slot>, Vec<TxnPush>, Vec<AckRequest>) {
    let (mut slots, mut pushes, mut acks) = (Vec::with_capacity(operations.len()), Vec::new(), Vec::new());
    for operation in operations {
        match operation {
            TxnOperation::Push(item) => {
                slots.push(Slot::Push(pushes.len()));
                let message_id = MessageId::mint();
                pushes.push(TxnPush {
                    key: PartitionKey { tenant, queue: item.queue, partition: item.partition },
                    frame: NewFrame {
                        message_id,
                        transaction_id: item.transaction_id.unwrap_or_else(|| minted_key(message_id)),
                        payload: item.payload,
                        trace_id: item.trace_id,
                        producer_sub: producer.clone(),
                        encrypted: false,
                    },
                });
            }
            TxnOperation::Ack { group, partition, transaction_id, status, lease, error } => {
                slots.push(Slot::Ack(acks.len()));
                acks.push(AckRequest { partition, group, transaction_id, status, lease, error });
            }
        }
    }
    (slots, pushes, acks)
}

/// Flat index of a push.
fn position(slots: &[Slot], push: usize) -> Option<usize> {
    slots.iter().position(|slot| matches!(slot, Slot::Push(p) if *p == push))
}

fn results(slots: &[Slot], pushes: &[TxnPush], acks: &[AckRequest], success: &TxnSuccess) -> Vec<TxnResult> {
    slots
        .iter()
        .map(|slot| match *slot {
            Slot::Push(i) => TxnResult::Push {
                transaction_id: pushes[i].frame.transaction_id.clone(),
                message_id: success.pushes[i].message_id,
                queue: pushes[i].key.queue.clone(),
                duplicate: success.pushes[i].duplicate,
            },
            Slot::Ack(i) => {
                TxnResult::Ack { transaction_id: acks[i].transaction_id.clone(), dlq: success.acks[i].dlq }
            }
        })
        .collect()
}
