//! The database that the tests' databases are cloned from: made once per cluster, whoever comes first.

use std::hash::{DefaultHasher, Hash, Hasher};

use anyhow::Context;
use queen_pg::Pool;
use queen_schema::ApplyOptions;
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::server::{MAINTENANCE, Server};

/// Key of the advisory lock under which the template is made: the processes of one run come at the same time.
const LOCK: i64 = 0x7175_6565_6e00_0001;

static READY: OnceCell<String> = OnceCell::const_new();

/// The name of the template, which is made unless the cluster has it.
pub(crate) async fn ensure(server: &Server) -> anyhow::Result<&'static str> {
    let made = READY.get_or_try_init(|| async {
        let name = name();
        let client = server.connect(MAINTENANCE).await?;
        if is_complete(&client, &name).await? {
            return Ok(name);
        }
        client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.context("wait for the template")?;
        // The lock goes with the session at the end of this block.
        if !is_complete(&client, &name).await? {
            make(server, &client, &name).await.context("make the template")?;
        }
        anyhow::Ok(name)
    });
    Ok(made.await?)
}

/// The name follows the schema, so that a cluster that outlives a run serves no template of an older one.
fn name() -> String {
    let mut hasher = DefaultHasher::new();
    for file in queen_schema::files() {
        file.text.hash(&mut hasher);
    }
    format!("queen_template_{:016x}", hasher.finish())
}

/// A template that nobody finished is not marked as one.
async fn is_complete(client: &Client, name: &str) -> anyhow::Result<bool> {
    let sql = "SELECT 1 FROM pg_database WHERE datname = $1 AND datistemplate";
    Ok(client.query_opt(sql, &[&name]).await?.is_some())
}

async fn make(server: &Server, client: &Client, name: &str) -> anyhow::Result<()> {
    client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await?;
    let pool = Pool::new(server.options(name))?;
    let applied = queen_schema::apply(&pool, &ApplyOptions::default()).await;
    pool.close();
    applied.context("apply the schema")?;
    // A template that lets nobody in can be cloned at any moment.
    let seal = format!("ALTER DATABASE {name} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false");
    client.batch_execute(&seal).await?;
    Ok(())
}
