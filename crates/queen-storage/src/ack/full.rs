//! Whole batches, completed by the holders of their leases: one statement for any number of them.

use queen_pg::Tid;
use queen_types::{Group, LeaseId, Offset, PartitionId, Uuid};

use crate::{Storage, StorageError, sql};

/// A batch of which everything is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullAck {
    /// Partition.
    pub partition: PartitionId,
    /// Group.
    pub group: Group,
    /// The lease that the batch was delivered under.
    pub lease: LeaseId,
    /// Offset of the last message delivered.
    pub batch_end: Offset,
    /// Where the cursor lay when it was last seen; wrong is harmless.
    pub row: Tid,
}

/// A batch that was completed: its lease is gone, and its cursor stands at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullAcked {
    /// Where the cursor lies now.
    pub row: Tid,
}

impl Storage {
    /// Completes whole batches in one transaction of one statement, one answer per batch, in order. `None`: the row is
    /// not at that address, or it is not held by that lease, alive, up to that offset; nothing changed of it, and what
    /// the ack comes to is for [`Storage::ack`] to say. Of two requests for one row at most one is answered.
    ///
    /// What is written, and what a caller may answer, is what [`Storage::ack`] comes to when every message of the batch is
    /// acked as completed under the lease.
    ///
    /// # Errors
    /// See [`StorageError`]; nothing changed then, unless the outcome is unknown.
    ///
    /// # Cancel safety
    /// A dropped call may have taken effect.
    pub async fn ack_full(&self, acks: &[FullAck]) -> Result<Vec<Option<FullAcked>>, StorageError> {
        let mut answers = vec![None; acks.len()];
        if acks.is_empty() {
            return Ok(answers);
        }
        let mut order: Vec<usize> = (0..acks.len()).collect();
        order.sort_unstable_by(|a, b| {
            let key = |i: &usize| acks.get(*i).map(|ack| (ack.partition, &ack.group));
            key(a).cmp(&key(b))
        });
        let sorted: Vec<&FullAck> = order.iter().filter_map(|i| acks.get(*i)).collect();
        let rows: Vec<Tid> = sorted.iter().map(|a| a.row).collect();
        let partitions: Vec<Uuid> = sorted.iter().map(|a| a.partition.0).collect();
        let groups: Vec<&str> = sorted.iter().map(|a| a.group.as_str()).collect();
        let leases: Vec<&str> = sorted.iter().map(|a| a.lease.as_str()).collect();
        let ends: Vec<Offset> = sorted.iter().map(|a| a.batch_end).collect();
        let mut conn = self.inner.pool.get().await?;
        for row in conn.query(sql::ACK_FULL, &[&rows, &partitions, &groups, &leases, &ends]).await? {
            let request: i32 = row.get(0);
            let answer = usize::try_from(request)
                .ok()
                .and_then(|i| order.get(i))
                .and_then(|i| answers.get_mut(*i))
                .ok_or(StorageError::Misaligned("full ack"))?;
            *answer = Some(FullAcked { row: row.get(1) });
        }
        Ok(answers)
    }
}
