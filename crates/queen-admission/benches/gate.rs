//! Cost of a slot: `cargo bench -p queen-admission --bench gate`.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
#[expect(clippy::disallowed_types, reason = "a bench is the owner of the gate, who brings the clock")]
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::FutureExt;
use futures_util::future::join_all;
use queen_admission::{Gate, Lane, Options, PerLane};
use queen_types::TenantId;

#[expect(clippy::disallowed_types, reason = "as above")]
fn gate(lane_cap: usize) -> Gate {
    let (mut limits, _) = Options::default().limits();
    limits.lane_init = PerLane::from_fn(|_| lane_cap);
    let start = Instant::now();
    Gate::with_limits(limits, Duration::from_secs(30), Arc::new(move || start.elapsed()))
}

/// Nobody else is there: acquire and release, without and with the report of a commit.
fn uncontended(c: &mut Criterion) {
    let mut group = c.benchmark_group("uncontended");
    let gate = gate(4);
    group.bench_function("acquire+release", |b| {
        b.iter(|| drop(black_box(gate.acquire(Lane::Push, TenantId::DEFAULT).now_or_never())));
    });
    group.bench_function("try_acquire+release", |b| {
        b.iter(|| drop(black_box(gate.try_acquire(Lane::Push))));
    });
    group.bench_function("acquire+committed+release", |b| {
        b.iter(|| {
            if let Some(Ok(slot)) = gate.acquire(Lane::Push, TenantId::DEFAULT).now_or_never() {
                slot.committed_work(black_box(Duration::from_micros(400)), 12);
            }
        });
    });
    group.finish();
}

/// 64 tasks share one slot, so that all but one wait in line each time.
fn contended(c: &mut Criterion) {
    const TASKS: usize = 64;
    let mut group = c.benchmark_group("contended");
    group.throughput(Throughput::Elements(TASKS as u64));
    for threads in [1, 2] {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build();
        let Ok(runtime) = runtime else { continue };
        let gate = gate(1);
        group.bench_function(format!("{TASKS} tasks, one slot, {threads} threads"), |b| {
            b.to_async(&runtime).iter(|| async {
                let tasks = (0..TASKS).map(|_| {
                    let gate = gate.clone();
                    tokio::spawn(async move {
                        let slot = gate.acquire(Lane::Push, TenantId::DEFAULT).await;
                        tokio::task::yield_now().await;
                        drop(slot);
                    })
                });
                join_all(tasks).await
            });
        });
    }
    group.finish();
}

criterion_group!(benches, uncontended, contended);
criterion_main!(benches);
