//! Random acks: right ones, partial ones, mixed ones, and those of workers that lost their lease.

use anyhow::ensure;
use queen_core::api::AckItem;
use queen_types::{AckStatus, LeaseId};
use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};

use super::{Held, Scene, TENANT};

/// How far back a worker may come from.
const RECENT: usize = 10;

impl Scene<'_> {
    /// Somebody who was given messages lately.
    pub(super) fn some_held(&mut self) -> Option<Held> {
        let from = self.held.len().saturating_sub(RECENT);
        self.held[from..].choose(&mut self.rng).cloned()
    }

    pub(super) async fn ack(&mut self) -> anyhow::Result<()> {
        let Some(first) = self.some_held() else { return Ok(()) };
        let mut all = vec![first];
        for _ in 0..self.rng.random_range(0..3) {
            all.extend(self.some_held().filter(|other| other.group == all[0].group));
        }
        let mut items = Vec::new();
        for held in &all {
            let lease = self.some_lease(held);
            let mixed = self.rng.random_bool(0.1);
            for (key, status) in self.some_words(held) {
                let lease = if mixed { self.some_lease(held) } else { lease.clone() };
                items.push(AckItem {
                    partition: Some(Ok(held.partition)),
                    transaction_id: key,
                    status,
                    lease,
                    error: self.rng.random_bool(0.3).then(|| format!("why {}", self.rng.random_range(0..9))),
                });
            }
        }
        let group = all[0].group.clone();
        self.ack_with(group, items).await
    }

    pub(super) async fn ack_with(
        &mut self,
        group: queen_types::Group,
        items: Vec<AckItem>,
    ) -> anyhow::Result<()> {
        self.note("ack".to_owned());
        for item in &items {
            let AckItem { partition, transaction_id, status, lease, .. } = item;
            self.note(format!("  {group} {partition:?} {transaction_id} {status:?} {lease:?}"));
        }
        self.acked = true;
        let given = self.broker().ack(TENANT, group.clone(), items.clone()).await;
        let expected = self.model.ack(&group, &items);
        ensure!(given.len() == expected.len(), "{} answers to {} acks", given.len(), items.len());
        for (i, (given, expected)) in given.iter().zip(&expected).enumerate() {
            ensure!(given == expected, "ack {i} was answered\n{given:?} instead of\n{expected:?}");
        }
        Ok(())
    }

    /// Mostly the right lease, else none, or that of somebody else.
    fn some_lease(&mut self, held: &Held) -> Option<LeaseId> {
        match self.rng.random_range(0..20) {
            0..15 => held.lease.clone(),
            15..18 => None,
            _ => self.some_held().and_then(|other| other.lease),
        }
    }

    /// Keys with what is said of them.
    pub(super) fn some_words(&mut self, held: &Held) -> Vec<(String, AckStatus)> {
        const SIGNALS: [AckStatus; 3] = [AckStatus::Failed, AckStatus::Retry, AckStatus::Dlq];
        let mut keys = held.keys.clone();
        match self.rng.random_range(0..4) {
            0 => keys.truncate(self.rng.random_range(1..=keys.len())),
            1 => {
                keys.shuffle(&mut self.rng);
                keys.truncate(self.rng.random_range(1..=keys.len()));
            }
            _ => {}
        }
        if self.rng.random_bool(0.15) {
            let stray = format!("k{}", self.rng.random_range(0..50));
            keys.push(stray);
        }
        if self.rng.random_bool(0.1) {
            keys.extend(keys.choose(&mut self.rng).cloned());
        }
        let signals = [0.0, 0.0, 0.2, 0.6].choose(&mut self.rng).copied().unwrap_or(0.0);
        let failing = self.rng.random_bool(0.2);
        let mut words = Vec::new();
        for key in keys {
            let status = if failing {
                AckStatus::Failed
            } else if self.rng.random_bool(signals) {
                SIGNALS[self.rng.random_range(0..SIGNALS.len())]
            } else {
                AckStatus::Completed
            };
            words.push((key, status));
        }
        words
    }

    /// I-28 beside the answer: no expiry comes earlier than it was.
    pub(super) async fn extend(&mut self) -> anyhow::Result<()> {
        let Some(lease) = self.some_held().and_then(|held| held.lease) else { return Ok(()) };
        let seconds = self.rng.random_range(1..900);
        self.note(format!("extend {lease:?} by {seconds}"));
        let before = self.expiries(&lease).await?;
        let answer = self.broker().extend_lease(TENANT, &lease, seconds).await?;
        let after = self.expiries(&lease).await?;
        ensure!(answer.renewed as usize == self.model.held_by(&lease), "renewed {}", answer.renewed);
        ensure!(before.len() == after.len(), "an extension changed who holds what");
        for (old, new) in before.iter().zip(&after) {
            ensure!(new >= old, "I-28: an expiry went from {old} back to {new}");
        }
        let live = self.live_expiries(&lease).await?;
        ensure!(
            answer.expires_at.map(|at| at.0) == live.iter().min().copied(),
            "{:?} is not the earliest expiry of {live:?}",
            answer.expires_at
        );
        Ok(())
    }

    async fn expiries(&self, lease: &LeaseId) -> anyhow::Result<Vec<i64>> {
        let sql = "SELECT (extract(epoch FROM lease_expires_at) * 1000000)::int8 FROM queen.log_consumers
                   WHERE worker_id = $1 ORDER BY partition_id";
        let rows = self.world.client.query(sql, &[&lease.as_str()]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn live_expiries(&self, lease: &LeaseId) -> anyhow::Result<Vec<i64>> {
        let sql = "SELECT (extract(epoch FROM lease_expires_at) * 1000000)::int8 FROM queen.log_consumers
                   WHERE worker_id = $1 AND lease_expires_at >= clock_timestamp()";
        let rows = self.world.client.query(sql, &[&lease.as_str()]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}
