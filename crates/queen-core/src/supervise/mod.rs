//! Background tasks that do not die silently: one that panics or ends is started again after a pause, counted and
//! shown; one that keeps on ending takes the broker down, so that whoever runs the process acts.
//!
//! It must not know what a task does. A task is made anew for every run, so whatever it kept in itself starts afresh;
//! what it shares with requests lives in the broker.

mod beat;
mod law;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use beat::Beat;
pub use law::RestartLaw;

use beat::Pulse;
use law::{Ends, Next};

/// Starts background tasks and keeps them running until `stop`.
#[derive(Clone)]
pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

struct Shared {
    law: RestartLaw,
    began: Instant,
    stop: CancellationToken,
    known: Mutex<Vec<Known>>,
    exhausted: OnceLock<&'static str>,
    gave_up: Notify,
}

struct Known {
    name: &'static str,
    pulse: Arc<Pulse>,
    /// Makes the next run of the task panic where it waits; for tests of what follows.
    panic: Arc<Notify>,
}

/// A background task as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskState {
    /// Its name.
    pub name: &'static str,
    /// It runs and comes around; false while it waits for its restart, and when it is stalled.
    pub up: bool,
    /// How often it was started again.
    pub restarts: u64,
}

/// How a run of a task came to its end.
enum Ended {
    /// It has nothing left to do.
    Done,
    /// It returned, which it must not.
    Returned,
    Panicked,
    Stopped,
}

impl Supervisor {
    pub(crate) fn new(law: RestartLaw, stop: CancellationToken, tasks: TaskTracker) -> Supervisor {
        let shared = Shared {
            law,
            began: Instant::now(),
            stop,
            known: Mutex::default(),
            exhausted: OnceLock::new(),
            gave_up: Notify::new(),
        };
        Supervisor { shared: Arc::new(shared), tasks }
    }

    /// Runs a task until `stop`. `make` is called for every run; a run that returns is started again as one that panics
    /// is. The run is dropped at its next wait when `stop` is cancelled.
    ///
    /// The task must not hold the broker but by a weak reference.
    pub(crate) fn run<F>(&self, name: &'static str, mut make: impl FnMut(Beat) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.supervise(name, move |beat| make(beat).map(|()| Ended::Returned));
    }

    /// As [`Supervisor::run`], for a task that is done when it returns.
    pub(crate) fn run_to_end<F>(&self, name: &'static str, mut make: impl FnMut(Beat) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.supervise(name, move |beat| make(beat).map(|()| Ended::Done));
    }

    fn supervise<F>(&self, name: &'static str, mut make: impl FnMut(Beat) -> F + Send + 'static)
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        let pulse = Arc::new(Pulse::new(self.shared.began));
        // What has only to be polled for the first time is not down.
        pulse.set_up(true);
        let panic = Arc::new(Notify::new());
        self.shared.known.lock().push(Known { name, pulse: pulse.clone(), panic: panic.clone() });
        let shared = self.shared.clone();
        self.tasks.spawn(async move {
            let mut ends = Ends::default();
            loop {
                pulse.set_up(true);
                show(name, true);
                let beat = Beat { pulse: pulse.clone() };
                // The task is made inside, so that a panic while it is made is one of its own.
                let run = async {
                    tokio::select! {
                        biased;
                        () = panic.notified() => panic!("provoked"),
                        ended = make(beat) => ended,
                    }
                };
                let ended = tokio::select! {
                    biased;
                    () = shared.stop.cancelled() => Ended::Stopped,
                    ended = AssertUnwindSafe(run).catch_unwind() => ended.unwrap_or(Ended::Panicked),
                };
                pulse.set_up(false);
                match ended {
                    Ended::Stopped => return,
                    Ended::Done => {
                        shared.forget(name);
                        return;
                    }
                    Ended::Returned | Ended::Panicked => {}
                }
                // A task that only found the broker gone has not failed.
                if shared.stop.is_cancelled() || !shared.again(name, &ended, &mut ends).await {
                    return;
                }
                pulse.restarted();
                metrics::counter!("queen_task_restarts_total", "task" => name).increment(1);
            }
        });
    }

    /// Every task that runs or should.
    pub(crate) fn states(&self) -> Vec<TaskState> {
        let now = self.shared.began.elapsed();
        let state = |known: &Known| TaskState {
            name: known.name,
            up: known.pulse.is_up(now),
            restarts: known.pulse.restarts(),
        };
        self.shared.known.lock().iter().map(state).collect()
    }

    /// Looks for tasks that should have come around long ago, and says which.
    pub(crate) fn watch(&self) {
        let now = self.shared.began.elapsed();
        for known in self.shared.known.lock().iter() {
            if known.pulse.newly_stalled(now) {
                tracing::error!(target: "task", task = known.name, "a background task makes no progress");
            }
            show(known.name, known.pulse.is_up(now));
        }
    }

    /// The task that ended too often, if one did.
    pub(crate) fn exhausted(&self) -> Option<&'static str> {
        self.shared.exhausted.get().copied()
    }

    /// Waits for a task to end too often.
    pub(crate) async fn gave_up(&self) -> &'static str {
        loop {
            let notified = self.shared.gave_up.notified();
            if let Some(task) = self.exhausted() {
                return task;
            }
            notified.await;
        }
    }

    /// Makes a task panic where it waits. False: there is none of this name.
    pub(crate) fn provoke(&self, name: &str) -> bool {
        let known = self.shared.known.lock();
        let Some(task) = known.iter().find(|known| known.name == name) else { return false };
        task.panic.notify_one();
        true
    }
}

impl Shared {
    /// Waits until the task may start again; false when it may not.
    async fn again(&self, name: &'static str, ended: &Ended, ends: &mut Ends) -> bool {
        let how = match ended {
            Ended::Panicked => {
                count_task_panic();
                "panicked"
            }
            _ => "ended",
        };
        show(name, false);
        match ends.note(&self.law, self.began.elapsed()) {
            Next::RestartAfter(pause) => {
                tracing::error!(target: "task", task = name, pause = ?pause, "a background task {how} and starts again");
                tokio::select! {
                    () = self.stop.cancelled() => false,
                    () = tokio::time::sleep(pause) => true,
                }
            }
            Next::GiveUp => {
                tracing::error!(target: "task", task = name, "a background task {how} once too often");
                let _ = self.exhausted.set(name);
                self.gave_up.notify_waiters();
                false
            }
        }
    }

    fn forget(&self, name: &'static str) {
        self.known.lock().retain(|known| known.name != name);
    }
}

/// Counts a panic outside of any request.
pub(crate) fn count_task_panic() {
    metrics::counter!("queen_panics_total", "where" => "task").increment(1);
}

fn show(name: &'static str, up: bool) {
    metrics::gauge!("queen_task_up", "task" => name).set(if up { 1.0 } else { 0.0 });
}

#[cfg(test)]
mod tests;
