//! Options that hold messages back: retry delays, deferred and gathered messages, and a bound of deliveries.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use queen_core::api::{DlqFilter, PopRequest, TxnOperation, TxnOutcome, TxnRequest};
use queen_tests::build::{ack, group, item, keys, pop, pop_partition, queue};
use queen_types::{AckStatus, OptionsEdit, RetryBackoff, StartPoint};

use crate::support::{One, T};

const LONG: Duration = Duration::from_secs(20);

fn of_group(name: &str, batch: u32, wait: Option<Duration>) -> PopRequest {
    PopRequest { group: group(name), wait, ..pop("q", batch) }
}

fn backoff(kind: RetryBackoff, delay: i32, most: i32) -> OptionsEdit {
    OptionsEdit {
        retry_backoff: Some(kind),
        retry_delay: Some(delay),
        retry_delay_max: Some(most),
        retry_limit: Some(10),
        ..OptionsEdit::default()
    }
}

/// Broken by a delay that is not kept, kept too long, kept for other groups, or that lets the next message pass.
#[tokio::test]
async fn a_failed_batch_comes_back_after_its_delay_and_in_order() -> anyhow::Result<()> {
    let one = One::start().await?;
    one.configure("q", backoff(RetryBackoff::Fixed, 600, 60_000)).await?;
    one.broker.push(T, ["a", "b", "c"].map(|key| item("q", "p", key)).to_vec(), None).await;
    let first = one.broker.pop(T, of_group("g", 1, None)).await?;
    one.settle(&group("g"), &first, AckStatus::Failed).await;
    let failed = Instant::now();
    ensure!(one.broker.pop(T, of_group("g", 3, None)).await?.is_empty(), "not before its delay");
    let pinned = PopRequest { group: group("g"), ..pop_partition("q", "p", 3) };
    ensure!(one.broker.pop(T, pinned).await?.is_empty(), "not by name either");
    ensure!(keys(&one.broker.pop(T, of_group("other", 3, None)).await?) == ["a", "b", "c"]);
    let again = one.broker.pop(T, of_group("g", 3, Some(LONG))).await?;
    let took = failed.elapsed();
    ensure!(keys(&again) == ["a", "b", "c"]);
    ensure!((Duration::from_millis(590)..Duration::from_millis(1700)).contains(&took), "{took:?}");

    // Giving back costs no retry and no time.
    one.settle(&group("g"), &again, AckStatus::Retry).await;
    ensure!(one.broker.pop(T, of_group("g", 3, None)).await?.len() == 3);
    Ok(())
}

/// Broken by a delay that does not double, passes its ceiling, or is forgotten on the transaction route.
#[tokio::test]
async fn delays_double_up_to_their_ceiling_on_both_routes() -> anyhow::Result<()> {
    let one = One::start().await?;
    one.configure("q", backoff(RetryBackoff::Exponential, 200, 500)).await?;
    one.broker.push(T, vec![item("q", "p", "a")], None).await;
    for (round, wanted) in [200u64, 400, 500].into_iter().enumerate() {
        let popped = one.broker.pop(T, of_group("g", 1, Some(LONG))).await?;
        let batch = popped.partitions.first().context("a message")?;
        if round == 1 {
            let operations = vec![TxnOperation::Ack {
                group: group("g"),
                partition: batch.partition_id,
                transaction_id: "a".to_owned(),
                status: AckStatus::Failed,
                lease: popped.lease.clone(),
                error: None,
            }];
            let request = TxnRequest { operations, required_leases: Vec::new() };
            ensure!(matches!(one.broker.transaction(T, request, None).await?, TxnOutcome::Committed(_)));
        } else {
            one.settle(&group("g"), &popped, AckStatus::Failed).await;
        }
        let left = one
            .client
            .query_one(
                "SELECT (extract(epoch FROM retry_at - clock_timestamp()) * 1000)::int8 FROM queen.log_consumers",
                &[],
            )
            .await?;
        let left: i64 = left.get(0);
        let wanted = i64::try_from(wanted)?;
        ensure!((wanted - 150..=wanted).contains(&left), "{round}: {left} ms left of {wanted}");
    }
    ensure!(one.broker.pop(T, of_group("g", 1, Some(LONG))).await?.len() == 1);
    Ok(())
}

