//! Short ways to write broker calls down.

use anyhow::ensure;
use bytes::Bytes;
use queen_core::api::{AckItem, PopAnswer, PopRequest, PopTarget, PushItem};
use queen_core::{Broker, BrokerOptions};
use queen_testkit::TestDb;
use queen_types::{
    AckStatus, Group, LeaseId, PartitionId, PartitionName, PushStatus, QueueName, StartPoint, TenantId,
    TransactionId,
};

/// A broker without an edge on a database; `options` without the database part, which is set here.
pub async fn broker(db: &TestDb, options: BrokerOptions) -> anyhow::Result<Broker> {
    Ok(Broker::start(BrokerOptions { pg: db.options(), ..options }).await?)
}

/// Stores messages of these keys, a call each.
pub async fn push(
    broker: &Broker,
    queue_name: &str,
    partition_name: &str,
    keys: &[&str],
) -> anyhow::Result<()> {
    for key in keys {
        let items = vec![item(queue_name, partition_name, key)];
        let pushed = broker.push(TenantId::DEFAULT, items, None).await;
        ensure!(pushed[0].status == PushStatus::Queued, "{pushed:?}");
    }
    Ok(())
}

/// A queue name of a test.
///
/// # Panics
/// When it is none.
pub fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a queue name of a test")
}

/// A partition name of a test.
///
/// # Panics
/// When it is none.
pub fn partition(name: &str) -> PartitionName {
    PartitionName::new(name).expect("a partition name of a test")
}

/// A group of a test.
///
/// # Panics
/// When it is none.
pub fn group(name: &str) -> Group {
    Group::new(name).expect("a group name of a test")
}

/// A message whose payload names its key.
///
/// # Panics
/// When a name is none.
pub fn item(queue_name: &str, partition_name: &str, key: &str) -> PushItem {
    PushItem {
        queue: queue(queue_name),
        partition: partition(partition_name),
        transaction_id: Some(TransactionId::new(key).expect("a key of a test")),
        payload: Bytes::from(format!("{{\"key\":\"{key}\"}}")),
        trace_id: None,
    }
}

/// A pop of a whole queue that begins with the oldest message.
pub fn pop(queue_name: &str, batch: u32) -> PopRequest {
    PopRequest {
        target: PopTarget::Queue(queue(queue_name)),
        group: Group::queue_mode(),
        batch,
        partitions: Some(1),
        wait: None,
        auto_ack: false,
        lease_seconds: None,
        start: Some(StartPoint::All),
    }
}

/// A pop of one partition that begins with the oldest message.
pub fn pop_partition(queue_name: &str, partition_name: &str, batch: u32) -> PopRequest {
    let target = PopTarget::Partition(queue(queue_name), partition(partition_name));
    PopRequest { target, ..pop(queue_name, batch) }
}

/// One ack.
pub fn ack(partition: PartitionId, lease: Option<&LeaseId>, key: &str, status: AckStatus) -> AckItem {
    AckItem {
        partition: Some(Ok(partition)),
        transaction_id: key.to_owned(),
        status,
        lease: lease.cloned(),
        error: None,
    }
}

/// The same ack for every message of an answer.
pub fn acks(answer: &PopAnswer, status: AckStatus) -> Vec<AckItem> {
    let of = |p: &queen_core::api::PartitionBatch| {
        let acks = p
            .messages
            .iter()
            .map(|(_, m)| ack(p.partition_id, answer.lease.as_ref(), &m.transaction_id, status));
        acks.collect::<Vec<_>>()
    };
    answer.partitions.iter().flat_map(of).collect()
}

/// Keys of an answer, in its order.
pub fn keys(answer: &PopAnswer) -> Vec<String> {
    let messages = answer.partitions.iter().flat_map(|p| &p.messages);
    messages.map(|(_, m)| m.transaction_id.to_string()).collect()
}
