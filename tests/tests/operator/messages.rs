use std::sync::Arc;

use anyhow::{Context, ensure};
use bytes::Bytes;
use queen_core::api::{
    BrowseFilter, DeadLetter, DlqFilter, NewTrace, PopRequest, PushItem, ReplayOutcome, ReplayTarget,
};
use queen_tests::build::{ack, acks, group, item, keys, pop_partition, queue};
use queen_tests::failpoint::{Fault, Often, Point, arm, disarm};
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, Group, MessageStatus, PartitionId, Uuid};

use crate::support::{One, T};

fn of_group(name: &str, batch: u32) -> PopRequest {
    PopRequest { group: group(name), ..pop_partition("q", "p", batch) }
}

async fn letters(one: &One) -> anyhow::Result<Vec<DeadLetter>> {
    let filter = DlqFilter { queue: Some(queue("q")), limit: 99, ..DlqFilter::default() };
    Ok(one.broker.dead_letters(T, filter).await?.records)
}

async fn statuses(one: &One) -> anyhow::Result<Vec<(String, MessageStatus)>> {
    let filter = BrowseFilter { queue: Some(queue("q")), limit: 99, ..BrowseFilter::default() };
    let page = one.broker.browse(T, &filter).await?;
    Ok(page.messages.into_iter().map(|m| (m.transaction_id, m.status)).collect())
}

/// Broken by a state that the cursors do not bear out, or by a page that skips or repeats a message.
#[tokio::test]
async fn browsing_tells_what_became_of_every_message() -> anyhow::Result<()> {
    let one = One::start().await?;
    one.broker.push(T, ["a", "b"].map(|key| item("q", "p", key)).to_vec(), None).await;
    one.broker.push(T, ["c", "d", "e"].map(|key| item("q", "p", key)).to_vec(), None).await;
    use MessageStatus::{Completed, DeadLetter, Pending, Processing};
    let is = |wanted: [MessageStatus; 5]| -> Vec<(String, MessageStatus)> {
        ["e", "d", "c", "b", "a"].iter().map(|key| (*key).to_owned()).zip(wanted).collect()
    };
    ensure!(statuses(&one).await? == is([Pending; 5]));
    let popped = one.broker.pop(T, of_group("g", 3)).await?;
    ensure!(statuses(&one).await? == is([Pending, Pending, Processing, Processing, Processing]));
    let batch = &popped.partitions[0];
    let one_dead = vec![
        ack(batch.partition_id, popped.lease.as_ref(), "a", AckStatus::Completed),
        ack(batch.partition_id, popped.lease.as_ref(), "b", AckStatus::Dlq),
    ];
    ensure!(one.broker.ack(T, group("g"), one_dead).await[1].dlq);
    ensure!(statuses(&one).await? == is([Pending, Pending, Pending, DeadLetter, Completed]));

    for status in MessageStatus::ALL {
        let filter = BrowseFilter {
            queue: Some(queue("q")),
            status: Some(status),
            limit: 99,
            ..BrowseFilter::default()
        };
        let found = one.broker.browse(T, &filter).await?.messages;
        ensure!(found.iter().all(|m| m.status == status), "{status:?}");
        let wanted = [(Pending, 3), (Processing, 0), (Completed, 1), (DeadLetter, 1)];
        ensure!(wanted.contains(&(status, found.len())), "{status:?}: {}", found.len());
    }
    let mut paged = Vec::new();
    for offset in 0..6 {
        let filter = BrowseFilter { queue: Some(queue("q")), limit: 1, offset, ..BrowseFilter::default() };
        paged.extend(one.broker.browse(T, &filter).await?.messages.into_iter().map(|m| m.transaction_id));
    }
    ensure!(paged == ["e", "d", "c", "b", "a"]);
    let detail = one.broker.message(T, batch.partition_id, "b").await?.context("the message")?;
    ensure!(detail.status == DeadLetter && detail.groups[0].1 && detail.mode.groups == 1);
    ensure!(one.broker.message(T, batch.partition_id, "zz").await?.is_none());
    ensure!(one.broker.message(T, PartitionId(Uuid::nil()), "a").await?.is_none());
    Ok(())
}

