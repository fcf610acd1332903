//! Random operations on two brokers of one database, each checked against the model, the history and the tables.

mod acks;
mod compare;
mod drain;
mod meddle;
mod operations;
mod push_pop;
mod transactions;

use anyhow::{Context, ensure};
use queen_core::api::ConfigureRequest;
use queen_core::{Broker, BrokerOptions};
use queen_testkit::TestDb;
use queen_types::{
    Group, LeaseId, Namespace, OptionsEdit, PartitionId, PartitionName, QueueName, RetryBackoff, TenantId,
};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tokio_postgres::Client;

use crate::build::{group, partition, queue};
use crate::history::History;
use crate::model::{Model, Queue, Rules};
use crate::seed::Run;

/// The tenant of all operations.
pub const TENANT: TenantId = TenantId::DEFAULT;

/// A database with two brokers.
pub struct World {
    /// Either does everything.
    pub brokers: [Broker; 2],
    /// A session of the test.
    pub client: Client,
    /// Dropped last.
    pub db: TestDb,
}

impl World {
    /// Starts it.
    ///
    /// # Errors
    /// When the database or a broker does not start.
    pub async fn start() -> anyhow::Result<World> {
        let db = queen_testkit::db().await?;
        let broker = async |id: &str| {
            let options = BrokerOptions { pg: db.options(), server_id: id.to_owned(), ..crate::options() };
            Broker::start(options).await
        };
        let brokers = [broker("one").await?, broker("two").await?];
        let client = db.connect().await?;
        Ok(World { brokers, client, db })
    }

    /// Stops both brokers.
    pub async fn stop(self) {
        for broker in &self.brokers {
            broker.shutdown().await;
        }
    }
}

/// Messages that some consumer was given and may still ack, rightly or not.
#[derive(Debug, Clone)]
struct Held {
    group: Group,
    partition: PartitionId,
    lease: Option<LeaseId>,
    keys: Vec<String>,
}

/// One run on a world.
pub struct Scene<'w> {
    world: &'w World,
    rng: StdRng,
    model: Model,
    history: History,
    queues: Vec<QueueName>,
    groups: Vec<Group>,
    held: Vec<Held>,
    /// Cursors may have moved by an ack since they were looked at.
    acked: bool,
    /// What was done, for the report of a failure.
    log: Vec<String>,
}

/// How many operations of a run are shown when it fails.
const SHOWN: usize = 24;
/// After so many operations the whole database is compared.
const COMPARE_EVERY: usize = 12;

impl<'w> Scene<'w> {
    /// Makes one run of about `operations` operations, drains everything and deletes what it made.
    ///
    /// # Errors
    /// When anything is not as the model, the history or the tables' rules say.
    pub async fn run(world: &'w World, run: &Run, operations: usize) -> anyhow::Result<()> {
        let mut scene = Scene::set(world, run).await?;
        let outcome = scene.play(operations).await;
        let from = scene.log.len().saturating_sub(SHOWN);
        outcome.with_context(|| format!("after\n{}", scene.log[from..].join("\n")))
    }

    async fn set(world: &'w World, run: &Run) -> anyhow::Result<Scene<'w>> {
        let mut rng = run.rng.clone();
        // Names of their own: what a broker remembers of a queue that the other one deleted lives for its cache time.
        let space = format!("r{}n{}", run.seed, run.number);
        let mut model = Model::default();
        let mut queues = Vec::new();
        for suffix in ["a", "b"] {
            let name = queue(&format!("{space}.{suffix}"));
            let rules = Rules {
                retry_limit: rng.random_range(0..3),
                dead_letters: rng.random_bool(0.75),
                dedup: rng.random_bool(0.7),
                backoff: rng.random_bool(0.25),
                redeliver_skipped: rng.random_bool(0.25),
            };
            let namespace = Namespace::new(space.as_str())?;
            configure(&world.brokers[0], &name, &namespace, &rules).await?;
            let (groups, partitions) = Default::default();
            model.queues.insert(name.clone(), Queue { namespace, rules, groups, partitions });
            queues.push(name);
        }
        let groups = vec![Group::queue_mode(), group("g1"), group("g2")];
        let (history, held, log) = Default::default();
        Ok(Scene { world, rng, model, history, queues, groups, held, acked: false, log })
    }

    async fn play(&mut self, operations: usize) -> anyhow::Result<()> {
        for i in 1..=operations {
            self.operate().await?;
            self.observe().await?;
            if i % COMPARE_EVERY == 0 {
                self.compare_everything().await?;
            }
        }
        self.compare_everything().await?;
        self.drain().await?;
        self.delete().await
    }

    async fn delete(&mut self) -> anyhow::Result<()> {
        for queue in &self.queues {
            let deleted = self.world.brokers[1].delete_queue(TENANT, queue).await?;
            ensure!(deleted.existed, "{queue} was not there");
        }
        for table in ["log_partitions", "log_segments", "log_txns", "log_consumers", "log_dlq"] {
            let sql = format!("SELECT count(*) FROM queen.{table}");
            let left: i64 = self.world.client.query_one(&sql, &[]).await?.get(0);
            ensure!(left == 0, "{left} rows of a deleted queue are left in {table}");
        }
        Ok(())
    }

    fn note(&mut self, text: String) {
        self.log.push(text);
    }

    fn broker(&mut self) -> Broker {
        self.world.brokers[self.rng.random_range(0..2)].clone()
    }

    fn some_queue(&mut self) -> QueueName {
        self.queues[self.rng.random_range(0..self.queues.len())].clone()
    }

    fn some_group(&mut self) -> Group {
        self.groups[self.rng.random_range(0..self.groups.len())].clone()
    }

    fn some_partition_name(&mut self) -> PartitionName {
        partition(["", "p1", "p2", "p3"].choose(&mut self.rng).copied().unwrap_or_default())
    }
}

async fn configure(
    broker: &Broker,
    queue: &QueueName,
    namespace: &Namespace,
    rules: &Rules,
) -> anyhow::Result<()> {
    const AN_HOUR_MS: i32 = 3_600_000;
    let edit = OptionsEdit {
        namespace: Some(namespace.clone()),
        retry_limit: Some(rules.retry_limit),
        dead_letter_queue: Some(rules.dead_letters),
        dlq_after_max_retries: Some(rules.dead_letters),
        dedup_window_seconds: Some(if rules.dedup { 3600 } else { 0 }),
        retry_backoff: Some(if rules.backoff { RetryBackoff::Fixed } else { RetryBackoff::None }),
        retry_delay: Some(AN_HOUR_MS),
        retry_delay_max: Some(AN_HOUR_MS),
        redeliver_skipped: Some(rules.redeliver_skipped),
        ..OptionsEdit::default()
    };
    broker.configure(TENANT, ConfigureRequest { queue: queue.clone(), replace: false, edit }).await?;
    Ok(())
}
