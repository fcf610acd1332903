//! Where a pop looks: candidates with what their queue says about leases and holds.

use std::collections::HashMap;

use queen_storage::PartitionKey;
use queen_storage::admin::QueueRow;
use queen_storage::pop::{Candidate, CursorHint, Seed};
use queen_types::{
    Group, Namespace, PartitionId, PartitionName, QueueId, QueueName, QueueOptions, StartPoint, Task,
    TenantId,
};

use crate::api::PopRequest;
use crate::hot::Guard;
use crate::{Broker, Error};

/// Candidates of one look.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) candidates: Vec<Candidate>,
    names: HashMap<PartitionId, (QueueName, PartitionName)>,
    /// How often a message may be delivered, where that is bounded.
    attempts: HashMap<PartitionId, u32>,
}

impl Plan {
    /// What a hot list had ready.
    pub(super) fn of(
        checked_out: &Guard,
        queue: &QueueName,
        request: &PopRequest,
        row: &QueueRow,
        seed: Seed,
    ) -> Plan {
        let mut plan = Plan::default();
        for candidate in checked_out.candidates() {
            plan.add(candidate.partition, queue, candidate.name.clone(), request, row, seed);
            if let Some(added) = plan.candidates.last_mut() {
                added.cursor = CursorHint::from_u64(candidate.tag);
                // A cursor that was seen and is gone went with its group, which begins anew once that is known; it is not
                // made again where the group began in its former life.
                if added.cursor.row().is_some() {
                    added.seed = Seed::Newest;
                }
            }
        }
        plan
    }

    pub(super) fn name_of(&self, partition: PartitionId) -> PartitionName {
        self.names.get(&partition).map(|(_, name)| name.clone()).unwrap_or_default()
    }

    pub(super) fn queue_of(&self, partition: PartitionId) -> Option<&QueueName> {
        self.names.get(&partition).map(|(queue, _)| queue)
    }

    /// How often a message of a partition may be delivered, if that is bounded.
    pub(super) fn attempts_max(&self, partition: PartitionId) -> Option<u32> {
        self.attempts.get(&partition).copied()
    }

    fn add(
        &mut self,
        partition: PartitionId,
        queue: &QueueName,
        name: PartitionName,
        request: &PopRequest,
        row: &QueueRow,
        seed: Seed,
    ) {
        self.candidates.push(candidate(partition, request, &row.options, seed));
        self.names.insert(partition, (queue.clone(), name));
        if let Ok(most @ 1..) = u32::try_from(row.options.max_delivery_attempts) {
            self.attempts.insert(partition, most);
        }
    }
}

fn candidate(partition: PartitionId, request: &PopRequest, options: &QueueOptions, seed: Seed) -> Candidate {
    let queue_lease =
        if options.lease_time > 0 { options.lease_time } else { QueueOptions::IMPLICIT_LEASE_TIME };
    Candidate {
        partition,
        cursor: CursorHint::Unknown,
        lease_seconds: request.lease_seconds.map_or(queue_lease, |s| i32::try_from(s).unwrap_or(i32::MAX)),
        delayed: options.delayed_processing,
        hold: options.window_buffer,
        seed,
    }
}

/// How many candidates a scan may bring for a pop that claims `partitions` of them: some will be gone when it claims.
fn scan_limit(partitions: Option<u32>) -> i64 {
    match partitions {
        Some(n) if n < 128 => i64::from(n.saturating_mul(4)).clamp(64, 512),
        Some(n) => i64::from(n).max(512),
        None => i64::MAX,
    }
}

impl Broker {
    pub(super) async fn plan_queue(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        request: &PopRequest,
        start: StartPoint,
    ) -> Result<Plan, Error> {
        let storage = &self.inner.storage;
        let group = &request.group;
        let (id, seed) = self.inner.caches.registration(storage, tenant, queue, group, start).await?;
        let Some(row) = self.inner.caches.queue(storage, tenant, queue).await? else {
            return Ok(Plan::default());
        };
        self.scan(request, &[(id, queue, seed, &row)]).await
    }

    pub(super) async fn plan_partition(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        partition: &PartitionName,
        request: &PopRequest,
        start: StartPoint,
    ) -> Result<Plan, Error> {
        let storage = &self.inner.storage;
        let mut plan = Plan::default();
        let key = PartitionKey { tenant, queue: queue.clone(), partition: partition.clone() };
        let Some(row) = self.inner.caches.queue(storage, tenant, queue).await? else { return Ok(plan) };
        let Some(id) = storage.partition_id(&key).await? else { return Ok(plan) };
        let seed = self.pinned_seed(tenant, row.id, &request.group, start).await?;
        plan.add(id, queue, partition.clone(), request, &row, seed);
        Ok(plan)
    }

    /// A pop of one partition registers nothing: the stored subscription counts, else the pop's own intent.
    async fn pinned_seed(
        &self,
        tenant: TenantId,
        queue: QueueId,
        group: &Group,
        start: StartPoint,
    ) -> Result<Seed, Error> {
        if group.is_queue_mode() {
            return Ok(Seed::Everything);
        }
        let stored = self.inner.storage.stored_registration(tenant, queue, group).await?;
        Ok(stored.unwrap_or_else(|| start.into()))
    }

    pub(super) async fn plan_discovery(
        &self,
        tenant: TenantId,
        namespace: Option<&Namespace>,
        task: Option<&Task>,
        request: &PopRequest,
        start: StartPoint,
    ) -> Result<Plan, Error> {
        let storage = &self.inner.storage;
        let mut rows = Vec::new();
        for queue in storage.matching_queues(tenant, namespace, task).await? {
            let registered =
                self.inner.caches.registration(storage, tenant, &queue.name, &request.group, start).await?;
            if let Some(row) = self.inner.caches.queue(storage, tenant, &queue.name).await? {
                rows.push((queue.name, registered, row));
            }
        }
        let queues: Vec<(QueueId, &QueueName, Seed, &QueueRow)> =
            rows.iter().map(|(name, (id, seed), row)| (*id, name, *seed, &**row)).collect();
        self.scan(request, &queues).await
    }

    /// Scans queues for candidates, and repairs the cursors that it meets beyond their log.
    async fn scan(
        &self,
        request: &PopRequest,
        queues: &[(QueueId, &QueueName, Seed, &QueueRow)],
    ) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        if queues.is_empty() {
            return Ok(plan);
        }
        let ids: Vec<QueueId> = queues.iter().map(|(id, ..)| *id).collect();
        let limit = scan_limit(request.partitions);
        let found = self.inner.storage.candidates(&ids, &request.group, limit).await?;
        let beyond: Vec<PartitionId> = found.iter().filter(|f| f.beyond).map(|f| f.partition).collect();
        if !beyond.is_empty() {
            self.inner.storage.clamp_cursors(&beyond, &request.group).await?;
        }
        for found in found.into_iter().filter(|f| !f.beyond) {
            let Some((_, queue, seed, row)) = queues.get(found.queue) else { continue };
            plan.add(found.partition, queue, found.name, request, row, *seed);
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::scan_limit;

    #[test]
    fn a_scan_brings_some_candidates_more_than_are_claimed() {
        assert_eq!(scan_limit(Some(1)), 64);
        assert_eq!(scan_limit(Some(100)), 400);
        assert_eq!(scan_limit(Some(128)), 512);
        assert_eq!(scan_limit(Some(5000)), 5000);
        assert_eq!(scan_limit(None), i64::MAX);
    }
}
