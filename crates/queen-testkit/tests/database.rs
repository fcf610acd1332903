//! Databases of tests are separate, complete and go away.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::time::Duration;

use queen_testkit::{TestDb, db, empty_db, wait_until};

async fn has_schema(db: &TestDb) -> bool {
    let client = db.connect().await.unwrap();
    let row = client.query_one("SELECT to_regclass('queen.log_segments') IS NOT NULL", &[]).await.unwrap();
    row.get(0)
}

async fn count(db: &TestDb, sql: &str) -> i64 {
    db.connect().await.unwrap().query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn one_has_the_schema_and_one_has_nothing() {
    assert!(has_schema(&db().await.unwrap()).await);
    assert!(!has_schema(&empty_db().await.unwrap()).await);
}

#[tokio::test]
async fn two_databases_do_not_see_each_other() {
    let (one, two) = (db().await.unwrap(), db().await.unwrap());
    assert_ne!(one.name(), two.name());
    one.connect().await.unwrap().batch_execute("CREATE TABLE queen.mine ()").await.unwrap();
    let sql = "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'";
    assert_eq!((count(&one, sql).await, count(&two, sql).await), (1, 0));
}

#[tokio::test]
async fn many_at_once_share_the_template() {
    let tasks: Vec<_> = (0..12).map(|_| tokio::spawn(db())).collect();
    for task in tasks {
        assert!(has_schema(&task.await.unwrap().unwrap()).await);
    }
}

#[tokio::test]
async fn a_pool_works_on_it_and_the_drop_takes_its_sessions() {
    let watcher = empty_db().await.unwrap();
    let db = db().await.unwrap();
    let pool = db.pool().await;
    let mut conn = pool.get().await.unwrap();
    let rows = conn.query("SELECT current_database()::text", &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, &str>(0), db.name());

    let gone = format!("SELECT count(*) FROM pg_database WHERE datname = '{}'", db.name());
    assert_eq!(count(&watcher, &gone).await, 1);
    drop(db);
    wait_until("the drop", Duration::from_secs(10), async || count(&watcher, &gone).await == 0)
        .await
        .unwrap();
}
