use anyhow::{Context, ensure};
use queen_core::api::{PopRequest, SeekTo};
use queen_tests::build::{acks, group, item, keys, pop, pop_partition, queue};
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, StartPoint, Timestamp};

use crate::support::{One, T};

fn of_group(name: &str, batch: u32) -> PopRequest {
    PopRequest { group: group(name), partitions: None, ..pop("q", batch) }
}

async fn push_each(one: &One, keys: &[&str]) {
    // One segment each.
    for key in keys {
        one.broker.push(T, vec![item("q", "p", key)], None).await;
    }
}

/// Broken by a target that is off by one, or by a cursor that ends outside the log.
#[tokio::test]
async fn a_seek_goes_where_it_is_told() -> anyhow::Result<()> {
    let one = One::start().await?;
    push_each(&one, &["a", "b", "c", "d"]).await;
    let all = of_group("g", 10);
    ensure!(one.drain(&all).await? == ["a", "b", "c", "d"]);
    let stamp = one.client.query_one("SELECT (extract(epoch FROM created_at) * 1000000)::int8 FROM queen.log_segments WHERE base_offset = 2", &[]).await?;
    let third = Timestamp(stamp.get(0));
    for (to, rest) in [
        (SeekTo::Beginning, &["a", "b", "c", "d"][..]),
        (SeekTo::End, &[]),
        (SeekTo::Offset(-1), &["a", "b", "c", "d"]),
        (SeekTo::Offset(1), &["c", "d"]),
        (SeekTo::Offset(i64::MAX), &[]),
        (SeekTo::At(third), &["c", "d"]),
        (SeekTo::At(Timestamp(third.0 + 1)), &["d"]),
        (SeekTo::At(Timestamp(0)), &["a", "b", "c", "d"]),
        (SeekTo::At(Timestamp(i64::MAX / 2)), &[]),
    ] {
        let sought = one.broker.seek(T, &queue("q"), &group("g"), to).await?.context("a queue")?;
        ensure!(sought.partitions == 1);
        let cursor = &one.broker.group(T, &group("g")).await?[0];
        ensure!(cursor.pending == rest.len() as i64, "{to:?}: {cursor:?}");
        ensure!(one.drain(&all).await? == rest, "{to:?}");
        check_tables(&one.client).await?;
    }
    ensure!(one.broker.seek(T, &queue("none"), &group("g"), SeekTo::End).await?.is_none());
    let nowhere = queen_tests::build::partition("none");
    ensure!(one.broker.seek_partition(T, &queue("q"), &nowhere, &group("g"), SeekTo::End).await?.is_none());
    Ok(())
}

/// Broken by a bisection that misses a segment: on logs with gaps, equal times, and offsets that begin anywhere. What a
/// plain search says is right.
#[tokio::test]
async fn a_seek_to_an_instant_finds_the_first_segment_of_it() -> anyhow::Result<()> {
    let one = One::start().await?;
    one.broker.push(T, vec![item("q", "p", "k")], None).await;
    one.client
        .batch_execute(
            "SELECT setseed(0.5);
             DELETE FROM queen.log_segments;
             INSERT INTO queen.log_partitions (queue_id, name) SELECT id, n::text FROM queen.queues, generate_series(1, 40) n;
             -- Up to 30 segments each; every fifth is missing, some share their time with the one before.
             INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, hashes, blob)
             SELECT p.id, 7 + n * 10, 7 + n * 10 + (n * 7) % 10,
                    '2031-01-01'::timestamptz + make_interval(secs => n - n % 3), '', ''
             FROM queen.log_partitions p, generate_series(0, 29) n
             WHERE n < length(p.name) * 15 AND random() > 0.2;
             UPDATE queen.log_partitions p SET log_start = COALESCE(
                 (SELECT min(base_offset) FROM queen.log_segments s WHERE s.partition_id = p.id), 0),
                 last_offset = COALESCE(
                 (SELECT max(end_offset) FROM queen.log_segments s WHERE s.partition_id = p.id), -1);",
        )
        .await?;
    let start = Timestamp::parse("2031-01-01T00:00:00Z")?;
    for tenths in -10..320 {
        let at = Timestamp(start.0 + tenths * 100_000);
        one.broker.seek(T, &queue("q"), &group("g"), SeekTo::At(at)).await?;
        let wrong = one
            .client
            .query(
                "SELECT p.name, c.committed, w.want FROM queen.log_partitions p
                 JOIN queen.log_consumers c ON c.partition_id = p.id
                 CROSS JOIN LATERAL (SELECT COALESCE(
                     (SELECT min(s.base_offset) - 1 FROM queen.log_segments s
                      WHERE s.partition_id = p.id AND s.created_at >= 'epoch'::timestamptz + $1::int8 * interval '1 microsecond'),
                     p.last_offset) AS want) w
                 WHERE c.committed <> w.want",
                &[&at.0],
            )
            .await?;
        ensure!(wrong.is_empty(), "{tenths}: {wrong:?}");
    }
    Ok(())
}

