use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{RestartLaw, Supervisor, TaskState};

/// So short that a test is, and so long that a task is seen to be down.
const PAUSE: Duration = Duration::from_millis(40);

struct Fixture {
    supervisor: Supervisor,
    stop: CancellationToken,
    tasks: TaskTracker,
}

fn fixture(pause: Duration) -> Fixture {
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let law = RestartLaw { pause, pause_max: pause * 4, ..RestartLaw::default() };
    Fixture { supervisor: Supervisor::new(law, stop.clone(), tasks.clone()), stop, tasks }
}

impl Fixture {
    /// Waits until the tasks stand like this.
    async fn stand(&self, states: &[TaskState]) {
        let end = Instant::now() + Duration::from_secs(10);
        while self.supervisor.states() != states {
            assert!(Instant::now() < end, "they stand like {:?}", self.supervisor.states());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn end(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn state(name: &'static str, up: bool, restarts: u64) -> TaskState {
    TaskState { name, up, restarts }
}

#[tokio::test]
async fn a_panic_and_an_end_start_the_task_again_and_are_counted() {
    let all = fixture(PAUSE);
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let began = Instant::now();
    all.supervisor.run("flaky", move |_| {
        let run = counted.fetch_add(1, Ordering::Relaxed);
        async move {
            match run {
                0 => panic!("at once"),
                1 => {}
                _ => std::future::pending().await,
            }
        }
    });
    all.stand(&[state("flaky", false, 0)]).await;
    all.stand(&[state("flaky", true, 2)]).await;
    assert!(began.elapsed() >= PAUSE * 3, "one pause and a doubled one");
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    all.end().await;
}

#[tokio::test]
async fn a_panic_while_the_task_is_made_is_one_of_its_own() {
    let all = fixture(PAUSE);
    let mut made = 0;
    all.supervisor.run("made", move |_| {
        made += 1;
        assert!(made > 1, "the first is not even made");
        std::future::pending()
    });
    all.stand(&[state("made", true, 1)]).await;
    all.end().await;
}

#[tokio::test]
async fn a_task_that_keeps_on_ending_is_given_up() {
    let all = fixture(Duration::from_millis(1));
    all.supervisor.run("hopeless", |_| async { panic!("again") });
    all.supervisor.run("other", |_| std::future::pending());
    assert_eq!(all.supervisor.gave_up().await, "hopeless");
    assert_eq!(all.supervisor.exhausted(), Some("hopeless"));
    all.stand(&[state("hopeless", false, 10), state("other", true, 0)]).await;
    all.end().await;
}

#[tokio::test]
async fn a_task_that_is_done_is_forgotten() {
    let all = fixture(PAUSE);
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    all.supervisor.run_to_end("once", move |_| {
        let wait = wait.clone();
        async move { wait.notified().await }
    });
    all.stand(&[state("once", true, 0)]).await;
    go.notify_one();
    all.stand(&[]).await;
    all.end().await;
}

#[tokio::test]
async fn a_provoked_panic_is_like_any_other() {
    let all = fixture(PAUSE);
    all.supervisor.run("quiet", |beat| async move {
        beat.idle();
        std::future::pending().await
    });
    all.stand(&[state("quiet", true, 0)]).await;
    assert!(all.supervisor.provoke("quiet") && !all.supervisor.provoke("unknown"));
    all.stand(&[state("quiet", true, 1)]).await;
    all.end().await;
}
