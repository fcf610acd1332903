//! Acknowledging, and extending leases.

use std::time::Duration;

use queen_storage::StorageError;
use queen_storage::ack::{AckEffects, AckRequest, Answer};
use queen_types::{Group, LeaseId, PartitionId, QueueName, TenantId};

use crate::api::{AckItem, AckResult, LeaseExtension};
use crate::{Broker, Error};

impl Broker {
    /// Settles messages of a group; one result per item, in order. Items of one partition under one lease are decided
    /// together, others independently.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have taken effect; acking again is safe.
    pub async fn ack(&self, tenant: TenantId, group: Group, items: Vec<AckItem>) -> Vec<AckResult> {
        metrics::counter!("queen_process_ack_requests_total").increment(1);
        metrics::counter!("queen_process_ack_messages_total").increment(items.len() as u64);
        let mut results: Vec<AckResult> = Vec::with_capacity(items.len());
        let mut requests = Vec::with_capacity(items.len());
        let mut asked = Vec::with_capacity(items.len());
        for (i, item) in items.into_iter().enumerate() {
            let partition = match item.partition {
                None => Err("partitionId is required".to_owned()),
                Some(Err(text)) => Err(format!("invalid partitionId {text:?}: it must be a UUID")),
                Some(Ok(partition)) => Ok(partition),
            };
            match partition {
                Err(error) => results.push(AckResult { error: Some(error), ..AckResult::default() }),
                Ok(partition) => {
                    results.push(AckResult::default());
                    asked.push(i);
                    requests.push(AckRequest {
                        partition,
                        group: group.clone(),
                        transaction_id: item.transaction_id,
                        status: item.status,
                        lease: item.lease,
                        error: item.error,
                    });
                }
            }
        }
        if requests.is_empty() {
            return results;
        }
        match self.ack_with_retry(tenant, &requests).await {
            Ok((answers, effects)) => {
                self.after_ack(tenant, &requests, &answers, &effects);
                for (i, answer) in asked.into_iter().zip(answers) {
                    results[i] = answer.into();
                }
            }
            Err(error) => {
                metrics::counter!("queen_db_errors_total", "op" => "ack").increment(1);
                tracing::warn!(target: "ack", %error, "an ack was not performed");
                let text = if error.is_pool() { "pool" } else { "db error" };
                for i in asked {
                    results[i].error = Some(text.to_owned());
                }
            }
        }
        results
    }

    async fn ack_with_retry(
        &self,
        tenant: TenantId,
        requests: &[AckRequest],
    ) -> Result<(Vec<Answer>, AckEffects), StorageError> {
        match self.inner.storage.ack(tenant, requests).await {
            Err(error) if error.is_retryable() => self.inner.storage.ack(tenant, requests).await,
            result => result,
        }
    }

    /// Books what acks did: forgets released leases, wakes whoever can claim their partitions, counts losses.
    pub(crate) fn after_ack(
        &self,
        tenant: TenantId,
        requests: &[AckRequest],
        answers: &[Answer],
        effects: &AckEffects,
    ) {
        for (request, answer) in requests.iter().zip(answers) {
            if let (true, Some(lease)) = (answer.lease_released, &request.lease) {
                self.inner.leases.released(lease, request.partition);
            }
        }
        for released in &effects.released {
            let Ok(queue) = QueueName::new(released.queue.as_str()) else { continue };
            match released.delay_ms {
                None | Some(0) => self.inner.gates.claimable(tenant, &queue, &released.group, 1),
                Some(delay) => self.wake_later(tenant, queue, released.group.clone(), delay),
            }
        }
        if effects.dropped > 0 {
            tracing::warn!(target: "ack", dropped = effects.dropped, "messages were given up without a dead letter");
            metrics::counter!("queen_messages_dropped_total").increment(effects.dropped);
        }
        if effects.skipped > 0 {
            metrics::counter!("queen_ack_skipped_messages_total").increment(effects.skipped);
        }
    }

    /// Wakes a group when the retry delay of a partition ends.
    fn wake_later(&self, tenant: TenantId, queue: QueueName, group: Group, delay_ms: i64) {
        let gates = self.inner.gates.clone();
        let stop = self.inner.stop.clone();
        let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0));
        self.inner.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(delay) => gates.claimable(tenant, &queue, &group, 1),
            }
        });
    }

    /// Sets every live lease of a claim to the later of its expiry and now + `seconds` (at least 1). An unknown or
    /// expired lease renews nothing, which is no error.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn extend_lease(
        &self,
        tenant: TenantId,
        lease: &LeaseId,
        seconds: i64,
    ) -> Result<LeaseExtension, Error> {
        let seconds = seconds.clamp(1, i64::from(i32::MAX));
        let none = LeaseExtension { renewed: 0, expires_at: None };
        let held: Option<(Vec<PartitionId>, Group)> = match self.inner.leases.get(lease) {
            Some(held) => Some(held),
            None => {
                let _turn = self.inner.leases.search.lock().await;
                self.inner.storage.find_lease(tenant, lease).await?
            }
        };
        let Some((partitions, group)) = held else { return Ok(none) };
        let expiries = self.inner.storage.extend_lease(&partitions, &group, lease, seconds).await?;
        self.inner.leases.extended(lease, Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        Ok(LeaseExtension {
            renewed: u32::try_from(expiries.len()).unwrap_or(u32::MAX),
            expires_at: expiries.into_iter().min(),
        })
    }
}

impl From<Answer> for AckResult {
    fn from(answer: Answer) -> Self {
        AckResult {
            success: answer.success,
            error: answer.error,
            lease_released: answer.lease_released,
            dlq: answer.dlq,
            noop: answer.noop,
            redelivers: answer.redelivers,
            dropped: answer.dropped,
        }
    }
}
