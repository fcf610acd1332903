//! The path of a push: parse, pack and hash, and the whole of it down to the commit on a real PostgreSQL.
//! `cargo bench -p queen-benches --bench push`; see the README for how to read the figures.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use queen_benches::{payload, push_body};
use queen_core::{Broker, BrokerOptions, PushItem};
use queen_segment::{FrameRef, Packer};
use queen_types::{MessageId, PartitionName, PushStatus, QueueName, TenantId};
use queen_wire::PushRequest;
use tokio::runtime::Runtime;

const BATCHES: [usize; 2] = [1, 100];

fn parse(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    for count in BATCHES {
        let body = push_body(count);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_with_input(BenchmarkId::from_parameter(count), &body, |b, body| {
            b.iter(|| PushRequest::parse(black_box(body)).map(|request| request.items.len()));
        });
    }
    group.finish();
}

fn pack(c: &mut Criterion) {
    let mut group = c.benchmark_group("pack");
    for count in BATCHES {
        let payloads: Vec<String> = (0..count).map(payload).collect();
        let ids: Vec<(MessageId, String)> =
            (0..count).map(|_| MessageId::mint()).map(|id| (id, id.to_string())).collect();
        let frames: Vec<FrameRef<'_>> = ids
            .iter()
            .zip(&payloads)
            .map(|((message_id, transaction_id), payload)| FrameRef {
                message_id: *message_id,
                transaction_id,
                trace_id: None,
                producer_sub: None,
                encrypted: false,
                payload: payload.as_bytes(),
            })
            .collect();
        let mut packer = Packer::default();
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::from_parameter(count), |b| {
            b.iter(|| packer.pack(black_box(&frames).iter().copied()));
        });
    }
    group.finish();
}

/// Items of one request for one partition, with keys that the broker mints: none is a duplicate.
fn items(partition: &PartitionName, payloads: &[Bytes]) -> Vec<PushItem> {
    let queue = QueueName::new("orders").expect("a valid name");
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

async fn push(broker: Broker, partition: PartitionName, payloads: Vec<Bytes>) {
    let results = broker.push(TenantId::DEFAULT, items(&partition, &payloads), None).await;
    assert!(results.iter().all(|result| result.status == PushStatus::Queued), "{results:?}");
}

/// `rounds` times: every producer pushes once to its own partition, all at the same time.
async fn rounds(broker: &Broker, producers: usize, batch: usize, rounds: u64) -> Duration {
    let payloads: Vec<Bytes> = (0..batch).map(|n| Bytes::from(payload(n))).collect();
    let partitions: Vec<PartitionName> =
        (0..producers).map(|n| PartitionName::new(format!("customer-{n}")).expect("a valid name")).collect();
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for partition in partitions {
        let (broker, payloads) = (broker.clone(), payloads.clone());
        tasks.spawn(async move {
            for _ in 0..rounds {
                push(broker.clone(), partition.clone(), payloads.clone()).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no push failed");
    }
    started.elapsed()
}

fn end_to_end(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let db = runtime.block_on(queen_testkit::db()).expect("a database");
    let options = BrokerOptions { pg: db.options(), ..BrokerOptions::default() };
    let broker = runtime.block_on(Broker::start(options)).expect("a broker");

    let mut group = c.benchmark_group("push");
    group.sample_size(20).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    for producers in [1, 32] {
        for batch in BATCHES {
            group.throughput(Throughput::Elements((producers * batch) as u64));
            group.bench_function(BenchmarkId::new(format!("{producers}-producers"), batch), |b| {
                b.to_async(&runtime).iter_custom(|n| {
                    let broker = broker.clone();
                    async move { rounds(&broker, producers, batch, n).await }
                });
            });
        }
    }
    group.finish();
    runtime.block_on(broker.shutdown());
    drop(db);
}

criterion_group!(benches, parse, pack, end_to_end);
criterion_main!(benches);
