//! A row of metrics a minute, written by each broker for itself.

use std::fs;
use std::sync::Weak;
use std::time::{Duration, Instant};

use queen_admission::Lane;
use queen_storage::StorageError;
use queen_storage::metrics::{ParkedCount, Process, QueueTally};
use queen_types::{QueueName, TenantId};

use super::WORK;
use super::tally::State;
use crate::broker::Inner;
use crate::supervise::Beat;

/// Writes rows until the broker is gone.
pub(crate) async fn collect(inner: Weak<Inner>, every: Duration, beat: Beat) {
    let mut cpu = cpu_micros();
    let mut at = Instant::now();
    loop {
        let began = Instant::now();
        beat.idle();
        tokio::time::sleep(every).await;
        let late = began.elapsed().saturating_sub(every);
        let Some(inner) = inner.upgrade() else { return };
        beat.within(WORK);
        let now = cpu_micros();
        let process = process(&inner, late, cpu.zip(now), at.elapsed());
        (cpu, at) = (now, Instant::now());
        if let Err(error) = flush(&inner, process).await {
            tracing::debug!(target: "metrics", %error, "a row of metrics was not written; its counts are lost");
        }
    }
}

async fn flush(inner: &Inner, process: Process) -> Result<(), StorageError> {
    let State { worker, mut queues } = inner.tally.take();
    for (tenant, queue, created) in inner.storage.take_created() {
        queues.entry((tenant, queue)).or_default().partitions_created += created;
    }
    let parked: Vec<ParkedCount> = inner
        .gates
        .parked_by_tenant()
        .into_iter()
        .map(|(tenant, queue, parked)| ParkedCount {
            tenant,
            queue,
            parked: i64::try_from(parked).unwrap_or(i64::MAX),
        })
        .collect();
    for count in &parked {
        if let Ok(queue) = QueueName::new(count.queue.as_str()) {
            queues.entry((count.tenant, queue)).or_default().parked = count.parked;
        }
    }
    let queues: Vec<QueueTally> =
        queues.into_iter().map(|((tenant, queue), counts)| QueueTally { tenant, queue, counts }).collect();
    let _slot = inner.admission.enter(Lane::Maint, TenantId::DEFAULT).await?;
    inner.storage.flush_metrics(&process, &worker, &queues, &parked).await
}

fn process(inner: &Inner, late: Duration, cpu: Option<((u64, u64), (u64, u64))>, over: Duration) -> Process {
    let shown = inner.admission.snapshot();
    let (used, waiting) = shown
        .lanes
        .iter()
        .fold((0, 0), |(used, waiting), (_, at)| (used + at.in_flight, waiting + at.waiting));
    let hundredths = |before: u64, after: u64| {
        let micros = over.as_micros().max(1);
        i64::try_from(u128::from(after.saturating_sub(before)) * 10_000 / micros).unwrap_or(i64::MAX)
    };
    let (cpu_user, cpu_system) =
        cpu.map_or((0, 0), |(was, is)| (hundredths(was.0, is.0), hundredths(was.1, is.1)));
    let small = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let (resident, virtual_memory) = memory().unwrap_or_default();
    Process {
        server: inner.options.server_id.clone(),
        port: 0,
        pid: i32::try_from(std::process::id()).unwrap_or(0),
        loop_lag_ms: i32::try_from(late.as_millis()).unwrap_or(i32::MAX),
        free_slots: small((shown.budget.floor() as usize).saturating_sub(used)),
        waiting: small(waiting),
        cpu_user,
        cpu_system,
        resident,
        virtual_memory,
    }
}

/// Processor time of this process so far, microseconds: in user code, in the kernel.
fn cpu_micros() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The command name is in parentheses and may hold anything; the fields after it are the 3rd and later.
    let mut times = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    // Ticks of user space are 1/100 s on every architecture that Linux serves today.
    Some((user * 10_000, system * 10_000))
}

/// Resident memory and address space of this process, bytes.
fn memory() -> Option<(i64, i64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = |key: &str| -> Option<i64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()?.checked_mul(1024)
    };
    Some((value("VmRSS:")?, value("VmSize:")?))
}
