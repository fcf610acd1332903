//! Which broker does a background task now. Lease rows decide; the database's clock alone counts.

use std::time::Duration;

use queen_pg::{PgTimestamp, step};
use queen_types::{Timestamp, Uuid};

use super::{Due, sql};
use crate::{Storage, StorageError};

/// How early a task may be taken, so that tasks of different periods share a moment.
const EARLY_MS: i64 = 1_000;
/// The server ends a transaction that idles for a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const KEEP_SQL: &str = "SELECT 1";

/// A background task of which one broker at a time does a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// Deletes what the rules of queues let go.
    Retention,
    /// Repairs the notes that retention goes by.
    RetentionWatermark,
    /// Counts stored bytes.
    RetainedBytes,
    /// Recomputes `queen.stats`.
    StatsRefresh,
}

impl Task {
    /// All of them.
    pub const ALL: [Task; 4] =
        [Task::RetainedBytes, Task::Retention, Task::RetentionWatermark, Task::StatsRefresh];

    /// Its key in `queen.maintenance_leases`.
    pub fn as_str(self) -> &'static str {
        match self {
            Task::Retention => "retention",
            Task::RetentionWatermark => "retention_watermark",
            Task::RetainedBytes => "retained_bytes",
            Task::StatsRefresh => "stats_refresh",
        }
    }

    /// The task of a key.
    pub fn named(name: &str) -> Option<Task> {
        Task::ALL.into_iter().find(|task| task.as_str() == name)
    }

    /// Id of the advisory lock that excludes a second worker; the walk needs none.
    fn lock(self) -> Option<i64> {
        match self {
            Task::Retention => Some(737_001),
            Task::StatsRefresh => Some(737_002),
            Task::RetainedBytes => Some(737_003),
            Task::RetentionWatermark => None,
        }
    }
}

/// A task that this broker is to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    /// Which.
    pub task: Task,
    /// Number of its lease.
    pub fence: i64,
}

/// What a broker is to do, and when there may be more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The tasks that are its own now.
    pub claimed: Vec<Claimed>,
    /// How long it is until one of the others is due; `None`: they are switched off, or there are none.
    pub wait: Option<Duration>,
    /// The work list of retention; `None`: nothing is due.
    pub due: Option<Due>,
}

