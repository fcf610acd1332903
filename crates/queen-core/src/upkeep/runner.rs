//! The one loop of all background tasks: claim what is due, do it, release, sleep until something is due.

use std::sync::Weak;
use std::time::{Duration, Instant};

use queen_admission::Lane;
use queen_storage::StorageError;
use queen_storage::maintenance::{Claimed, Claims, Due, Task};
use queen_types::TenantId;
use rand::Rng;

use super::{STATS_LIMIT, refresh_stats, retention};
use crate::broker::Inner;
use crate::supervise::Beat;

/// A lease is short and renewed while its task runs, so that a dead holder is soon outlived.
const LEASE: Duration = Duration::from_secs(60);
/// How often it is renewed.
const RENEW: Duration = Duration::from_secs(20);
/// Longest sleep: a task that was switched off may be switched on.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// Shortest sleep.
const SLEEP_MIN: Duration = Duration::from_millis(20);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(5);
/// How often retention looks for what is not urgent.
const TAIL: Duration = Duration::from_secs(60);
/// A task that takes long is done again after so many times of what it took.
const REST_FACTOR: u32 = 20;
/// The walk that is done only once has a period that never ends.
const ONCE: Duration = Duration::from_secs(365 * 86_400);

struct Runner {
    tasks: Vec<(Task, Duration)>,
    /// When the less urgent part of retention was done; never at first.
    tail: Option<Instant>,
    /// Until when tasks that took long are left alone.
    resting: Vec<(Task, Instant)>,
    /// When this broker did each task last.
    led: Vec<(Task, Instant)>,
}

/// Runs until the broker is gone.
pub(crate) async fn run(inner: Weak<Inner>, beat: Beat) {
    let tasks = match inner.upgrade() {
        Some(inner) => tasks(&inner),
        None => return,
    };
    let mut runner = Runner { tasks, tail: None, resting: Vec::new(), led: Vec::new() };
    let mut declared = false;
    // Brokers that start together do not go on together.
    let mut pause = Duration::from_millis(rand::rng().random_range(50..1_000)).min(runner.shortest());
    loop {
        beat.idle();
        tokio::time::sleep(pause).await;
        let Some(inner) = inner.upgrade() else { return };
        beat.within(STATS_LIMIT);
        pause = runner.round(&inner, &mut declared).await.unwrap_or_else(|error| {
            tracing::debug!(target: "retention", %error, "background tasks are tried again later");
            PAUSE
        });
    }
}

/// What this broker takes part in, and how often that is due.
fn tasks(inner: &Inner) -> Vec<(Task, Duration)> {
    let options = &inner.options.upkeep;
    let mut tasks = Vec::new();
    if options.retention {
        let walk = if options.safety_walk.is_zero() { ONCE } else { options.safety_walk };
        tasks.push((Task::Retention, options.retention_interval.max(Duration::from_millis(1))));
        tasks.push((Task::RetentionWatermark, walk));
    }
    if options.stats {
        tasks.push((Task::StatsRefresh, options.stats_interval.max(Duration::from_millis(1))));
        tasks.push((Task::RetainedBytes, options.bytes_interval.max(Duration::from_millis(1))));
    }
    tasks
}

impl Runner {
    fn shortest(&self) -> Duration {
        self.tasks.iter().map(|(_, period)| *period).min().unwrap_or(SLEEP_MAX)
    }

