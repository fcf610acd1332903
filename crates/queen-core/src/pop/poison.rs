//! Messages that nobody survives: a queue may bound how often one is delivered.

use queen_types::{AckStatus, Group, LeaseId, TenantId};

use super::plan::Plan;
use crate::Broker;
use crate::api::{AckItem, PartitionBatch};

impl Broker {
    /// Files the head of every batch that was delivered more often than its queue allows as a dead letter, and takes
    /// those batches out: what is behind them is claimable again. A batch whose head cannot be filed is delivered once
    /// more.
    pub(super) async fn give_up_poison(
        &self,
        tenant: TenantId,
        group: &Group,
        lease: &LeaseId,
        plan: &Plan,
        batches: &mut Vec<PartitionBatch>,
    ) {
        let mut over = Vec::new();
        let mut items = Vec::new();
        for batch in batches.iter() {
            let Some(most) = plan.attempts_max(batch.partition_id) else { continue };
            let Some((_, head)) = batch.messages.first().filter(|_| batch.delivery_attempt > most) else {
                continue;
            };
            over.push(batch.partition_id);
            items.push(AckItem {
                partition: Some(Ok(batch.partition_id)),
                transaction_id: head.transaction_id.to_string(),
                status: AckStatus::Dlq,
                lease: Some(lease.clone()),
                error: Some(format!("delivered {most} times without an answer (maxDeliveryAttempts)")),
            });
        }
        if items.is_empty() {
            return;
        }
        let results = self.ack(tenant, group.clone(), items).await;
        for (partition, result) in over.into_iter().zip(results) {
            if result.success {
                batches.retain(|batch| batch.partition_id != partition);
            } else {
                tracing::warn!(
                    target: "pop", %partition, %group, error = result.error,
                    "a message that was delivered too often could not be filed as a dead letter"
                );
            }
        }
    }
}