/// Broken by a page beyond the first 500 segments, or by a span of time that is cut at the wrong segment.
#[tokio::test]
async fn browsing_goes_through_long_logs_and_spans_of_time() -> anyhow::Result<()> {
    let one = One::start().await?;
    for part in 0..2 {
        let lane = format!("p{part}");
        for i in 0..330 {
            one.broker.push(T, vec![item("q", &lane, &format!("{part}-{i}"))], None).await;
        }
    }
    // A second between two segments, over both partitions.
    one.client
        .batch_execute(
            "UPDATE queen.log_segments s SET created_at = now() - make_interval(secs => 700 - 2 * base_offset - o.n)
             FROM (SELECT id, row_number() OVER (ORDER BY name) - 1 AS n FROM queen.log_partitions) o
             WHERE o.id = s.partition_id",
        )
        .await?;
    let browse = async |filter: BrowseFilter| one.broker.browse(T, &filter).await;
    let all = browse(BrowseFilter { limit: 2000, ..BrowseFilter::default() }).await?.messages;
    ensure!(all.len() == 660);
    ensure!(all.windows(2).all(|pair| pair[0].created_at > pair[1].created_at), "newest first");
    let deep = browse(BrowseFilter { limit: 7, offset: 600, ..BrowseFilter::default() }).await?.messages;
    ensure!(deep == all[600..607]);
    let span = browse(BrowseFilter {
        from: Some(all[20].created_at),
        before: Some(all[9].created_at),
        limit: 2000,
        ..BrowseFilter::default()
    })
    .await?;
    ensure!(span.messages == all[10..=20]);
    Ok(())
}

