//! What an idle broker costs.

use std::time::Duration;

use anyhow::ensure;
use queen_core::{Broker, BrokerOptions, UpkeepOptions};
use queen_tests::build::item;
use queen_types::TenantId;

/// A session tells what it counted at its next transaction, or when it has been idle for ten seconds.
const SETTLE: Duration = Duration::from_secs(12);
/// How long transactions are counted: two cycles of retention and one of the statistics at least.
const SPAN: Duration = Duration::from_secs(12);

/// At most one commit a second with retention, statistics and metrics at their default periods, on a broker that has
/// been used and is idle now (decision 34). Not at the start, when tasks are declared and notes are walked.
#[tokio::test]
async fn an_idle_broker_commits_at_most_once_a_second() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let options =
        BrokerOptions { pg: db.options(), upkeep: UpkeepOptions::default(), ..queen_tests::options() };
    let broker = Broker::start(options).await?;
    broker.push(TenantId::DEFAULT, vec![item("q", "p", "m")], None).await;
    tokio::time::sleep(SETTLE).await;
    // The counters of another database, so that looking at them does not count.
    let elsewhere = queen_testkit::db().await?;
    let watcher = elsewhere.connect().await?;
    let name = db.options().database;
    let commits = async || -> anyhow::Result<i64> {
        let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1";
        Ok(watcher.query_one(sql, &[&name]).await?.get(0))
    };
    let before = commits().await?;
    tokio::time::sleep(SPAN).await;
    let made = commits().await? - before;
    let seconds = SPAN.as_secs_f64();
    println!("{made} transactions in {seconds} s");
    ensure!(made as f64 <= seconds, "{made} transactions in {seconds} s");
    ensure!(made > 0, "nothing was counted");
    broker.shutdown().await;
    Ok(())
}
