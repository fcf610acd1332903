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

/// Applies the tables.
async fn fill(server: &Server) -> anyhow::Result<()> {
    let client = server.connect(NAME).await?;
    let tables = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/tables"));
    let mut files: Vec<_> = tables.read_dir()?.collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(|file| file.file_name());
    for file in files {
        let sql = std::fs::read_to_string(file.path())?;
        client.batch_execute(&sql).await.with_context(|| format!("apply {}", file.path().display()))?;
    }
    Ok(())
}
