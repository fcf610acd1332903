//! The database that the tests' databases are cloned from: made once per cluster, whoever comes first.

use anyhow::Context;
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::server::{MAINTENANCE, Server};

pub(crate) const NAME: &str = "queen_template";

/// Key of the advisory lock under which the template is made: the processes of one run come at the same time.
const LOCK: i64 = 0x7175_6565_6e00_0001;

static READY: OnceCell<()> = OnceCell::const_new();

/// Makes the template unless the cluster has it.
pub(crate) async fn ensure(server: &Server) -> anyhow::Result<()> {
    let made = READY.get_or_try_init(|| async {
        let client = server.connect(MAINTENANCE).await?;
        if is_complete(&client).await? {
            return Ok(());
        }
        client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.context("wait for the template")?;
        // The lock goes with the session at the end of this block.
        if is_complete(&client).await? {
            Ok(())
        } else {
            make(server, &client).await.context("make the template")
        }
    });
    made.await.copied()
}

/// A template that nobody finished is not marked as one.
async fn is_complete(client: &Client) -> anyhow::Result<bool> {
    let sql = "SELECT 1 FROM pg_database WHERE datname = $1 AND datistemplate";
    Ok(client.query_opt(sql, &[&NAME]).await?.is_some())
}

async fn make(server: &Server, client: &Client) -> anyhow::Result<()> {
    client.batch_execute(&format!("DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")).await?;
    client.batch_execute(&format!("CREATE DATABASE {NAME}")).await?;
    fill(server).await?;
    // A template that lets nobody in can be cloned at any moment.
    client
        .batch_execute(&format!("ALTER DATABASE {NAME} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false"))
        .await?;
    Ok(())
}

/// Applies the schema as a broker does at its start.
async fn fill(server: &Server) -> anyhow::Result<()> {
    let pool = queen_pg::Pool::new(server.options(NAME))?;
    let options = queen_schema::ApplyOptions {
        product_version: env!("CARGO_PKG_VERSION").to_owned(),
        grant_roles: Vec::new(),
        mismatch_warn: false,
        lock_wait: std::time::Duration::from_secs(60),
    };
    queen_schema::apply(&pool, &options).await.context("apply the schema")?;
    pool.close();
    Ok(())
}
