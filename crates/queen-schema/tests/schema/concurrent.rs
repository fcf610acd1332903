use crate::apply::equals_snapshot;
use crate::support::{admin, database, eventually, shape, texts};
use queen_pg::FailureClass;
use queen_schema::{ADVISORY_LOCK_KEY, Applier, ApplyOptions, Patience, SchemaError, apply};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appliers_that_meet_on_a_virgin_database_all_succeed() {
    for _ in 0..8 {
        let pool = database().await;
        let appliers = (0..4).map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { apply(&pool, &ApplyOptions::default()).await })
        });
        let mut run = Vec::new();
        for applier in appliers.collect::<Vec<_>>() {
            run.push(applier.await.unwrap().unwrap().statements_run);
        }
        run.sort_unstable();
        assert_eq!(run[..3], [0, 0, 0], "{run:?}");
        assert!(run[3] > 20, "{run:?}");
        equals_snapshot(&shape(&pool).await);
    }
}

#[tokio::test]
async fn an_apply_broken_off_anywhere_is_completed_by_the_next() {
    let pool = database().await;
    let mut broken_off = 0;
    for step in 1.. {
        let limit = Duration::from_millis(15 + step * 2);
        if let Ok(done) = tokio::time::timeout(limit, apply(&pool, &ApplyOptions::default())).await {
            done.unwrap();
            break;
        }
        broken_off += 1;
    }
    assert!(broken_off > 0);
    equals_snapshot(&shape(&pool).await);
    assert_eq!(apply(&pool, &ApplyOptions::default()).await.unwrap().statements_run, 0);
}

/// The database as a boot leaves it that dies before the given table: its schemas, the version row, what came before.
async fn stops_before(table: &'static str) {
    let pool = database().await;
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    let mut admin = admin(&pool).await;
    let later = "SELECT relname::text FROM pg_class WHERE relnamespace = 'queen'::regnamespace AND relkind = 'r' \
                 ORDER BY oid";
    let tables = texts(&mut admin, later).await;
    let from = tables.iter().position(|name| name == table).unwrap();
    for name in &tables[from..] {
        admin.batch(&format!("DROP TABLE queen.{name} CASCADE")).await.unwrap();
    }
    assert!(apply(&pool, &ApplyOptions::default()).await.unwrap().statements_run > 0);
    equals_snapshot(&shape(&pool).await);
}

#[tokio::test]
async fn an_apply_killed_between_tables_is_completed_by_the_next() {
    for table in ["system_state", "queues", "log_segments", "log_dlq", "consumer_groups_metadata"] {
        stops_before(table).await;
    }
}

#[tokio::test]
async fn an_apply_waits_for_a_lock_on_a_table() {
    let pool = database().await;
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    let mut admin = admin(&pool).await;
    admin.batch("DROP INDEX queen.idx_log_dlq_partition_failed_at").await.unwrap();
    let mut other = pool.connect("busy").await.unwrap();
    let mut writer = other.begin();
    writer.query("LOCK TABLE queen.log_dlq IN ROW EXCLUSIVE MODE", &[]).await.unwrap();

    let patience = Patience { lock_timeout: Duration::from_millis(200), ..Patience::default() };
    let applying = tokio::spawn({
        let pool = pool.clone();
        async move { Applier::new(ApplyOptions::default()).with_patience(patience).apply(&pool).await }
    });
    let waits = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() \
         AND application_name = 'queen-schema-apply' AND wait_event_type = 'Lock'";
    let gave_up = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() \
         AND application_name = 'queen-schema-apply' AND state = 'idle' AND query LIKE '%CREATE INDEX%'";
    eventually(&mut admin, waits).await;
    eventually(&mut admin, gave_up).await;
    assert!(!applying.is_finished());
    writer.commit().await.unwrap();
    assert_eq!(applying.await.unwrap().unwrap().statements_run, 1);
    equals_snapshot(&shape(&pool).await);
}