/// What is known of a task.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its key.
    pub task: String,
    /// Time between two runs.
    pub period: Duration,
    /// When it is due.
    pub next_due_at: Timestamp,
    /// Until when somebody has it.
    pub lease_until: Option<Timestamp>,
    /// Who.
    pub holder: Option<String>,
    /// Start of the last run.
    pub last_start_at: Option<Timestamp>,
    /// Its end.
    pub last_end_at: Option<Timestamp>,
    /// How long it took.
    pub last_duration: Option<Duration>,
    /// Finished runs.
    pub runs: i64,
    /// Whether anybody does it.
    pub enabled: bool,
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Storage {
    /// Makes the rows of tasks and sets their periods.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn declare_tasks(&self, periods: &[(Task, Duration)]) -> Result<(), StorageError> {
        let mut periods = periods.to_vec();
        periods.sort_unstable_by_key(|(task, _)| task.as_str());
        let tasks: Vec<&str> = periods.iter().map(|(task, _)| task.as_str()).collect();
        let millis: Vec<i64> = periods.iter().map(|(_, period)| millis(*period)).collect();
        self.inner.pool.get().await?.query(sql::DECLARE, &[&tasks, &millis]).await?;
        Ok(())
    }

    /// Takes what is due of `tasks` for `lease`, and reads the work list of retention along with it, so that a cycle
    /// without work costs one transaction less.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn claim_tasks(
        &self,
        tasks: &[Task],
        holder: &str,
        lease: Duration,
    ) -> Result<Claims, StorageError> {
        let names: Vec<&str> = tasks.iter().map(|task| task.as_str()).collect();
        let lease = millis(lease);
        let mut conn = self.inner.pool.get().await?;
        let values: [&(dyn queen_pg::ToSql + Sync); 4] = [&names, &holder, &lease, &EARLY_MS];
        let mut steps = vec![step(sql::CLAIM, &values)];
        let (queues, since) = (Vec::<Uuid>::new(), Vec::<PgTimestamp>::new());
        let whole_list: [&(dyn queen_pg::ToSql + Sync); 2] = [&queues, &since];
        if tasks.contains(&Task::Retention) {
            steps.push(step(sql::DUE, &whole_list));
        }
        let answers = conn.transact(&steps).await?;
        let mut claimed = Vec::new();
        let mut wait: Option<Duration> = None;
        for row in answers.first().into_iter().flatten() {
            let name: &str = row.get("task");
            let fence: Option<i64> = row.get("fence");
            match (Task::named(name), fence) {
                (Some(task), Some(fence)) => claimed.push(Claimed { task, fence }),
                (Some(_), None) => {
                    let ms: Option<i64> = row.get("wait_ms");
                    let ms = ms.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
                    wait = [wait, ms].into_iter().flatten().min();
                }
                (None, _) => {}
            }
        }
        let due = answers.get(1).and_then(|rows| Due::of(rows, None));
        Ok(Claims { claimed, wait, due })
    }

    /// Ends every lease of a broker that goes down, so that another goes on at once.
    ///
    /// # Errors
    /// See [`StorageError`]; the leases end by themselves then.
    pub async fn give_up_tasks(&self, holder: &str) -> Result<(), StorageError> {
        self.inner.pool.get().await?.query(sql::GIVE_UP, &[&holder]).await?;
        Ok(())
    }

    /// Makes a task due at once, unless it ended a moment ago.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn task_due_now(&self, task: Task) -> Result<(), StorageError> {
        self.inner.pool.get().await?.query(sql::DUE_NOW, &[&task.as_str()]).await?;
        Ok(())
    }

    /// The database's clock.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn now(&self) -> Result<Timestamp, StorageError> {
        let rows = self.inner.pool.get().await?.query(sql::NOW, &[]).await?;
        let row = rows.first().ok_or(StorageError::Misaligned("now"))?;
        Ok(row.get::<_, PgTimestamp>("now").into())
    }

    /// Prolongs a lease; `false`: somebody else has it.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn renew_task(
        &self,
        claimed: Claimed,
        holder: &str,
        lease: Duration,
    ) -> Result<bool, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .query(sql::RENEW, &[&claimed.task.as_str(), &holder, &claimed.fence, &millis(lease)])
            .await?;
        Ok(!rows.is_empty())
    }

    /// Ends leases; those that finished are due again a period later.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn release_tasks(&self, ended: &[(Claimed, bool)], holder: &str) -> Result<(), StorageError> {
        let mut ended = ended.to_vec();
        ended.sort_unstable_by_key(|(claimed, _)| claimed.task.as_str());
        let tasks: Vec<&str> = ended.iter().map(|(claimed, _)| claimed.task.as_str()).collect();
        let fences: Vec<i64> = ended.iter().map(|(claimed, _)| claimed.fence).collect();
        let finished: Vec<bool> = ended.iter().map(|(_, finished)| *finished).collect();
        self.inner.pool.get().await?.query(sql::RELEASE, &[&tasks, &holder, &fences, &finished]).await?;
        Ok(())
    }

    /// Runs `work` while an advisory lock, on a transaction that touches no table, excludes a second worker of the task.
    /// `None`: there is one, and `work` did not run.
    ///
    /// # Errors
    /// See [`StorageError`]; the lock was not had, or was lost while `work` ran, which is then dropped.
    ///
    /// # Cancel safety
    /// Dropped, the lock goes with its connection, and `work` is dropped.
    pub async fn exclusively<T>(
        &self,
        task: Task,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, StorageError> {
        let Some(id) = task.lock() else { return Ok(Some(work.await)) };
        let mut conn = self.inner.pool.get().await?;
        let mut tx = conn.begin();
        let rows = tx.query(sql::HOLDER, &[&id]).await?;
        if !rows.first().is_some_and(|row| row.get("held")) {
            tx.rollback().await?;
            return Ok(None);
        }
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(KEEP_ALIVE, &mut work).await {
                Ok(done) => {
                    tx.rollback().await?;
                    return Ok(Some(done));
                }
                Err(_) => {
                    tx.query(KEEP_SQL, &[]).await?;
                }
            }
        }
    }

    /// Every background task of the database.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn jobs(&self) -> Result<Vec<Job>, StorageError> {
        let rows = self.inner.pool.get().await?.query(sql::JOBS, &[]).await?;
        let at = |time: Option<PgTimestamp>| time.map(Timestamp::from);
        let ms = |ms: i64| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        Ok(rows
            .iter()
            .map(|row| Job {
                task: row.get("task"),
                period: ms(row.get("period_ms")),
                next_due_at: row.get::<_, PgTimestamp>("next_due_at").into(),
                lease_until: at(row.get("lease_until")),
                holder: row.get("holder"),
                last_start_at: at(row.get("last_start_at")),
                last_end_at: at(row.get("last_end_at")),
                last_duration: row.get::<_, Option<i64>>("last_duration_ms").map(ms),
                runs: row.get("runs"),
                enabled: row.get("enabled"),
            })
            .collect())
    }

    /// Switches a task on or off for all brokers; `false`: there is no such task.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn switch_task(&self, task: &str, enabled: bool) -> Result<bool, StorageError> {
        let rows = self.inner.pool.get().await?.transact(&[step(sql::SWITCH, &[&task, &enabled])]).await?;
        Ok(rows.first().is_some_and(|rows| !rows.is_empty()))
    }
}
