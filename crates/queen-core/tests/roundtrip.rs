//! Push, pop and ack through an embedded broker on a real database.

use std::time::Duration;

use bytes::Bytes;
use queen_core::api::{AckItem, PopAnswer, PopRequest, PopTarget, PushItem};
use queen_core::{Broker, BrokerOptions};
use queen_testkit::TestDb;
use queen_types::{
    AckStatus, Group, PartitionName, PushStatus, QueueName, StartPoint, TenantId, TransactionId,
};

const T: TenantId = TenantId::DEFAULT;

async fn broker() -> anyhow::Result<(TestDb, Broker)> {
    let db = queen_testkit::db().await?;
    let options = BrokerOptions { pg: db.options(), ..BrokerOptions::default() };
    let broker = Broker::start(options).await?;
    Ok((db, broker))
}

fn item(queue: &str, partition: &str, key: &str) -> PushItem {
    PushItem {
        queue: QueueName::new(queue).expect("a valid queue name"),
        partition: PartitionName::new(partition).expect("a valid partition name"),
        transaction_id: Some(TransactionId::new(key).expect("a valid key")),
        payload: Bytes::from(format!("{{\"k\":\"{key}\"}}")),
        trace_id: None,
    }
}

fn pop(queue: &str, batch: u32) -> PopRequest {
    PopRequest {
        target: PopTarget::Queue(QueueName::new(queue).expect("a valid queue name")),
        group: Group::queue_mode(),
        batch,
        partitions: Some(1),
        wait: None,
        auto_ack: false,
        lease_seconds: None,
        start: Some(StartPoint::All),
    }
}

fn keys(answer: &PopAnswer) -> Vec<String> {
    let messages = answer.partitions.iter().flat_map(|p| &p.messages);
    messages.map(|(_, m)| m.transaction_id.to_string()).collect()
}

fn acks(answer: &PopAnswer, status: AckStatus) -> Vec<AckItem> {
    let lease = answer.lease.clone();
    let partitions = answer.partitions.iter();
    partitions
        .flat_map(|p| {
            let lease = lease.clone();
            p.messages.iter().map(move |(_, m)| AckItem {
                partition: Some(Ok(p.partition_id)),
                transaction_id: m.transaction_id.to_string(),
                status,
                lease: lease.clone(),
                error: None,
            })
        })
        .collect()
}

#[tokio::test]
async fn messages_come_back_in_order_once() -> anyhow::Result<()> {
    let (_db, broker) = broker().await?;
    let pushed = broker.push(T, (0..5).map(|i| item("q", "p", &format!("m{i}"))).collect(), None).await;
    assert!(pushed.iter().all(|r| r.status == PushStatus::Queued), "{pushed:?}");
    let again = broker.push(T, vec![item("q", "p", "m3"), item("q", "p", "m5")], None).await;
    assert_eq!(again[0].status, PushStatus::Duplicate);
    assert_eq!(again[0].message_id, pushed[3].message_id);
    assert_eq!(again[1].status, PushStatus::Queued);
    let first = broker.pop(T, pop("q", 4)).await?;
    assert_eq!(keys(&first), ["m0", "m1", "m2", "m3"]);
    assert!(broker.pop(T, pop("q", 4)).await?.is_empty(), "one live lease a partition");
    let acked = broker.ack(T, Group::queue_mode(), acks(&first, AckStatus::Completed)).await;
    assert!(acked.iter().all(|a| a.success && a.lease_released), "{acked:?}");
    let rest = broker.pop(T, pop("q", 10)).await?;
    assert_eq!(keys(&rest), ["m4", "m5"]);
    broker.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_parked_pop_wakes_on_a_push() -> anyhow::Result<()> {
    let (_db, broker) = broker().await?;
    let waiter = broker.clone();
    let parked = tokio::spawn(async move {
        let request = PopRequest { wait: Some(Duration::from_secs(20)), ..pop("q", 1) };
        waiter.pop(T, request).await
    });
    queen_testkit::wait_until("a parked pop", Duration::from_secs(10), || async {
        !broker.parked().is_empty()
    })
    .await?;
    let before = std::time::Instant::now();
    broker.push(T, vec![item("q", "p", "only")], None).await;
    assert_eq!(keys(&parked.await??), ["only"]);
    assert!(before.elapsed() < Duration::from_millis(900), "woken by the push, not by the floor");
    broker.shutdown().await;
    Ok(())
}