/// E-47. Broken by an ack, an extension or a whole batch that finds its cursor although a seek voided the lease.
#[tokio::test]
async fn leases_from_before_a_seek_are_void() -> anyhow::Result<()> {
    let one = One::start().await?;
    push_each(&one, &["a", "b", "c"]).await;
    for status in [AckStatus::Completed, AckStatus::Failed, AckStatus::Dlq] {
        one.broker.seek(T, &queue("q"), &group("g"), SeekTo::Beginning).await?;
        let held = one.broker.pop(T, of_group("g", 3)).await?;
        ensure!(keys(&held) == ["a", "b", "c"]);
        one.broker.seek(T, &queue("q"), &group("g"), SeekTo::Offset(0)).await?;
        let results = one.settle(&group("g"), &held, status).await;
        ensure!(results.iter().all(|r| !r.success), "{status:?}: {results:?}");
        let lease = held.lease.as_ref().context("a lease")?;
        ensure!(one.broker.extend_lease(T, lease, 60).await?.renewed == 0);
        let cursor = &one.broker.group(T, &group("g")).await?[0];
        ensure!(cursor.pending == 2 && !cursor.leased, "{cursor:?}");
        ensure!(one.drain(&of_group("g", 1)).await? == ["b", "c"]);
    }
    check_tables(&one.client).await
}

/// Broken by a seek that leaves the retry budget or the delivery count of a message behind.
#[tokio::test]
async fn a_seek_gives_every_message_its_retries_back() -> anyhow::Result<()> {
    let one = One::start().await?;
    push_each(&one, &["a"]).await;
    for _ in 0..2 {
        let popped = one.broker.pop(T, of_group("g", 1)).await?;
        one.settle(&group("g"), &popped, AckStatus::Failed).await;
    }
    one.broker.seek(T, &queue("q"), &group("g"), SeekTo::Beginning).await?;
    let popped = one.broker.pop(T, of_group("g", 1)).await?;
    ensure!(popped.partitions[0].delivery_attempt == 1);
    let row =
        one.client.query_one("SELECT batch_retry_count, retry_offset FROM queen.log_consumers", &[]).await?;
    ensure!(row.get::<_, i32>(0) == 0 && row.get::<_, Option<i64>>(1).is_none());
    Ok(())
}

/// A parked pop learns of a seek at once. Broken by a hot list that still takes the queue for empty.
#[tokio::test]
async fn a_parked_pop_gets_what_a_seek_brings_back() -> anyhow::Result<()> {
    let one = One::start().await?;
    push_each(&one, &["a", "b"]).await;
    for request in [of_group("g", 10), PopRequest { group: group("g"), ..pop_partition("q", "p", 10) }] {
        one.drain(&request).await?;
        let broker = one.broker.clone();
        let waiting = PopRequest { wait: Some(std::time::Duration::from_secs(20)), ..request };
        let parked = tokio::spawn(async move { broker.pop(T, waiting).await });
        queen_testkit::wait_until("the pop to park", std::time::Duration::from_secs(5), async || {
            one.broker.parked().iter().any(|(name, pops)| name == "q" && *pops == 1)
        })
        .await?;
        let began = std::time::Instant::now();
        one.broker.seek(T, &queue("q"), &group("g"), SeekTo::Beginning).await?;
        let answer = parked.await??;
        ensure!(keys(&answer) == ["a", "b"]);
        ensure!(began.elapsed() < std::time::Duration::from_millis(900), "{:?}", began.elapsed());
        one.settle(&group("g"), &answer, AckStatus::Completed).await;
    }
    Ok(())
}

