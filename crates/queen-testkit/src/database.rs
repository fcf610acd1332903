//! A database of its own for each test.

use std::time::{Duration, Instant};

use anyhow::Context;
use queen_pg::{PgOptions, Pool};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::server::{MAINTENANCE, Server, server};
use crate::template;

const CREATE_LIMIT: Duration = Duration::from_secs(30);
const DROP_LIMIT: Duration = Duration::from_secs(10);

/// A database that lives as long as this value.
///
/// Dropped, it ends the sessions that are left and drops the database, which blocks the thread for a few ten
/// milliseconds, and for ten seconds at most; an error is ignored, since the cluster goes with the run.
#[derive(Debug)]
pub struct TestDb {
    server: &'static Server,
    name: String,
}

/// A new database with Queen's schema.
///
/// # Errors
/// When PostgreSQL is not installed or the schema does not apply.
pub async fn db() -> anyhow::Result<TestDb> {
    let server = server().await?;
    let template = template::ensure(server).await?;
    create(server, Some(template)).await
}

/// A new database with nothing in it.
///
/// # Errors
/// When PostgreSQL is not installed.
pub async fn empty_db() -> anyhow::Result<TestDb> {
    create(server().await?, None).await
}

async fn create(server: &'static Server, template: Option<&str>) -> anyhow::Result<TestDb> {
    let name = format!("queen_test_{}", Uuid::new_v4().simple());
    let client = server.connect(MAINTENANCE).await?;
    let source = template.map(|template| format!(" TEMPLATE {template}")).unwrap_or_default();
    let sql = format!("CREATE DATABASE {name}{source}");
    clone(&client, &sql).await.with_context(|| format!("create database {name}"))?;
    Ok(TestDb { server, name })
}

/// Tries again while somebody is connected to the template, if only for a moment.
async fn clone(client: &Client, sql: &str) -> Result<(), tokio_postgres::Error> {
    let start = Instant::now();
    loop {
        match client.batch_execute(sql).await {
            Err(error)
                if error.code() == Some(&SqlState::OBJECT_IN_USE) && start.elapsed() < CREATE_LIMIT =>
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            outcome => return outcome,
        }
    }
}

impl TestDb {
    /// Name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to reach it: loopback, plaintext, a pool of 16.
    pub fn options(&self) -> PgOptions {
        self.server.options(&self.name)
    }

    /// A new pool on it.
    pub async fn pool(&self) -> Pool {
        Pool::new(self.options()).expect("a pool without TLS needs no certificate that could be wrong")
    }

    /// A session outside every pool.
    ///
    /// # Errors
    /// When the server does not let it in.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        self.server.connect(&self.name).await
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        let (server, name) = (self.server, std::mem::take(&mut self.name));
        // A thread of its own: this may be an async context, where one cannot block on another runtime.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let _ = tokio::time::timeout(DROP_LIMIT, drop_database(server, &name)).await;
            });
        });
        let _ = dropping.join();
    }
}

async fn drop_database(server: &Server, name: &str) -> anyhow::Result<()> {
    let client = server.connect(MAINTENANCE).await?;
    client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
    Ok(())
}
