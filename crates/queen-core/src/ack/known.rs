//! Which items of an ack complete a whole batch that this broker delivered.

use std::collections::HashMap;

use queen_storage::ack::{AckRequest, FullAck};
use queen_types::{AckStatus, Group, LeaseId, PartitionId, TenantId};

use super::fusion::Full;
use crate::leases::{KeySet, Leases};

/// The items of a request that complete one batch.
pub(super) struct Hit {
    pub(super) full: Full,
    /// Positions in the request.
    pub(super) items: Vec<usize>,
}

/// The items of one partition.
struct Named<'r> {
    lease: Option<&'r LeaseId>,
    items: Vec<usize>,
    /// All completed, all under this one lease.
    whole: bool,
}

/// Finds the partitions of which a request completes everything that was delivered under one lease, and nothing else.
/// What it says of any other partition is left for the other way: it has several bundles, or a decision to make.
pub(super) fn hits(leases: &Leases, tenant: TenantId, group: &Group, requests: &[AckRequest]) -> Vec<Hit> {
    if !leases.has_batches() {
        return Vec::new();
    }
    let mut named: HashMap<PartitionId, Named<'_>> = HashMap::new();
    for (i, request) in requests.iter().enumerate() {
        let entry = named.entry(request.partition).or_insert_with(|| Named {
            lease: request.lease.as_ref(),
            items: Vec::new(),
            whole: true,
        });
        entry.whole &= request.status == AckStatus::Completed && entry.lease == request.lease.as_ref();
        entry.items.push(i);
    }
    let mut hits = Vec::new();
    for (partition, named) in named {
        let (Some(lease), true) = (named.lease, named.whole) else { continue };
        let Some(batch) = leases.batch(tenant, group, lease, partition) else { continue };
        // Fewer items than ids need no hashing.
        if named.items.len() < batch.keys.len() {
            continue;
        }
        let acked = named.items.iter().filter_map(|i| requests.get(*i)).map(|r| r.transaction_id.as_str());
        if KeySet::of(acked) != batch.keys {
            continue;
        }
        let ack = FullAck {
            partition,
            group: group.clone(),
            lease: lease.clone(),
            batch_end: batch.end,
            row: batch.row,
        };
        hits.push(Hit { full: Full { tenant, queue: batch.queue, ack }, items: named.items });
    }
    hits
}
