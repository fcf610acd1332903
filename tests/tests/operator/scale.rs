//! Figures that the product promises, on a queue of a size that shows them.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use queen_core::api::{PopRequest, PushItem, SeekTo};
use queen_tests::build::{acks, group, item, pop, queue};
use queen_types::{AckStatus, Timestamp};

use crate::support::{One, T};

const LANES: usize = 20;

/// Messages; `QUEEN_TEST_MESSAGES` for the figures of the documentation.
fn messages() -> usize {
    std::env::var("QUEEN_TEST_MESSAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

/// A parked consumer that has everything behind it gets the last hour again within a second of the seek. Broken by a seek
/// whose cost grows with the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_seek_back_by_an_hour_redelivers_within_a_second() -> anyhow::Result<()> {
    let one = One::start().await?;
    let each = messages() / LANES;
    for first in (0..each).step_by(100) {
        let items: Vec<PushItem> = (0..LANES)
            .flat_map(|lane| {
                (first..each.min(first + 100)).map(move |i| item("q", &format!("l{lane}"), &format!("{i}")))
            })
            .collect();
        one.broker.push(T, items, None).await;
    }
    // Two hours of it, evenly.
    one.client
        .batch_execute(
            "UPDATE queen.log_segments s SET created_at = now() - interval '2 hours'
                 + interval '2 hours' * (s.base_offset::float8 / (SELECT max(end_offset) FROM queen.log_segments))",
        )
        .await?;
    let request = PopRequest { group: group("g"), partitions: None, ..pop("q", 100) };
    one.broker.pop(T, PopRequest { batch: 1, ..request.clone() }).await?;
    one.broker.seek(T, &queue("q"), &group("g"), SeekTo::End).await?;
    ensure!(one.broker.pop(T, request.clone()).await?.is_empty());
    let broker = one.broker.clone();
    let waiting = PopRequest { wait: Some(Duration::from_secs(30)), ..request.clone() };
    let parked = tokio::spawn(async move { (broker.pop(T, waiting).await, Instant::now()) });
    queen_testkit::wait_until("the pop to park", Duration::from_secs(5), async || {
        !one.broker.parked().is_empty()
    })
    .await?;

    let hour_ago = one
        .client
        .query_one("SELECT (extract(epoch FROM now() - interval '1 hour') * 1000000)::int8", &[])
        .await?;
    let began = Instant::now();
    let sought = one.broker.seek(T, &queue("q"), &group("g"), SeekTo::At(Timestamp(hour_ago.get(0)))).await?;
    let took = began.elapsed();
    let (answer, at) = parked.await?;
    let answer = answer?;
    let first = at - began;
    ensure!(sought.context("a queue")?.partitions == LANES as u64);
    ensure!(answer.len() == 100);
    ensure!(first < Duration::from_secs(1), "{first:?} until the first redelivery");
    let oldest = answer.partitions.iter().flat_map(|p| &p.messages).map(|(at, _)| at.0).min();
    ensure!(oldest.is_some_and(|oldest| oldest >= hour_ago.get::<_, i64>(0)), "nothing older");
    ensure!(one.broker.ack(T, group("g"), acks(&answer, AckStatus::Completed)).await[0].success);
    let cursors = one.broker.group(T, &group("g")).await?;
    let pending: i64 = cursors.iter().map(|cursor| cursor.pending).sum();
    let half = messages() as i64 / 2;
    ensure!((half - 100 - 100 * LANES as i64..=half).contains(&pending), "{pending} pending");
    println!("{} messages: the seek took {took:?}, the first redelivery came after {first:?}", messages());
    Ok(())
}
