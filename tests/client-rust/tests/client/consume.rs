use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use queen_client_rust_tests::Fixture;
use queen_mq::{Cancel, Message, QueueBuilder, QueueOptions, StopReason, SubscriptionMode};
use serde_json::{Value, json};

/// What handlers saw, in the order of their calls.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Message>>>);

impl Seen {
    fn add(&self, message: Message) {
        self.0.lock().expect("no handler panicked").push(message);
    }

    fn messages(&self) -> Vec<Message> {
        self.0.lock().expect("no handler panicked").clone()
    }

    fn data(&self) -> Vec<Value> {
        queen_client_rust_tests::data(&self.messages())
    }
}

fn numbers(range: std::ops::Range<i64>) -> Vec<Value> {
    range.map(Value::from).collect()
}

/// A group that sees everything, in short polls, and gives up after a while without messages.
fn consumer(fixture: &Fixture, queue: &str, group: &str) -> QueueBuilder {
    fixture
        .queen
        .queue(queue)
        .group(group)
        .subscription_mode(SubscriptionMode::All)
        .poll_timeout(Duration::from_millis(500))
        .idle(Duration::from_secs(10))
}

#[tokio::test]
async fn each_message_is_handled_once_and_acked() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push_many(0..20).await?;
    let seen = Seen::default();
    let handler = seen.clone();
    let summary = consumer(&fixture, "orders", "g")
        .batch(6)
        .limit(20)
        .consume(move |message| {
            handler.add(message);
            async { Ok::<_, Infallible>(()) }
        })
        .await?;
    assert_eq!((summary.processed, summary.acked, summary.nacked), (20, 20, 0));
    assert_eq!(summary.stopped_by, StopReason::Limit);
    assert_eq!(seen.data(), numbers(0..20));
    assert!(seen.messages().iter().all(|message| message.consumer_group == "g"));
    assert_eq!(fixture.pending("orders", Some("g")).await?, 0);
    Ok(())
}

#[tokio::test]
async fn whole_batches_are_handled_and_acked() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push_many(0..20).await?;
    let seen = Seen::default();
    let handler = seen.clone();
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let size = sizes.clone();
    let summary = consumer(&fixture, "orders", "g")
        .batch(8)
        .limit(20)
        .consume_batch(move |messages| {
            size.lock().expect("no handler panicked").push(messages.len());
            messages.into_iter().for_each(|message| handler.add(message));
            async { Ok::<_, Infallible>(()) }
        })
        .await?;
    assert_eq!((summary.processed, summary.acked), (20, 20));
    assert_eq!(*sizes.lock().expect("no handler panicked"), [8, 8, 4]);
    assert_eq!(seen.data(), numbers(0..20));
    assert_eq!(fixture.pending("orders", Some("g")).await?, 0);
    Ok(())
}

#[tokio::test]
async fn without_auto_ack_the_handler_settles() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push_many(0..5).await?;
    let queen = fixture.queen.clone();
    consumer(&fixture, "orders", "g")
        .batch(1)
        .limit(5)
        .auto_ack(false)
        .consume(move |message| {
            let queen = queen.clone();
            async move { queen.ack(&message).await.map(|_| ()) }
        })
        .await?;
    assert_eq!(fixture.pending("orders", Some("g")).await?, 0);
    Ok(())
}

#[tokio::test]
async fn without_auto_ack_nothing_is_settled_by_itself() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push_many(0..5).await?;
    let summary = consumer(&fixture, "orders", "g")
        .batch(5)
        .limit(5)
        .auto_ack(false)
        .consume(|_| async { Ok::<_, Infallible>(()) })
        .await?;
    assert_eq!((summary.processed, summary.acked, summary.nacked), (5, 0, 0));
    assert_eq!(fixture.pending("orders", Some("g")).await?, 5);
    Ok(())
}

