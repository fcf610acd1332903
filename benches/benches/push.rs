//! The path of a push: parse, pack and hash, and the whole of it down to the commit on a real PostgreSQL.
//! `cargo bench -p queen-benches --bench push`; see the README for how to read the figures.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use queen_benches::world::{self, World, payloads};
use queen_benches::{payload, push_body};
use queen_core::Broker;
use queen_segment::{FrameRef, Packer};
use queen_types::{MessageId, PartitionName, QueueName};
use queen_wire::PushRequest;

const BATCHES: [usize; 2] = [1, 100];

const PUSHES_PER_PARTITION: u64 = 20;

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

async fn push(broker: &Broker, partition: &PartitionName, payloads: &[Bytes]) {
    let queue = QueueName::new("orders").expect("a valid name");
    world::push(broker, world::items(&queue, partition, payloads)).await;
}

/// Time of `pushes` pushes one after the other. What a partition holds makes the search for duplicates longer, so
/// a new one is taken after every [`PUSHES_PER_PARTITION`]. The push of `first` that creates it does not count.
async fn produce(broker: Broker, first: Vec<Bytes>, payloads: Vec<Bytes>, pushes: u64) -> Duration {
    let mut spent = Duration::ZERO;
    let mut left = pushes;
    while left > 0 {
        let partition = PartitionName::new(MessageId::mint().to_string()).expect("a valid name");
        push(&broker, &partition, &first).await;
        let some = left.min(PUSHES_PER_PARTITION);
        let started = Instant::now();
        for _ in 0..some {
            push(&broker, &partition, &payloads).await;
        }
        spent += started.elapsed();
        left -= some;
    }
    spent
}

/// Producers at the same time; the mean of their times.
async fn produce_together(broker: Broker, producers: u32, batch: usize, pushes: u64) -> Duration {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..producers {
        tasks.spawn(produce(broker.clone(), payloads(batch), payloads(batch), pushes));
    }
    let spent: Duration = tasks.join_all().await.into_iter().sum();
    spent / producers
}

fn end_to_end(c: &mut Criterion) {
    let world = World::new();
    let mut group = c.benchmark_group("push");
    group.sample_size(20).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    for producers in [1, 32] {
        for batch in BATCHES {
            group.throughput(Throughput::Elements(u64::from(producers) * batch as u64));
            group.bench_function(BenchmarkId::new(format!("{producers}-producers"), batch), |b| {
                b.to_async(&world.runtime)
                    .iter_custom(|n| produce_together(world.broker.clone(), producers, batch, n));
            });
        }
    }
    group.finish();
}

/// A push into a partition that already holds messages of the deduplication window.
fn with_history(c: &mut Criterion) {
    let world = World::new();
    let mut group = c.benchmark_group("push-after");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(2));
    for stored in [100, 1_000, 10_000] {
        group.bench_function(BenchmarkId::from_parameter(stored), |b| {
            b.to_async(&world.runtime)
                .iter_custom(|n| produce(world.broker.clone(), payloads(stored), payloads(1), n));
        });
    }
    group.finish();
}

criterion_group!(benches, parse, pack, end_to_end, with_history);
criterion_main!(benches);
