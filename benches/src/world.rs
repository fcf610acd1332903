//! A broker on a real PostgreSQL, and the calls that the benches make of it.

use bytes::Bytes;
use queen_admission::Options as AdmissionOptions;
use queen_core::api::{AckItem, PopAnswer, PopRequest, PopTarget, PushItem};
use queen_core::{Broker, BrokerOptions};
use queen_testkit::TestDb;
use queen_types::{AckStatus, Group, PartitionName, PushStatus, QueueName, StartPoint, TenantId};
use tokio::runtime::Runtime;

/// A runtime, a database and a broker on it.
#[expect(missing_debug_implementations, reason = "nobody prints a running broker")]
pub struct World {
    /// The broker.
    pub broker: Broker,
    /// Where its calls run.
    pub runtime: Runtime,
    _db: TestDb,
}

impl World {
    /// Starts a broker with default options on a new database.
    ///
    /// # Panics
    /// When there is no PostgreSQL to start.
    #[expect(clippy::new_without_default, reason = "a world is no cheap value")]
    pub fn new() -> World {
        World::with(AdmissionOptions::default())
    }

    /// The same with settings of its arbiter.
    ///
    /// # Panics
    /// As [`World::new`].
    #[expect(clippy::expect_used, reason = "a bench without a broker cannot run")]
    pub fn with(admission: AdmissionOptions) -> World {
        let runtime = Runtime::new().expect("a runtime");
        let db = runtime.block_on(queen_testkit::db()).expect("a database");
        let options = BrokerOptions { pg: db.options(), admission, ..BrokerOptions::default() };
        let broker = runtime.block_on(Broker::start(options)).expect("a broker");
        World { broker, runtime, _db: db }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.runtime.block_on(self.broker.shutdown());
    }
}

/// Items of one request for one partition, with keys that the broker mints: none is a duplicate.
pub fn items(queue: &QueueName, partition: &PartitionName, payloads: &[Bytes]) -> Vec<PushItem> {
    payloads
        .iter()
        .map(|payload| PushItem {
            queue: queue.clone(),
            partition: partition.clone(),
            transaction_id: None,
            payload: payload.clone(),
            trace_id: None,
        })
        .collect()
}

/// As many payloads of 256 bytes.
pub fn payloads(count: usize) -> Vec<Bytes> {
    (0..count).map(|n| Bytes::from(crate::payload(n))).collect()
}

/// Pushes, and sees everything stored.
///
/// # Panics
/// When something was not.
pub async fn push(broker: &Broker, items: Vec<PushItem>) {
    let results = broker.push(TenantId::DEFAULT, items, None).await;
    assert!(results.iter().all(|result| result.status == PushStatus::Queued), "{results:?}");
}

/// Takes up to `batch` messages from up to `partitions` partitions of a queue.
///
/// # Panics
/// When the broker could not look.
#[expect(clippy::expect_used, reason = "a bench whose calls fail measures nothing")]
pub async fn pop(broker: &Broker, queue: &QueueName, batch: u32, partitions: u32) -> PopAnswer {
    let request = PopRequest {
        target: PopTarget::Queue(queue.clone()),
        group: Group::queue_mode(),
        batch,
        partitions: Some(partitions),
        wait: None,
        auto_ack: false,
        lease_seconds: None,
        start: Some(StartPoint::All),
    };
    broker.pop(TenantId::DEFAULT, request).await.expect("an answer")
}

/// Completes everything of an answer.
///
/// # Panics
/// When an ack was refused.
pub async fn complete(broker: &Broker, answer: &PopAnswer) {
    let all = answer.partitions.iter().flat_map(|batch| {
        batch.messages.iter().map(|(_, message)| AckItem {
            partition: Some(Ok(batch.partition_id)),
            transaction_id: message.transaction_id.to_string(),
            status: AckStatus::Completed,
            lease: answer.lease.clone(),
            error: None,
        })
    });
    let results = broker.ack(TenantId::DEFAULT, Group::queue_mode(), all.collect()).await;
    assert!(results.iter().all(|result| result.success), "{results:?}");
}