#[tokio::test]
async fn a_failing_handler_nacks_until_the_dead_letter() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    orders.configure(QueueOptions { retry_limit: Some(2), ..Default::default() }).await?;
    orders.push_many(["before", "poison", "after"]).await?;
    let seen = Seen::default();
    let handler = seen.clone();
    let summary = consumer(&fixture, "orders", "g")
        .batch(3)
        .limit(5)
        .consume(move |message| {
            let poison = message.data == json!("poison");
            handler.add(message);
            async move { if poison { Err("cannot digest") } else { Ok(()) } }
        })
        .await?;
    let order = ["before", "poison", "poison", "poison", "after"].map(Value::from);
    assert_eq!(seen.data(), order);
    assert_eq!((summary.processed, summary.acked, summary.nacked), (5, 2, 3));

    let dead = orders.dlq(None, None).await?;
    assert_eq!(dead.messages.len(), 1);
    assert_eq!(dead.messages[0].data, json!("poison"));
    assert_eq!(dead.messages[0].error.as_deref(), Some("cannot digest"));
    assert_eq!(dead.messages[0].rest["consumerGroup"], json!("g"));
    assert_eq!(fixture.pending("orders", Some("g")).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_failing_batch_is_delivered_again() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push_many(0..3).await?;
    let seen = Seen::default();
    let handler = seen.clone();
    consumer(&fixture, "orders", "g")
        .batch(3)
        .limit(6)
        .consume_batch(move |messages| {
            let first = handler.messages().is_empty();
            messages.into_iter().for_each(|message| handler.add(message));
            async move { if first { Err("not yet") } else { Ok(()) } }
        })
        .await?;
    assert_eq!(seen.data(), [numbers(0..3), numbers(0..3)].concat());
    assert_eq!(fixture.pending("orders", Some("g")).await?, 0);
    Ok(())
}

#[tokio::test]
async fn workers_share_partitions_and_keep_each_in_order() -> Result<()> {
    const LANES: usize = 8;
    const EACH: i64 = 25;
    let fixture = Fixture::start().await?;
    for lane in 0..LANES {
        fixture.queen.queue("orders").partition(format!("p{lane}")).push_many(0..EACH).await?;
    }
    let seen = Seen::default();
    let handler = seen.clone();
    let total = LANES as u64 * EACH as u64;
    let summary = consumer(&fixture, "orders", "g")
        .concurrency(4)
        .batch(7)
        .limit(total)
        .consume(move |message| {
            handler.add(message);
            async { Ok::<_, Infallible>(()) }
        })
        .await?;
    assert_eq!((summary.processed, summary.acked), (total, total));
    let mut lanes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for message in seen.messages() {
        lanes.entry(message.partition).or_default().push(message.data);
    }
    assert_eq!(lanes.len(), LANES);
    assert!(lanes.values().all(|lane| *lane == numbers(0..EACH)), "{lanes:?}");
    assert_eq!(fixture.pending("orders", Some("g")).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_consumer_stops_when_idle_and_when_told() -> Result<()> {
    let fixture = Fixture::start().await?;
    let idle = consumer(&fixture, "empty", "g")
        .poll_timeout(Duration::from_millis(100))
        .idle(Duration::from_millis(400))
        .consume(|_| async { Ok::<_, Infallible>(()) })
        .await?;
    assert_eq!((idle.processed, idle.stopped_by), (0, StopReason::Idle));

    fixture.queen.queue("orders").push("a").await?;
    let token = Cancel::new();
    let stop = token.clone();
    let told = consumer(&fixture, "orders", "g")
        .batch(1)
        .cancel(token)
        .consume(move |_| {
            stop.cancel();
            async { Ok::<_, Infallible>(()) }
        })
        .await?;
    assert_eq!((told.processed, told.acked, told.stopped_by), (1, 1, StopReason::Cancelled));
    Ok(())
}

#[tokio::test]
async fn a_consumer_gets_what_is_pushed_while_it_waits() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    let producer = async {
        for n in 0..30 {
            orders.push(n).await?;
        }
        anyhow::Ok(())
    };
    let seen = Seen::default();
    let handler = seen.clone();
    let consumer = consumer(&fixture, "orders", "g").batch(10).limit(30);
    let consumed = consumer.consume(move |message| {
        handler.add(message);
        async { Ok::<_, Infallible>(()) }
    });
    let (pushed, consumed) = tokio::join!(producer, consumed);
    pushed?;
    assert_eq!(consumed?.acked, 30);
    assert_eq!(seen.data(), numbers(0..30));
    Ok(())
}
