use std::time::Duration;

use queen_storage::maintenance::{Claimed, Task};
use queen_storage::{Storage, StorageOptions};

use crate::support::Fixture;

const LEASE: Duration = Duration::from_secs(30);

async fn two() -> (Fixture, Storage, Storage) {
    let f = Fixture::new().await;
    let a = Storage::new(f.pool.clone(), StorageOptions::default());
    let b = Storage::new(f.pool.clone(), StorageOptions::default());
    let periods = Task::ALL.map(|task| (task, Duration::from_secs(60)));
    a.declare_tasks(&periods).await.unwrap();
    b.declare_tasks(&periods).await.unwrap();
    (f, a, b)
}

async fn claim(
    storage: &Storage,
    tasks: &[Task],
    holder: &str,
    lease: Duration,
) -> (Vec<Claimed>, Option<Duration>) {
    let claims = storage.claim_tasks(tasks, holder, lease).await.unwrap();
    (claims.claimed, claims.wait)
}

#[tokio::test]
async fn one_broker_does_each_cycle() {
    let (f, a, b) = two().await;
    let (mine, _) = claim(&a, &Task::ALL, "a", LEASE).await;
    assert_eq!(mine.iter().map(|c| c.task).collect::<Vec<_>>(), Task::ALL);
    let (theirs, wait) = claim(&b, &Task::ALL, "b", LEASE).await;
    assert_eq!(theirs, []);
    assert!(wait.unwrap() > Duration::from_secs(25), "{wait:?}");
    let ended: Vec<(Claimed, bool)> = mine.iter().map(|c| (*c, true)).collect();
    a.release_tasks(&ended, "a").await.unwrap();
    let (theirs, wait) = claim(&b, &Task::ALL, "b", LEASE).await;
    assert_eq!(theirs, []);
    assert!(wait.unwrap() > Duration::from_secs(55) && wait.unwrap() <= Duration::from_secs(60), "{wait:?}");
    assert_eq!(f.count("SELECT sum(runs)::int8 FROM queen.maintenance_leases").await, 4);
}

#[tokio::test]
async fn what_failed_is_due_at_once_and_a_dead_holder_is_outlived() {
    let (_f, a, b) = two().await;
    let (mine, _) = claim(&a, &[Task::Retention], "a", Duration::from_millis(50)).await;
    a.release_tasks(&[(mine[0], false)], "a").await.unwrap();
    let (again, _) = claim(&a, &[Task::Retention], "a", Duration::from_millis(50)).await;
    assert_eq!(again[0].fence, mine[0].fence + 1);
    tokio::time::sleep(Duration::from_millis(60)).await;
    let (theirs, _) = claim(&b, &[Task::Retention], "b", LEASE).await;
    assert_eq!(theirs.len(), 1);
    // What the first holder says of a lease that is no longer its own changes nothing.
    assert!(!a.renew_task(again[0], "a", LEASE).await.unwrap());
    a.release_tasks(&[(again[0], true)], "a").await.unwrap();
    assert!(b.renew_task(theirs[0], "b", LEASE).await.unwrap());
}

#[tokio::test]
async fn a_task_that_is_switched_off_is_nobodys() {
    let (_f, a, _) = two().await;
    assert!(a.switch_task("stats_refresh", false).await.unwrap());
    assert!(!a.switch_task("nothing", false).await.unwrap());
    let (mine, wait) = claim(&a, &[Task::StatsRefresh], "a", LEASE).await;
    assert_eq!((mine, wait), (vec![], None));
    let jobs = a.jobs().await.unwrap();
    assert_eq!(jobs.iter().map(|j| j.enabled).collect::<Vec<_>>(), [true, true, true, false]);
}

#[tokio::test]
async fn the_lock_excludes_a_second_worker_of_the_same_task_alone() {
    let (_f, a, b) = two().await;
    let outer = a.exclusively(Task::Retention, async {
        let second = b.exclusively(Task::Retention, async { unreachable!("it is taken") }).await;
        let other = b.exclusively(Task::StatsRefresh, async { 7 }).await;
        (second.unwrap(), other.unwrap())
    });
    assert_eq!(Box::pin(outer).await.unwrap(), Some((None::<()>, Some(7))));
    assert_eq!(b.exclusively(Task::Retention, async { 1 }).await.unwrap(), Some(1));
}
