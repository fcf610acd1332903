//! A server that has no room for another connection.
#![allow(clippy::unwrap_used)]

mod support;

use queen_pg::{PgOptions, Pool};
use queen_pgcluster::{Cluster, ClusterOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server with room for ten, three of them for superusers; a role that is none.
async fn small_server() -> (Cluster, tempfile::TempDir, PgOptions) {
    let dir = tempfile::Builder::new().prefix("queen-pg-small-").tempdir().unwrap();
    let options =
        ClusterOptions { fsync: false, max_connections: 10, ..ClusterOptions::new(dir.path().join("pg")) };
    let cluster = Cluster::start_ephemeral(options).await.unwrap();
    let options = PgOptions {
        host: cluster.host().to_owned(),
        port: cluster.port(),
        user: cluster.user().to_owned(),
        password: cluster.password().map(str::to_owned),
        pool_size: 16,
        pool_wait: Duration::from_secs(10),
        ..PgOptions::default()
    };
    let mut admin = Pool::new(options.clone()).unwrap().connect("admin").await.unwrap();
    admin.batch("CREATE ROLE plain LOGIN PASSWORD 'secret'").await.unwrap();
    let options = PgOptions { user: "plain".to_owned(), password: Some("secret".to_owned()), ..options };
    (cluster, dir, options)
}

#[tokio::test]
async fn a_full_server_makes_the_pool_smaller_and_no_call_fails() {
    let (_cluster, _dir, options) = small_server().await;
    // Another program has one of the seven.
    let other = Pool::new(options.clone()).unwrap();
    let taken = other.connect("another program").await.unwrap();
    let pool = Pool::new(options).unwrap();
    let started = Instant::now();
    let calls: Vec<_> = (0..16)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move {
                let mut conn = pool.get().await?;
                conn.query("SELECT pg_sleep(0.2)", &[]).await.map(drop)
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let status = pool.status();
    assert_eq!((status.max, status.limit, status.size), (16, 6, 6), "{status:?}");
    assert_eq!(status.waiting, 0);
    assert!(started.elapsed() < Duration::from_secs(4), "16 calls in three turns: {:?}", started.elapsed());

    // The other program ends, and seats are tried again after a while, when there is want of them.
    drop(taken);
    let until = Instant::now() + Duration::from_secs(15);
    let pool = Arc::new(pool);
    while pool.status().size < 7 {
        assert!(Instant::now() < until, "{:?}", pool.status());
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let pool = Arc::clone(&pool);
                tokio::spawn(
                    async move { pool.get().await?.query("SELECT pg_sleep(0.1)", &[]).await.map(drop) },
                )
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn a_server_without_any_room_refuses() {
    let (_cluster, _dir, options) = small_server().await;
    let other = Pool::new(options.clone()).unwrap();
    let mut taken = Vec::new();
    while let Ok(conn) = other.connect("another program").await {
        taken.push(conn);
    }
    assert_eq!(taken.len(), 7);
    let pool = Pool::new(options).unwrap();
    let error = pool.get().await.map(drop).unwrap_err();
    assert_eq!(error.sqlstate(), Some("53300"), "{error}");
    drop(taken);
    let until = Instant::now() + Duration::from_secs(10);
    while pool.get().await.is_err() {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