#[tokio::test]
async fn a_lock_that_never_comes_is_told_with_its_holders() {
    let pool = database().await;
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    let mut admin = admin(&pool).await;
    admin.batch("DROP INDEX queen.idx_log_dlq_partition_failed_at").await.unwrap();
    let mut other = pool.connect("busy-session").await.unwrap();
    let mut writer = other.begin();
    writer.query("LOCK TABLE queen.log_dlq IN ROW EXCLUSIVE MODE", &[]).await.unwrap();

    let patience = Patience { lock_timeout: Duration::from_millis(50), attempts: 2 };
    let applier = Applier::new(ApplyOptions::default()).with_patience(patience);
    let error = applier.apply(&pool).await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Config);
    let text = error.to_string();
    for part in [
        "080_log_dlq.sql",
        "idx_log_dlq_partition_failed_at",
        "2 attempts",
        "55P03",
        "busy-session",
        "log_dlq",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // Nobody was harmed.
    writer.query("SELECT count(*) FROM queen.log_dlq", &[]).await.unwrap();
    writer.commit().await.unwrap();
    assert_eq!(apply(&pool, &ApplyOptions::default()).await.unwrap().statements_run, 1);
}

#[tokio::test]
async fn a_peer_that_never_ends_is_named() {
    let pool = database().await;
    let mut peer = pool.connect("stuck-applier").await.unwrap();
    peer.query("SELECT pg_advisory_lock($1)", &[&ADVISORY_LOCK_KEY]).await.unwrap();
    let began = Instant::now();
    let options = ApplyOptions { lock_wait: Duration::from_millis(700), ..ApplyOptions::default() };
    let error = apply(&pool, &options).await.unwrap_err();
    assert!(matches!(error, SchemaError::LockWait { .. }), "{error}");
    assert!(began.elapsed() >= Duration::from_millis(700) && began.elapsed() < Duration::from_secs(10));
    let text = error.to_string();
    assert!(text.contains("778120010") && text.contains("stuck-applier"), "{text}");
    assert_eq!(error.class(), FailureClass::Config);

    // The complete database needs no lock.
    peer.query("SELECT pg_advisory_unlock($1)", &[&ADVISORY_LOCK_KEY]).await.unwrap();
    apply(&pool, &options).await.unwrap();
    peer.query("SELECT pg_advisory_lock($1)", &[&ADVISORY_LOCK_KEY]).await.unwrap();
    assert_eq!(apply(&pool, &options).await.unwrap().statements_run, 0);
}

#[tokio::test]
async fn an_applier_waits_for_its_peer() {
    let pool = database().await;
    let mut peer = pool.connect("peer").await.unwrap();
    peer.query("SELECT pg_advisory_lock($1)", &[&ADVISORY_LOCK_KEY]).await.unwrap();
    let applying = tokio::spawn({
        let pool = pool.clone();
        async move { apply(&pool, &ApplyOptions::default()).await }
    });
    let polls = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' \
         AND application_name = 'queen-schema-apply' AND query LIKE '%pg_try_advisory_lock%'";
    eventually(&mut admin(&pool).await, polls).await;
    drop(peer);
    assert!(applying.await.unwrap().unwrap().statements_run > 20);
}

#[tokio::test]
async fn a_steady_boot_waits_for_no_lock_at_all() {
    let pool = database().await;
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    let mut other = pool.connect("migrating").await.unwrap();
    let mut tx = other.begin();
    let all = "LOCK TABLE queen.queues, queen.log_partitions, queen.log_segments, queen.log_txns, \
               queen.log_consumers, queen.log_dlq, queen.consumer_groups_metadata IN ACCESS EXCLUSIVE MODE";
    tx.query(all, &[]).await.unwrap();
    let applied = tokio::time::timeout(Duration::from_secs(20), apply(&pool, &ApplyOptions::default())).await;
    assert_eq!(applied.unwrap().unwrap().statements_run, 0);
    tx.rollback().await.unwrap();
}

#[tokio::test]
async fn a_session_that_is_terminated_is_a_transient_failure() {
    let pool = database().await;
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    let mut admin = admin(&pool).await;
    admin.batch("DROP INDEX queen.idx_log_dlq_partition_failed_at").await.unwrap();
    let mut other = pool.connect("busy").await.unwrap();
    let mut writer = other.begin();
    writer.query("LOCK TABLE queen.log_dlq IN ROW EXCLUSIVE MODE", &[]).await.unwrap();
    let applying = tokio::spawn({
        let pool = pool.clone();
        async move { apply(&pool, &ApplyOptions::default()).await }
    });
    let killed = "SELECT coalesce(bool_or(pg_terminate_backend(pid)), false) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'queen-schema-apply' AND wait_event_type = 'Lock'";
    eventually(&mut admin, killed).await;
    let error = applying.await.unwrap().unwrap_err();
    assert_eq!(error.class(), FailureClass::Transient, "{error}");
    writer.rollback().await.unwrap();
    assert_eq!(apply(&pool, &ApplyOptions::default()).await.unwrap().statements_run, 1);
}
