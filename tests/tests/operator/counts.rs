//! I-48: what listings and details count, against counting every message by hand.

use std::collections::BTreeMap;

use anyhow::ensure;
use queen_core::api::{Counts, PopRequest, SeekTo};
use queen_tests::build::{acks, group, item, pop, queue};
use queen_types::{AckStatus, Group, StartPoint, Uuid};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tokio_postgres::Client;

use crate::support::{One, T};

/// Counts of every partition: each offset of each segment is looked at, each record and each lease.
async fn by_hand(client: &Client) -> anyhow::Result<BTreeMap<Uuid, Counts>> {
    let mut counts = BTreeMap::new();
    for row in client.query("SELECT id FROM queen.log_partitions", &[]).await? {
        let id: Uuid = row.get(0);
        let mut stored: Vec<i64> = Vec::new();
        let sql = "SELECT base_offset, end_offset FROM queen.log_segments WHERE partition_id = $1";
        for segment in client.query(sql, &[&id]).await? {
            stored.extend(segment.get::<_, i64>(0)..=segment.get::<_, i64>(1));
        }
        let sql =
            "SELECT consumer_group, committed, batch_end, lease_expires_at > now() FROM queen.log_consumers
                   WHERE partition_id = $1";
        let cursors = client.query(sql, &[&id]).await?;
        let committed = |named: bool| {
            let of = cursors.iter().filter(|c| (c.get::<_, &str>(0) != Group::QUEUE_MODE) == named);
            of.map(|c| c.get::<_, i64>(1)).min()
        };
        let worst = committed(true).or_else(|| committed(false)).unwrap_or(-1);
        let leased: i64 = cursors
            .iter()
            .filter(|c| c.get::<_, Option<bool>>(3) == Some(true))
            .map(|c| {
                stored.iter().filter(|at| **at > c.get::<_, i64>(1) && **at <= c.get::<_, i64>(2)).count()
                    as i64
            })
            .sum();
        let dead =
            client.query("SELECT FROM queen.log_dlq WHERE partition_id = $1", &[&id]).await?.len() as i64;
        let total = stored.len() as i64;
        let pending = stored.iter().filter(|at| **at > worst).count() as i64;
        let processing = leased.min(pending);
        let completed = (total - pending - dead).max(0);
        counts.insert(id, Counts { total, pending, processing, completed, dead_letter: dead });
    }
    Ok(counts)
}

/// Broken by a count that follows something else than the messages, cursors and records that are there.
#[tokio::test]
async fn i48_counts_are_those_of_counting_by_hand() -> anyhow::Result<()> {
    let one = One::start().await?;
    let mut rng = StdRng::seed_from_u64(48);
    for step in 0..160u32 {
        let lane = *["a", "b", "c"].choose(&mut rng).unwrap_or(&"a");
        let who = match rng.random_range(0..3) {
            0 => Group::queue_mode(),
            1 => group("g"),
            _ => group("h"),
        };
        let request = PopRequest {
            group: who.clone(),
            partitions: None,
            start: Some(*[StartPoint::All, StartPoint::New].choose(&mut rng).unwrap_or(&StartPoint::All)),
            ..pop("q", rng.random_range(1..8))
        };
        match rng.random_range(0..10) {
            0..4 => {
                let items = (0..rng.random_range(1..5)).map(|i| item("q", lane, &format!("{step}-{i}")));
                one.broker.push(T, items.collect(), None).await;
            }
            4..8 => {
                let answer = one.broker.pop(T, request).await?;
                let statuses =
                    [AckStatus::Completed, AckStatus::Completed, AckStatus::Failed, AckStatus::Dlq];
                let status = *statuses.choose(&mut rng).unwrap_or(&AckStatus::Completed);
                if rng.random_bool(0.8) {
                    one.broker.ack(T, who, acks(&answer, status)).await;
                }
            }
            8 => {
                let to = SeekTo::Offset(rng.random_range(-1..12));
                one.broker.seek(T, &queue("q"), &who, to).await?;
            }
            _ => drop(one.broker.delete_group(T, &who, None, rng.random()).await?),
        }
        if step % 8 > 0 {
            continue;
        }
        let Some(detail) = one.broker.queue(T, &queue("q")).await? else { continue };
        let wanted = by_hand(&one.client).await?;
        let mut totals = Counts::default();
        for partition in &detail.partitions {
            let counts = wanted.get(&partition.id.0).copied().unwrap_or_default();
            ensure!(partition.counts == counts, "{step}: {:?}, by hand {counts:?}", partition.counts);
            ensure!(counts.processing <= counts.pending);
            totals.total += counts.total;
            totals.pending += counts.pending;
            totals.processing += counts.processing;
            totals.completed += counts.completed;
            totals.dead_letter += counts.dead_letter;
        }
        ensure!(detail.partitions.len() == wanted.len());
        ensure!(detail.summary.counts == totals, "{step}: {:?}, by hand {totals:?}", detail.summary.counts);
    }
    Ok(())
}
