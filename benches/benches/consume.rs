//! The consuming side end to end: push, pop and ack through `queen-core` on a real PostgreSQL.
//! `cargo bench -p queen-benches --bench consume`; see the README for how to read the figures.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use queen_admission::Options as AdmissionOptions;
use queen_benches::world::{World, complete, items, payloads, pop, push};
use queen_core::Broker;
use queen_core::api::{TxnOperation, TxnOutcome, TxnRequest};
use queen_types::{MessageId, PartitionName, QueueName, TenantId};

fn new_queue() -> QueueName {
    QueueName::new(MessageId::mint().to_string()).expect("a valid name")
}

fn partition(n: usize) -> PartitionName {
    PartitionName::new(format!("p{n}")).expect("a valid name")
}

/// Time of `rounds` rounds of one client: a push of a batch, a pop of it, an ack of it.
async fn rounds(broker: Broker, queue: QueueName, own: PartitionName, batch: usize, rounds: u64) -> Duration {
    let payloads = payloads(batch);
    let started = Instant::now();
    for _ in 0..rounds {
        push(&broker, items(&queue, &own, &payloads)).await;
        // With other clients about, the answer may be somebody else's batch; there are as many as pops.
        let answer = pop(&broker, &queue, batch as u32, 1).await;
        complete(&broker, &answer).await;
    }
    started.elapsed()
}

fn cycle(c: &mut Criterion) {
    let world = World::new();
    let mut group = c.benchmark_group("cycle");
    group.sample_size(20).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    for clients in [1, 16] {
        for batch in [1, 10, 100] {
            group.throughput(Throughput::Elements(clients * batch as u64));
            group.bench_function(BenchmarkId::new(format!("{clients}-clients"), batch), |b| {
                b.to_async(&world.runtime).iter_custom(|n| {
                    let (broker, queue) = (world.broker.clone(), new_queue());
                    async move {
                        let mut tasks = tokio::task::JoinSet::new();
                        for client in 0..clients as usize {
                            tasks.spawn(rounds(broker.clone(), queue.clone(), partition(client), batch, n));
                        }
                        tasks.join_all().await.into_iter().sum::<Duration>() / clients as u32
                    }
                });
            });
        }
    }
    group.finish();
}

/// What a pop and an ack cost when each message stands in a partition of its own that the group never touched: a
/// cursor is made for each.
async fn first_claims(broker: Broker, pops: u64) -> Duration {
    const SWEEP: usize = 50;
    let queue = new_queue();
    let mut all = Vec::new();
    for n in 0..pops as usize * SWEEP {
        all.extend(items(&queue, &partition(n), &payloads(1)));
    }
    for some in all.chunks(1_000) {
        push(&broker, some.to_vec()).await;
    }
    // The first pop walks over the queue; that is another cost.
    let started = Instant::now();
    let mut taken = 0;
    while taken < all.len() {
        let answer = pop(&broker, &queue, 100, SWEEP as u32).await;
        assert!(!answer.is_empty(), "{taken} of {} were delivered", all.len());
        complete(&broker, &answer).await;
        taken += answer.len();
    }
    started.elapsed()
}

fn first_contact(c: &mut Criterion) {
    let world = World::new();
    let mut group = c.benchmark_group("first-claims");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    group.throughput(Throughput::Elements(50));
    group.bench_function("50", |b| {
        b.to_async(&world.runtime).iter_custom(|n| first_claims(world.broker.clone(), n));
    });
    group.finish();
}

/// A pop of a queue in which nothing is to be had: no statement when the hot list knows it.
fn empty(c: &mut Criterion) {
    let world = World::new();
    let queue = new_queue();
    let mut group = c.benchmark_group("empty-pop");
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    world.runtime.block_on(rounds(world.broker.clone(), queue.clone(), partition(0), 1, 3));
    group.bench_function("hot", |b| {
        b.to_async(&world.runtime).iter(|| pop(&world.broker, &queue, 10, 10));
    });
    group.finish();
}

/// Transactions share no commits, so here the budget of the arbiter decides how many are open at once: by default, found
/// by the arbiter from a low start, and fixed.
fn transactions(c: &mut Criterion) {
    const CLIENTS: usize = 64;
    let mut group = c.benchmark_group("transactions");
    group.sample_size(10).warm_up_time(Duration::from_secs(4)).measurement_time(Duration::from_secs(6));
    group.throughput(Throughput::Elements(CLIENTS as u64));
    let fixed =
        |n: usize| AdmissionOptions { min: Some(n), init: Some(n), max: n, ..AdmissionOptions::default() };
    let adaptive = AdmissionOptions { min: Some(4), init: Some(8), ..AdmissionOptions::default() };
    let budgets = [
        ("default", AdmissionOptions::default()),
        ("from-8", adaptive),
        ("2", fixed(2)),
        ("8", fixed(8)),
        ("32", fixed(32)),
        ("96", fixed(96)),
    ];
    for (name, options) in budgets {
        let world = World::with(options);
        group.bench_function(BenchmarkId::new("budget", name), |b| {
            b.to_async(&world.runtime).iter_custom(|n| {
                let (broker, queue) = (world.broker.clone(), new_queue());
                async move {
                    let mut tasks = tokio::task::JoinSet::new();
                    for client in 0..CLIENTS {
                        tasks.spawn(transact(broker.clone(), queue.clone(), partition(client), n));
                    }
                    tasks.join_all().await.into_iter().sum::<Duration>() / CLIENTS as u32
                }
            });
        });
    }
    group.finish();
}

/// Time of so many transactions of one push each.
async fn transact(broker: Broker, queue: QueueName, own: PartitionName, rounds: u64) -> Duration {
    let payloads = payloads(1);
    let started = Instant::now();
    for _ in 0..rounds {
        let operations = items(&queue, &own, &payloads).into_iter().map(TxnOperation::Push).collect();
        let request = TxnRequest { operations, required_leases: Vec::new() };
        let outcome = broker.transaction(TenantId::DEFAULT, request, None).await;
        assert!(matches!(outcome, Ok(TxnOutcome::Committed(_))), "{outcome:?}");
    }
    started.elapsed()
}

criterion_group!(benches, cycle, first_contact, empty, transactions);
criterion_main!(benches);