    /// One round; how long to sleep after it.
    async fn round(&mut self, inner: &Inner, declared: &mut bool) -> Result<Duration, StorageError> {
        let holder = &inner.options.server_id;
        if !*declared {
            inner.storage.declare_tasks(&self.tasks).await?;
            // Notes that a crash of this broker lost.
            if self.tasks.iter().any(|(task, _)| *task == Task::RetentionWatermark) {
                inner.storage.task_due_now(Task::RetentionWatermark).await?;
            }
            *declared = true;
        }
        self.resting.retain(|(_, until)| *until > Instant::now());
        let wanted: Vec<Task> = self
            .tasks
            .iter()
            .map(|(task, _)| *task)
            .filter(|task| !self.resting.iter().any(|(resting, _)| resting == task))
            .collect();
        let Claims { claimed, wait, due } = {
            let _slot = inner.admission.enter(Lane::Maint, TenantId::DEFAULT).await?;
            inner.storage.claim_tasks(&wanted, holder, LEASE).await?
        };
        let mut next = wait.unwrap_or(SLEEP_MAX);
        if !claimed.is_empty() {
            let mut ended = Vec::with_capacity(claimed.len());
            for task in claimed {
                let finished = self.run(inner, task, due.as_ref(), holder).await;
                ended.push((task, finished));
                let period = self.tasks.iter().find(|(t, _)| *t == task.task).map(|(_, period)| *period);
                next = next.min(if finished { period.unwrap_or(SLEEP_MAX) } else { PAUSE });
            }
            let _slot = inner.admission.enter(Lane::Maint, TenantId::DEFAULT).await?;
            inner.storage.release_tasks(&ended, holder).await?;
        }
        for (task, period) in &self.tasks {
            let lately = |(led, at): &(Task, Instant)| {
                led == task && at.elapsed() < period.saturating_mul(2).max(LEASE)
            };
            let leads = f64::from(u8::from(self.led.iter().any(lately)));
            metrics::gauge!("queen_job_leader", "job" => task.as_str()).set(leads);
        }
        let rest =
            self.resting.iter().map(|(_, until)| until.saturating_duration_since(Instant::now())).min();
        Ok(rest.map_or(next, |rest| next.min(rest)).clamp(SLEEP_MIN, SLEEP_MAX))
    }

    /// Does a task while its lease is renewed; whether it finished.
    async fn run(&mut self, inner: &Inner, claimed: Claimed, due: Option<&Due>, holder: &str) -> bool {
        let began = Instant::now();
        let tail = self.tail.is_none_or(|at| at.elapsed() >= TAIL);
        let outcome = tokio::select! {
            outcome = work(inner, claimed.task, due, tail) => outcome,
            () = renewing(inner, claimed, holder) => {
                tracing::warn!(target: "retention", task = claimed.task.as_str(), "the lease of a task was lost");
                return false;
            }
        };
        self.led.retain(|(task, _)| *task != claimed.task);
        self.led.push((claimed.task, began));
        let (took, job) = (began.elapsed(), claimed.task.as_str());
        match outcome {
            Ok(()) => {
                if tail && claimed.task == Task::Retention {
                    self.tail = Some(began);
                }
                let period =
                    self.tasks.iter().find(|(task, _)| *task == claimed.task).map(|(_, period)| *period);
                // One that is quick beside its period need not be held back.
                if claimed.task != Task::Retention && period < Some(took.saturating_mul(REST_FACTOR)) {
                    self.resting.push((claimed.task, Instant::now() + took.saturating_mul(REST_FACTOR)));
                }
                let now =
                    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                metrics::gauge!("queen_job_last_success_timestamp_seconds", "job" => job)
                    .set(now.as_secs_f64());
                metrics::histogram!("queen_job_duration_seconds", "job" => job).record(took);
                true
            }
            Err(error) => {
                metrics::counter!("queen_job_failures_total", "job" => job).increment(1);
                tracing::warn!(target: "retention", task = job, %error, "a background task failed; it is tried again");
                false
            }
        }
    }
}

async fn work(inner: &Inner, task: Task, due: Option<&Due>, tail: bool) -> Result<(), StorageError> {
    match task {
        Task::Retention => retention::cycle(inner, due, tail).await.map(|_| ()),
        Task::RetentionWatermark => retention::walk(inner).await,
        Task::StatsRefresh => refresh_stats(inner).await.map(|_| ()),
        Task::RetainedBytes => {
            let _slot = inner.admission.enter(Lane::Maint, TenantId::DEFAULT).await?;
            Box::pin(inner.storage.exclusively(task, inner.storage.count_bytes(STATS_LIMIT)))
                .await?
                .transpose()?;
            Ok(())
        }
    }
}

/// Renews a lease until it is lost.
async fn renewing(inner: &Inner, claimed: Claimed, holder: &str) {
    loop {
        tokio::time::sleep(RENEW).await;
        if let Ok(false) = inner.storage.renew_task(claimed, holder, LEASE).await {
            return;
        }
    }
}