/// Broken by a replay that changes the message, forgets who sent it, or leaves its dead letter behind.
#[tokio::test]
async fn a_replay_moves_the_newest_dead_letter_as_it_was() -> anyhow::Result<()> {
    let one = One::start().await?;
    let trace_id = Uuid::from_u128(7);
    let payload = Bytes::from_static(br#"{"z":1.10,"a":"\u0000\ud800"}"#);
    let pushed = PushItem { payload: payload.clone(), trace_id: Some(trace_id), ..item("q", "p", "k") };
    one.broker.push(T, vec![pushed], Some(Arc::from("alice"))).await;
    let stored = one.client.query_one("SELECT created_at FROM queen.log_segments", &[]).await?;
    let stored: std::time::SystemTime = stored.get(0);
    let mut partition = None;
    for name in ["g", "h"] {
        let popped = one.broker.pop(T, of_group(name, 1)).await?;
        partition = Some(popped.partitions[0].partition_id);
        ensure!(one.broker.ack(T, group(name), acks(&popped, AckStatus::Dlq)).await[0].dlq);
    }
    let partition = partition.context("a partition")?;
    let kept = letters(&one).await?;
    for letter in &kept {
        ensure!(letter.producer_sub.as_deref() == Some("alice"));
        let at = letter.message_created_at.context("when it was stored")?;
        let micros = stored.duration_since(std::time::UNIX_EPOCH)?.as_micros();
        ensure!(i128::from(at.0) == i128::try_from(micros)?, "the time of the message, not of its failure");
    }
    let target = ReplayTarget::Message { partition, transaction_id: "k".to_owned() };
    let ReplayOutcome::Moved { replay, message_id, offset } = one.broker.replay(T, &target).await? else {
        anyhow::bail!("not moved");
    };
    ensure!((replay.group.as_str(), offset, replay.original.as_str()) == ("h", 1, "k"), "{replay:?}");
    ensure!(letters(&one).await?.iter().map(|l| l.group.clone()).collect::<Vec<_>>() == ["g"]);
    let back = one.broker.pop(T, of_group("i", 9)).await?;
    let (_, message) = &back.partitions[0].messages[1];
    ensure!(message.id == message_id && message.payload == payload && message.trace_id == Some(trace_id));
    ensure!(message.producer_sub.as_deref() == Some("alice"));
    ensure!(*message.transaction_id == *format!("dlq:{}", replay.record));
    check_tables(&one.client).await
}

/// Broken by two replays of one record that both push, or by one that is pushed although its dead letter stays.
#[tokio::test]
async fn a_replay_happens_once_or_not_at_all() -> anyhow::Result<()> {
    let one = One::start().await?;
    one.broker.push(T, vec![item("q", "p", "k")], None).await;
    let popped = one.broker.pop(T, of_group("g", 1)).await?;
    one.broker.ack(T, group("g"), acks(&popped, AckStatus::Dlq)).await;
    let record = letters(&one).await?[0].id;
    let target = ReplayTarget::Record(record);

    for fault in [Fault::Refuse, Fault::Kill] {
        let point = Point { table: "log_segments", at_commit: true };
        arm(&one.client, point, fault, Often::Always).await?;
        ensure!(one.broker.replay(T, &target).await.is_err(), "{fault:?}");
        disarm(&one.client).await?;
        ensure!(letters(&one).await?.len() == 1, "{fault:?}: the dead letter is still there");
        ensure!(one.broker.pop(T, of_group("g", 9)).await?.is_empty(), "{fault:?}: and nothing was pushed");
    }
    let both = tokio::join!(one.broker.replay(T, &target), one.broker.replay(T, &target));
    let outcomes = [both.0?, both.1?];
    let moved = outcomes.iter().filter(|outcome| matches!(outcome, ReplayOutcome::Moved { .. })).count();
    let missing = outcomes.iter().filter(|outcome| **outcome == ReplayOutcome::Missing).count();
    ensure!((moved, missing) == (1, 1), "{outcomes:?}");
    ensure!(keys(&one.broker.pop(T, of_group("g", 9)).await?) == [format!("dlq:{record}")]);

    // A message with its key is there: nothing is written, nothing removed.
    one.client
        .execute(
            "INSERT INTO queen.log_dlq (id, partition_id, consumer_group, \"offset\", message_id, transaction_id, payload_raw)
             SELECT $1, id, 'g', 0, $1, 'k', '1' FROM queen.log_partitions",
            &[&record],
        )
        .await?;
    ensure!(matches!(one.broker.replay(T, &target).await?, ReplayOutcome::Duplicate { .. }));
    ensure!(letters(&one).await?.len() == 1);
    check_tables(&one.client).await
}

/// Broken by a deletion that takes the message, or the letters of another.
#[tokio::test]
async fn dead_letters_are_deleted_and_purged() -> anyhow::Result<()> {
    let one = One::start().await?;
    one.broker.push(T, ["a", "b", "c"].map(|key| item("q", "p", key)).to_vec(), None).await;
    for name in ["g", "h"] {
        for _ in 0..2 {
            let popped = one.broker.pop(T, of_group(name, 1)).await?;
            one.broker.ack(T, group(name), acks(&popped, AckStatus::Dlq)).await;
        }
    }
    let partition = letters(&one).await?[0].partition_id;
    ensure!(one.broker.delete_dead_letters(T, partition, "a").await? == 2);
    ensure!(one.broker.delete_dead_letters(T, partition, "a").await? == 0);
    ensure!(one.broker.delete_dead_letters(T, partition, "c").await? == 0, "a live message");
    ensure!(one.broker.purge_dead_letters(T, &queue("q"), Some(&group("g"))).await? == 1);
    ensure!(letters(&one).await?.len() == 1);
    ensure!(one.broker.purge_dead_letters(T, &queue("q"), None).await? == 1);
    ensure!(one.broker.purge_dead_letters(T, &queue("none"), None).await? == 0);
    ensure!(keys(&one.broker.pop(T, of_group("g", 9)).await?) == ["c"]);
    Ok(())
}

/// Broken by data that comes back otherwise than it was sent, or by a note that another tenant sees.
#[tokio::test]
async fn traces_keep_their_data() -> anyhow::Result<()> {
    let one = One::start().await?;
    let partition = PartitionId(Uuid::from_u128(1));
    for data in [r#"{"b":1.10,"a":"\u0000"}"#, "1e999999", "\"\u{10ffff}\""] {
        let trace = NewTrace {
            partition,
            transaction_id: "t".to_owned(),
            group: Group::QUEUE_MODE.to_owned(),
            event_type: "info".to_owned(),
            data: Bytes::from(data),
            names: vec!["n".to_owned(), "n".to_owned()],
        };
        one.broker.add_trace(T, &trace).await?;
    }
    let back = one.broker.traces_of(T, partition, "t").await?;
    ensure!(back.iter().map(|t| &t.data[..]).eq([
        &br#"{"b":1.10,"a":"\u0000"}"#[..],
        b"1e999999",
        "\"\u{10ffff}\"".as_bytes()
    ]));
    let (page, total) = one.broker.traces_by_name(T, "n", 1, 1).await?;
    ensure!((page.len(), total) == (1, 3) && page[0].id == back[1].id);
    let (names, total) = one.broker.trace_names(T, 9, 0).await?;
    ensure!((names[0].notes, names[0].messages, total) == (3, 1, 1));
    let other = queen_types::TenantId(Uuid::from_u128(9));
    ensure!(one.broker.traces_of(other, partition, "t").await?.is_empty());
    ensure!(one.broker.trace_names(other, 9, 0).await?.1 == 0);
    Ok(())
}
