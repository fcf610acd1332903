//! Statistics and metrics of whole brokers.

use std::time::Duration;

use anyhow::ensure;
use queen_core::Broker;
use queen_core::api::{QueueFilter, Span};
use queen_testkit::wait_until;
use queen_tests::build::{acks, item, pop, queue};
use queen_types::{AckStatus, TenantId, Timestamp};

use crate::retention::busy;

const T: TenantId = TenantId::DEFAULT;
const PATIENCE: Duration = Duration::from_secs(20);
const EVER: Span = Span { from: Timestamp(0), to: Timestamp(4_000_000_000_000_000), bucket_seconds: 3_600 };

/// I-48: the identities of the counters, against what was done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_counters_are_what_was_done() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let broker = Broker::start(busy(&db, "one")).await?;
    for i in 0..10 {
        broker.push(T, vec![item("a.x.q", &format!("p{}", i % 2), &format!("m{i}"))], None).await;
    }
    broker.push(T, vec![item("b", "p", "m")], None).await;
    let mut request = pop("a.x.q", 4);
    request.partitions = Some(1);
    let answer = broker.pop(T, request).await?;
    let taken = answer.len();
    broker.ack(T, queen_types::Group::new("__QUEUE_MODE__")?, acks(&answer, AckStatus::Completed)).await;
    let held = broker.pop(T, pop("b", 1)).await?;
    ensure!(taken > 0 && held.len() == 1);
    let taken = i64::try_from(taken)?;
    broker.refresh_stats().await?;
    let mut seen = None;
    wait_until("fresh counters", PATIENCE, async || {
        seen = broker.overview(T).await.ok();
        seen.as_ref().is_some_and(|o| o.counts.processing == 1 && o.retained_bytes > 0)
    })
    .await?;
    let o = seen.ok_or_else(|| anyhow::anyhow!("no overview"))?;
    ensure!((o.queues, o.partitions, o.namespaces, o.tasks) == (2, 3, 2, 1), "{o:?}");
    ensure!((o.counts.total, o.counts.backlog) == (11, 11 - taken), "{o:?}");
    ensure!(o.counts.completed == (o.counts.total - o.counts.backlog - o.counts.dead_letter).max(0), "{o:?}");
    ensure!(o.counts.processing <= o.counts.backlog && o.offset_lag.min <= o.offset_lag.median, "{o:?}");
    ensure!(o.age_seconds.is_some_and(|age| age < 5), "{o:?}");
    let filter = QueueFilter { queue: Some(queue("a.x.q")), limit: 10, ..QueueFilter::default() };
    let stored = broker.stored_queues(T, &filter).await?;
    ensure!(stored.len() == 1 && stored[0].counts.total == 10 && stored[0].segments == 10, "{stored:?}");
    ensure!(stored[0].partitions == 2 && stored[0].counts.completed == taken, "{stored:?}");
    broker.delete_queue(T, &queue("a.x.q")).await?;
    wait_until("the counters of the deleted queue to go", PATIENCE, async || {
        broker.overview(T).await.is_ok_and(|o| (o.queues, o.counts.total, o.namespaces) == (1, 1, 1))
    })
    .await?;
    broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_counted_is_in_the_series() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let broker = Broker::start(busy(&db, "one")).await?;
    for i in 0..6 {
        broker.push(T, vec![item("q", "p", &format!("m{i}"))], None).await;
    }
    let answer = broker.pop(T, pop("q", 6)).await?;
    broker.ack(T, queen_types::Group::new("__QUEUE_MODE__")?, acks(&answer, AckStatus::Completed)).await;
    ensure!(broker.pop(T, pop("q", 6)).await?.is_empty());
    let name = queue("q");
    let mut series = Vec::new();
    wait_until("the rows of the queue", PATIENCE, async || {
        series = broker.queue_series(T, EVER, Some(&name), None, None).await.unwrap_or_default();
        series.iter().map(|b| b.ack_success).sum::<i64>() == 6 && series.iter().any(|b| b.pop_empty > 0)
    })
    .await?;
    let sum = |of: fn(&queen_core::api::QueueBucket) -> i64| series.iter().map(of).sum::<i64>();
    ensure!(
        (sum(|b| b.push_requests), sum(|b| b.push_messages), sum(|b| b.pop_messages)) == (6, 6, 6),
        "{series:?}"
    );
    ensure!((sum(|b| b.pop_empty), sum(|b| b.created), sum(|b| b.ack_failed)) == (1, 1, 0), "{series:?}");
    let (workers, brokers) = broker.worker_series(EVER, Some("one"), None).await?;
    let total = |of: fn(&queen_core::api::WorkerBucket) -> i64| workers.iter().map(of).sum::<i64>();
    ensure!((total(|w| w.push_messages), total(|w| w.pop_requests), total(|w| w.ack_success)) == (6, 2, 6));
    ensure!(brokers.len() == 1 && brokers[0].server == "one" && brokers[0].messages == 18, "{brokers:?}");
    let system = broker.system_series(EVER, Some("one")).await?;
    ensure!(system.iter().any(|v| v.value == "rss_bytes" && v.last > 1e6), "{system:?}");
    let other = TenantId(uuid::Uuid::from_u128(7));
    ensure!(
        broker.queue_series(other, EVER, None, None, None).await?.is_empty(),
        "another tenant sees none of it"
    );
    broker.shutdown().await;
    Ok(())
}
