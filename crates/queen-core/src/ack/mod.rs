//! Acknowledging, and extending leases.
//!
//! An ack that completes a batch which this broker delivered, all of it, needs no look at the messages ([`known`]): such
//! batches wait together and share a commit ([`fusion`]). Every other ack is decided item by item ([`Storage::ack`]),
//! and so is one that the row of its cursor refuses.
//!
//! [`Storage::ack`]: queen_storage::Storage::ack

mod fusion;
mod known;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use queen_admission::Lane;
use queen_hotlist::Release;
use queen_storage::StorageError;
use queen_storage::ack::{AckEffects, AckRequest, Answer};
use queen_types::{Group, LeaseId, PartitionId, QueueName, TenantId};

use crate::announce::Freed;
use crate::api::{AckItem, AckResult, LeaseExtension};
use crate::{Broker, Error};
pub(crate) use fusion::AckFusion;
use fusion::{Full, Verdict};

/// Error text of an ack that got no slot in time.
const OVERLOADED: &str = "overloaded; retry later";
/// Error text of an ack whose commit failed or whose outcome is unknown.
const FLUSH_FAILED: &str = "ack flush failed; lease will expire and redeliver";

impl Broker {
    /// Settles messages of a group; one result per item, in order. Items of one partition under one lease are decided
    /// together, others independently.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have taken effect; acking again is safe.
    pub async fn ack(&self, tenant: TenantId, group: Group, items: Vec<AckItem>) -> Vec<AckResult> {
        let results = self.settle(tenant, group, items).await;
        self.inner.tally.acked(&results);
        results
    }

    async fn settle(&self, tenant: TenantId, group: Group, items: Vec<AckItem>) -> Vec<AckResult> {
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
        let rest = self.complete_known(tenant, &group, &requests, &asked, &mut results).await;
        if rest.len() < requests.len() {
            asked = rest.iter().filter_map(|i| asked.get(*i).copied()).collect();
            let mut position = 0;
            requests.retain(|_| {
                position += 1;
                rest.binary_search(&(position - 1)).is_ok()
            });
        }
        if requests.is_empty() {
            return results;
        }
        match self.ack_with_retry(tenant, &requests).await {
            Ok((answers, effects)) => {
                self.after_ack(tenant, &requests, &effects);
                self.count_settled(tenant, &requests, &answers, &effects);
                for (i, answer) in asked.into_iter().zip(answers) {
                    results[i] = answer.into();
                }
            }
            Err(error) => {
                let is_overload = error.is_overload();
                if !is_overload {
                    self.inner.tally.failed();
                    metrics::counter!("queen_db_errors_total", "op" => "ack").increment(1);
                    tracing::warn!(target: "ack", %error, "an ack was not performed");
                }
                let text = match error {
                    _ if is_overload => OVERLOADED,
                    error if error.is_pool() => "pool",
                    _ => "db error",
                };
                for i in asked {
                    results[i].overloaded = is_overload;
                    results[i].error = Some(text.to_owned());
                }
            }
        }
        results
    }

    /// Completes the batches that are known as a whole and writes their results; returns the positions of all other
    /// requests, ascending.
    async fn complete_known(
        &self,
        tenant: TenantId,
        group: &Group,
        requests: &[AckRequest],
        asked: &[usize],
        results: &mut [AckResult],
    ) -> Vec<usize> {
        let hits = known::hits(&self.inner.leases, tenant, group, requests);
        if hits.is_empty() {
            return (0..requests.len()).collect();
        }
        let (batches, items): (Vec<Full>, Vec<Vec<usize>>) =
            hits.into_iter().map(|hit| (hit.full, hit.items)).unzip();
        let queues: Vec<QueueName> = batches.iter().map(|full| full.queue.clone()).collect();
        let verdicts = self.inner.ack_fusion.complete(&self.inner, batches).await;
        let mut open = vec![true; requests.len()];
        for ((items, verdict), queue) in items.into_iter().zip(verdicts).zip(queues) {
            if verdict == Verdict::Completed {
                self.inner.tally.settled(tenant, &queue, items.len(), 0);
            }
            let result = match verdict {
                Verdict::Completed => {
                    AckResult { success: true, lease_released: true, ..AckResult::default() }
                }
                Verdict::Failed => AckResult { error: Some(FLUSH_FAILED.to_owned()), ..AckResult::default() },
                Verdict::Overloaded => {
                    AckResult { error: Some(OVERLOADED.to_owned()), overloaded: true, ..AckResult::default() }
                }
                Verdict::Refused => continue,
            };
            for i in items {
                open[i] = false;
                results[asked[i]] = result.clone();
            }
        }
        (0..requests.len()).filter(|i| open[*i]).collect()
    }