/// Broken by a first pop of a group that is given what the queue still holds back.
#[tokio::test]
async fn held_back_messages_are_held_back_at_first_contact() -> anyhow::Result<()> {
    let one = One::start().await?;
    for (name, edit) in [
        ("window", OptionsEdit { window_buffer: Some(1), ..OptionsEdit::default() }),
        ("delay", OptionsEdit { delayed_processing: Some(1), ..OptionsEdit::default() }),
    ] {
        one.configure(name, edit).await?;
        one.broker.push(T, vec![item(name, "p", "k")], None).await;
        let pushed = Instant::now();
        let of = |who: &str, wait| PopRequest { group: group(who), wait, ..pop(name, 9) };
        let pinned = PopRequest { group: group("pinned"), ..pop_partition(name, "p", 9) };
        for request in [of("a", None), pinned] {
            ensure!(one.broker.pop(T, request).await?.is_empty(), "{name}");
        }
        let answer = one.broker.pop(T, of("b", Some(LONG))).await?;
        let took = pushed.elapsed();
        ensure!(keys(&answer) == ["k"], "{name}");
        ensure!((Duration::from_millis(950)..Duration::from_secs(3)).contains(&took), "{name}: {took:?}");
    }
    Ok(())
}

/// Broken by a long poll that comes back thin although more was about to come, or that waits for what does not come.
#[tokio::test]
async fn a_long_poll_gathers_for_a_while() -> anyhow::Result<()> {
    let one = One::start().await?;
    if !queen_tests::has_hotlist() {
        return Ok(());
    }
    one.configure("q", OptionsEdit { min_pop_wait_time: Some(1500), ..OptionsEdit::default() }).await?;
    let everything = |batch| PopRequest { partitions: None, ..of_group("g", batch, Some(LONG)) };
    // A ring that knows what is there.
    ensure!(one.broker.pop(T, PopRequest { wait: None, ..everything(9) }).await?.is_empty());
    one.broker.push(T, vec![item("q", "a", "1")], None).await;
    let broker = one.broker.clone();
    let request = everything(3);
    let began = Instant::now();
    let poll = tokio::spawn(async move { broker.pop(T, request).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    one.broker.push(T, vec![item("q", "b", "2"), item("q", "b", "3")], None).await;
    ensure!(poll.await??.len() == 3);
    ensure!(began.elapsed() < Duration::from_millis(1300), "{:?}", began.elapsed());

    one.broker.push(T, vec![item("q", "c", "4")], None).await;
    let began = Instant::now();
    ensure!(one.broker.pop(T, everything(3)).await?.len() == 1);
    let took = began.elapsed();
    ensure!((Duration::from_millis(1400)..Duration::from_secs(4)).contains(&took), "{took:?}");

    // Nobody gathers who does not wait, wants one message, or has less time.
    one.broker.push(T, vec![item("q", "d", "5"), item("q", "e", "6"), item("q", "f", "7")], None).await;
    let began = Instant::now();
    ensure!(one.broker.pop(T, PopRequest { partitions: Some(1), ..everything(1) }).await?.len() == 1);
    ensure!(one.broker.pop(T, PopRequest { wait: None, ..everything(2) }).await?.len() == 2);
    one.broker.push(T, vec![item("q", "g", "8")], None).await;
    let short = PopRequest { wait: Some(Duration::from_millis(100)), ..everything(2) };
    ensure!(one.broker.pop(T, short).await?.len() == 1);
    ensure!(began.elapsed() < Duration::from_millis(1200), "{:?}", began.elapsed());
    Ok(())
}

/// Broken by a message that is delivered once more than allowed, or given up too early; by one behind it that is lost.
#[tokio::test]
async fn a_message_that_nobody_survives_is_given_up() -> anyhow::Result<()> {
    let one = One::start().await?;
    one.configure("q", OptionsEdit { max_delivery_attempts: Some(2), ..OptionsEdit::default() }).await?;
    one.broker.push(T, ["bad", "good"].map(|key| item("q", "p", key)).to_vec(), None).await;
    for request in [
        PopRequest { start: Some(StartPoint::All), ..of_group("g", 2, None) },
        PopRequest { group: group("h"), ..pop_partition("q", "p", 2) },
    ] {
        let who = request.group.clone();
        for attempt in 1..=2 {
            let popped = one.broker.pop(T, request.clone()).await?;
            ensure!(keys(&popped) == ["bad", "good"] && popped.partitions[0].delivery_attempt == attempt);
            // As after the end of its lease, and quicker.
            one.settle(&who, &popped, AckStatus::Retry).await;
        }
        let popped = one.broker.pop(T, request.clone()).await?;
        ensure!(keys(&popped) == ["good"], "{who}: {:?}", keys(&popped));
        let lease = popped.lease.as_ref();
        let good = ack(popped.partitions[0].partition_id, lease, "good", AckStatus::Completed);
        ensure!(one.broker.ack(T, who.clone(), vec![good]).await[0].success);
        ensure!(one.broker.pop(T, request).await?.is_empty());
    }
    let filter = DlqFilter { queue: Some(queue("q")), limit: 9, ..DlqFilter::default() };
    let letters = one.broker.dead_letters(T, filter).await?.records;
    ensure!(letters.len() == 2 && letters.iter().all(|letter| letter.transaction_id == "bad"), "{letters:?}");
    ensure!(letters[0].error.as_deref().is_some_and(|error| error.contains("maxDeliveryAttempts")));
    Ok(())
}
