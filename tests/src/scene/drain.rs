//! The end of a run: everybody is given everything.

use anyhow::{Context, ensure};
use queen_core::api::{PopRequest, PopTarget};
use queen_types::{AckStatus, Group, PartitionId, StartPoint};
use rand::Rng;

use super::Scene;
use crate::build::ack;

impl Scene<'_> {
    pub(super) async fn drain(&mut self) -> anyhow::Result<()> {
        let mut held: Vec<(PartitionId, Group)> = Vec::new();
        for partition in self.model.partitions() {
            let id = partition.id.context("it has a row")?;
            held.extend(partition.cursors.iter().filter(|(_, c)| c.is_held()).map(|(g, _)| (id, g.clone())));
        }
        for (id, group) in held {
            self.expire_one(id, &group).await?;
        }
        self.end_waits().await?;
        for group in self.groups.clone() {
            for queue in self.queues.clone() {
                let request = PopRequest {
                    target: PopTarget::Queue(queue),
                    group: group.clone(),
                    batch: 50,
                    partitions: None,
                    wait: None,
                    auto_ack: self.rng.random_bool(0.5),
                    lease_seconds: None,
                    start: Some(StartPoint::All),
                };
                while self.pop_with(request.clone()).await? > 0 {
                    self.observe().await?;
                    if !request.auto_ack {
                        self.complete_held(&group).await?;
                    }
                }
            }
        }
        self.compare_everything().await?;
        self.check_nothing_lost()
    }

    /// Completes everything that is leased to the group. A key that a span holds twice stands for its first message
    /// until that one is done, so once is not always enough.
    async fn complete_held(&mut self, group: &Group) -> anyhow::Result<()> {
        loop {
            let mut items = Vec::new();
            for held in &self.held {
                let current = held.lease.as_ref().filter(|lease| self.model.held_by(lease) > 0);
                if let Some(lease) = current.filter(|_| held.group == *group) {
                    let keys = held.keys.iter();
                    items.extend(keys.map(|k| ack(held.partition, Some(lease), k, AckStatus::Completed)));
                }
            }
            if items.is_empty() {
                return Ok(());
            }
            self.ack_with(group.clone(), items).await?;
            self.observe().await?;
        }
    }

    fn check_nothing_lost(&self) -> anyhow::Result<()> {
        for partition in self.model.partitions() {
            let id = partition.id.context("it has a row")?;
            for (group, cursor) in &partition.cursors {
                let place = (id, group.clone());
                let end = partition.log_end();
                ensure!(
                    cursor.committed == end || partition.log_start > end,
                    "{place:?} is not drained: {cursor:?}"
                );
                self.history.check_nothing_lost(&place, end)?;
            }
        }
        Ok(())
    }
}