/// Broken by a chunk that is left out, by cursors that are not made, or by a partition named by the empty text.
#[tokio::test]
async fn a_seek_of_many_partitions_sets_all_of_them() -> anyhow::Result<()> {
    let one = One::start().await?;
    one.broker.push(T, vec![item("q", "", "first"), item("q", "zz", "last")], None).await;
    one.client
        .batch_execute(
            "INSERT INTO queen.log_partitions (queue_id, name) SELECT id, n::text FROM queen.queues, generate_series(1, 2400) n",
        )
        .await?;
    let sought = one.broker.seek(T, &queue("q"), &group("g"), SeekTo::Beginning).await?.context("a queue")?;
    ensure!(sought.partitions == 2402, "{sought:?}");
    let cursors =
        one.client.query_one("SELECT count(*) FROM queen.log_consumers WHERE committed = -1", &[]).await?;
    ensure!(cursors.get::<_, i64>(0) == 2402);
    let row = one.client.query_one("SELECT partition_name, reason FROM queen.hotlist_repairs", &[]).await?;
    ensure!((row.get::<_, Option<&str>>(0), row.get::<_, &str>(1)) == (None, "seek-queue"));
    let mut found = one.drain(&of_group("g", 10)).await?;
    found.sort();
    ensure!(found == ["first", "last"]);
    Ok(())
}

/// Broken by a registration that outlives its group, or by one that does not when it should.
#[tokio::test]
async fn a_deleted_group_begins_anew() -> anyhow::Result<()> {
    let one = One::start().await?;
    push_each(&one, &["a", "b"]).await;
    let news = PopRequest { start: Some(StartPoint::New), ..of_group("news", 10) };
    ensure!(one.drain(&news).await?.is_empty());
    push_each(&one, &["c"]).await;
    ensure!(one.drain(&news).await? == ["c"]);

    // With its registration kept it gets again what came since it subscribed, and no more.
    let deleted = one.broker.delete_group(T, &group("news"), Some(&queue("q")), false).await?;
    ensure!((deleted.partitions, deleted.registration) == (1, false));
    ensure!(one.drain(&news).await? == ["c"]);

    // Without, its next pop is a first contact.
    let held =
        one.broker.pop(T, PopRequest { start: Some(StartPoint::All), ..of_group("other", 10) }).await?;
    let deleted = one.broker.delete_group(T, &group("news"), None, true).await?;
    ensure!((deleted.partitions, deleted.registration) == (1, true));
    ensure!(
        one.drain(&PopRequest { start: Some(StartPoint::All), ..of_group("news", 10) }).await?
            == ["a", "b", "c"]
    );
    let results = one.broker.ack(T, group("other"), acks(&held, AckStatus::Completed)).await;
    ensure!(results.iter().all(|r| r.success), "another group is left alone");

    let deleted = one.broker.delete_group(T, &group("nobody"), None, true).await?;
    ensure!((deleted.partitions, deleted.registration) == (0, false));
    check_tables(&one.client).await
}

/// Broken by a cursor that a changed subscription moves, or by a partition that does not follow it.
#[tokio::test]
async fn a_changed_subscription_counts_for_partitions_that_are_new_to_the_group() -> anyhow::Result<()> {
    let one = One::start().await?;
    push_each(&one, &["a"]).await;
    let news = PopRequest { start: Some(StartPoint::New), ..of_group("g", 10) };
    ensure!(one.drain(&news).await?.is_empty());
    let far = Timestamp::parse("2200-01-01T00:00:00Z")?;
    ensure!(one.broker.change_subscription(T, &group("g"), far).await?.queues == 1);
    one.broker.push(T, vec![item("q", "late", "b")], None).await;
    ensure!(one.drain(&news).await?.is_empty(), "it begins in the far future there");
    ensure!(one.broker.change_subscription(T, &group("g"), Timestamp::EPOCH).await?.queues == 1);
    one.broker.push(T, vec![item("q", "later", "c")], None).await;
    let found = one.drain(&news).await?;
    ensure!(found.contains(&"c".to_owned()) && !found.contains(&"a".to_owned()), "{found:?}");
    ensure!(one.broker.change_subscription(T, &group("nobody"), far).await?.queues == 0);
    Ok(())
}