    /// Counts items by the queue whose lease they ended; whose they are that ended none is not known here.
    pub(crate) fn count_settled(
        &self,
        tenant: TenantId,
        requests: &[AckRequest],
        answers: &[Answer],
        effects: &AckEffects,
    ) {
        if effects.released.is_empty() {
            return;
        }
        let mut counts: HashMap<PartitionId, (usize, usize)> = HashMap::new();
        for (request, answer) in requests.iter().zip(answers) {
            let (done, failed) = counts.entry(request.partition).or_default();
            *if answer.success { done } else { failed } += 1;
        }
        for released in &effects.released {
            let Ok(queue) = QueueName::new(released.queue.as_str()) else { continue };
            let (done, failed) = counts.get(&released.partition).copied().unwrap_or_default();
            self.inner.tally.settled(tenant, &queue, done, failed);
        }
    }

    async fn ack_with_retry(
        &self,
        tenant: TenantId,
        requests: &[AckRequest],
    ) -> Result<(Vec<Answer>, AckEffects), StorageError> {
        let slot = self.inner.admission.enter(Lane::Ack, tenant).await?;
        let result = match self.inner.storage.ack(tenant, requests).await {
            Err(error) if error.is_retryable() => self.inner.storage.ack(tenant, requests).await,
            result => result,
        };
        if let Ok((_, effects)) = &result
            && let Some(took) = effects.commit
        {
            slot.committed_work(took, requests.len() as u64);
        }
        result
    }

    /// Books what acks did: forgets released leases, wakes whoever can claim their partitions, counts losses.
    pub(crate) fn after_ack(&self, tenant: TenantId, requests: &[AckRequest], effects: &AckEffects) {
        let named = requests.iter().filter_map(|request| Some((request.lease.as_ref()?, request.partition)));
        for (lease, partition) in named.collect::<HashSet<_>>() {
            self.inner.leases.changed(lease, partition);
        }
        let mut freed: HashMap<&str, Vec<Freed<'_>>> = HashMap::new();
        for released in &effects.released {
            let claim = released
                .lease
                .as_ref()
                .and_then(|lease| self.inner.leases.released(lease, released.partition));
            let rest = released.delay_ms.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0);
            let release = match rest {
                Some(ms) => Release::Retry { rest: Duration::from_millis(ms) },
                None if released.covered => Release::Covered,
                None => Release::Open,
            };
            let (group, partition) = (&released.group, released.partition);
            let of_queue = freed.entry(released.queue.as_str()).or_default();
            of_queue.push(Freed { group, partition, claim, release, row: None });
        }
        for (queue, freed) in freed {
            let Ok(queue) = QueueName::new(queue) else { continue };
            self.inner.released(tenant, &queue, &freed);
        }
        if effects.dropped > 0 {
            tracing::warn!(target: "ack", dropped = effects.dropped, "messages were given up without a dead letter");
            metrics::counter!("queen_messages_dropped_total").increment(effects.dropped);
        }
        if effects.skipped > 0 {
            metrics::counter!("queen_ack_skipped_messages_total").increment(effects.skipped);
        }
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
        let held: Option<(Vec<PartitionId>, Group)> = match self.inner.leases.get(tenant, lease) {
            Some(held) => Some(held),
            None => {
                let _turn = self.inner.leases.search.lock().await;
                self.inner.storage.find_lease(tenant, lease).await?
            }
        };
        let Some((partitions, group)) = held else { return Ok(none) };
        let slot = self.inner.admission.enter(Lane::Ack, tenant).await?;
        let began = Instant::now();
        let extended = self.inner.storage.extend_lease(&partitions, &group, lease, seconds).await?;
        if !extended.is_empty() {
            slot.committed_work(began.elapsed(), extended.len() as u64);
        }
        drop(slot);
        let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        self.inner.leases.extended(lease, lasts, &extended);
        Ok(LeaseExtension {
            renewed: u32::try_from(extended.len()).unwrap_or(u32::MAX),
            expires_at: extended.iter().map(|lease| lease.expires_at).min(),
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
            overloaded: false,
        }
    }
}
