//! What no call does: time passes, leases end, retention deletes.

use queen_types::{Group, PartitionId};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::Scene;

impl Scene<'_> {
    /// A lease ends on one partition.
    pub(super) async fn expire(&mut self) -> anyhow::Result<()> {
        let mut held: Vec<(PartitionId, Group)> = Vec::new();
        for partition in self.model.partitions() {
            let leased = partition.cursors.iter().filter(|(_, cursor)| cursor.is_held());
            held.extend(
                partition.id.into_iter().flat_map(|id| leased.clone().map(move |(g, _)| (id, g.clone()))),
            );
        }
        let Some((id, group)) = held.choose(&mut self.rng).cloned() else { return Ok(()) };
        self.expire_one(id, &group).await
    }

    pub(super) async fn expire_one(&mut self, id: PartitionId, group: &Group) -> anyhow::Result<()> {
        self.note(format!("expire {group} on {id}"));
        let sql = "UPDATE queen.log_consumers SET lease_expires_at = clock_timestamp() - interval '1 s'
                   WHERE partition_id = $1 AND consumer_group = $2";
        self.world.client.execute(sql, &[&id.0, &group.as_str()]).await?;
        if let Some((_, partition)) = self.model.by_id(id)
            && let Some(lease) = partition.cursors.get_mut(group).and_then(|cursor| cursor.lease.as_mut())
        {
            lease.live = false;
        }
        Ok(())
    }

    /// Every retry delay is over.
    pub(super) async fn end_waits(&mut self) -> anyhow::Result<()> {
        self.note("end all waits".to_owned());
        let sql = "UPDATE queen.log_consumers SET retry_at = clock_timestamp() - interval '1 s'
                   WHERE retry_at IS NOT NULL";
        self.world.client.execute(sql, &[]).await?;
        for partition in self.model.partitions_mut() {
            partition.cursors.values_mut().for_each(|cursor| cursor.waiting = false);
        }
        Ok(())
    }

    /// Two hours pass for a partition: beyond every window.
    pub(super) async fn age(&mut self) -> anyhow::Result<()> {
        let Some(id) = self.some_partition() else { return Ok(()) };
        self.note(format!("age {id}"));
        for table in ["log_segments", "log_txns"] {
            let sql = format!(
                "UPDATE queen.{table} SET created_at = created_at - interval '2 hours' WHERE partition_id = $1"
            );
            self.world.client.execute(&sql, &[&id.0]).await?;
        }
        if let Some((_, partition)) = self.model.by_id(id) {
            partition.messages.iter_mut().for_each(|message| message.aged = true);
        }
        Ok(())
    }

    /// Retention deletes some of the oldest segments of a partition and keeps their hashes.
    pub(super) async fn trim(&mut self) -> anyhow::Result<()> {
        let Some(id) = self.some_partition() else { return Ok(()) };
        let sql = "SELECT end_offset FROM queen.log_segments WHERE partition_id = $1 ORDER BY base_offset";
        let ends: Vec<i64> =
            self.world.client.query(sql, &[&id.0]).await?.iter().map(|row| row.get(0)).collect();
        if ends.is_empty() {
            return Ok(());
        }
        // Rarely everything.
        let last = if self.rng.random_bool(0.15) {
            ends.len() - 1
        } else {
            self.rng.random_range(0..ends.len()) / 2
        };
        let start = ends[last] + 1;
        self.note(format!("trim {id} below {start}"));
        self.world
            .client
            .batch_execute(&format!(
                "BEGIN;
                 SELECT 1 FROM queen.log_partitions WHERE id = '{id}' FOR UPDATE;
                 INSERT INTO queen.log_txns (partition_id, base_offset, end_offset, created_at, hashes)
                 SELECT partition_id, base_offset, end_offset, created_at, hashes FROM queen.log_segments
                 WHERE partition_id = '{id}' AND end_offset < {start};
                 UPDATE queen.log_partitions SET log_start = {start}, last_offset = GREATEST(last_offset, (
                     SELECT max(end_offset) FROM queen.log_segments WHERE partition_id = '{id}'))
                 WHERE id = '{id}';
                 DELETE FROM queen.log_segments WHERE partition_id = '{id}' AND end_offset < {start};
                 COMMIT"
            ))
            .await?;
        self.history.deleted_below(id, start);
        if let Some((_, partition)) = self.model.by_id(id) {
            partition.log_start = start;
        }
        Ok(())
    }

    fn some_partition(&mut self) -> Option<PartitionId> {
        let all: Vec<PartitionId> = self.model.partitions().filter_map(|p| p.id).collect();
        all.choose(&mut self.rng).copied()
    }
}
