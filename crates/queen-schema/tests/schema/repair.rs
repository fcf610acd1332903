use crate::apply::equals_snapshot;
use crate::support::{admin, database, shape};
use queen_pg::{FailureClass, Pool};
use queen_schema::{ApplyOptions, SchemaError, apply, check};

async fn damaged(damage: &str) -> Pool {
    let pool = database().await;
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    admin(&pool).await.batch(damage).await.unwrap();
    pool
}

/// One damage, what `check` says about it, how many statements heal it.
async fn healed(damage: &str, told: &str, statements: usize) {
    let pool = damaged(damage).await;
    let missing = check(&pool, &ApplyOptions::default()).await.unwrap();
    assert!(missing.iter().any(|line| line.contains(told)), "{damage}: {missing:?}");
    let applied = apply(&pool, &ApplyOptions::default()).await.unwrap_or_else(|e| panic!("{damage}: {e}"));
    assert_eq!(applied.statements_run, statements, "{damage}: {missing:?}");
    equals_snapshot(&shape(&pool).await);
}

#[tokio::test]
async fn what_was_dropped_comes_back() {
    healed("DROP INDEX queen.queues_tenant_name_uk", "index queen.queues_tenant_name_uk is missing", 1).await;
    healed("DROP SCHEMA queen_streams", "schema queen_streams is missing", 1).await;
    healed("DROP TABLE queen.log_dlq", "table queen.log_dlq is missing", 2).await;
    healed(
        "ALTER TABLE queen.queues ALTER COLUMN dedup_window_seconds DROP DEFAULT",
        "default of column queen.queues.dedup_window_seconds",
        1,
    )
    .await;
    healed(
        "ALTER TABLE queen.log_dlq ALTER COLUMN consumer_group DROP NOT NULL",
        "NOT NULL of column queen.log_dlq.consumer_group",
        1,
    )
    .await;
    healed(
        "ALTER TABLE queen.log_consumers DROP CONSTRAINT log_consumers_lease",
        "constraint log_consumers_lease of queen.log_consumers",
        1,
    )
    .await;
    healed(
        "ALTER TABLE queen.log_partitions DROP CONSTRAINT log_partitions_queue_name_uk",
        "constraint log_partitions_queue_name_uk",
        1,
    )
    .await;
    healed(
        "ALTER TABLE queen.queues DROP CONSTRAINT queues_dedup_window_seconds_check",
        "constraint queues_dedup_window_seconds_check",
        1,
    )
    .await;
    healed(
        "ALTER TABLE queen.log_segments DROP CONSTRAINT log_segments_range, \
         DROP CONSTRAINT log_segments_pkey",
        "constraint log_segments_pkey",
        2,
    )
    .await;
}

#[tokio::test]
async fn a_dropped_column_comes_back_with_what_hung_on_it() {
    let pool = damaged("ALTER TABLE queen.log_consumers DROP COLUMN batch_end").await;
    // The column, and the two checks that named it.
    assert_eq!(apply(&pool, &ApplyOptions::default()).await.unwrap().statements_run, 3);
    equals_snapshot(&shape(&pool).await);
}

#[tokio::test]
async fn storage_parameters_are_put_right() {
    healed(
        "ALTER TABLE queen.log_consumers SET (fillfactor = 100)",
        "storage parameters of queen.log_consumers",
        1,
    )
    .await;
    healed(
        "ALTER TABLE queen.log_segments RESET (toast.autovacuum_vacuum_scale_factor)",
        "storage parameters of queen.log_segments",
        1,
    )
    .await;
    healed(
        "ALTER TABLE queen.log_segments ALTER COLUMN blob SET STORAGE EXTENDED",
        "storage of queen.log_segments.blob",
        1,
    )
    .await;
}

#[tokio::test]
async fn what_is_not_ours_is_let_be() {
    let pool = damaged(
        "CREATE TABLE queen.extra (i int); ALTER TABLE queen.queues ADD COLUMN extra int; \
         CREATE INDEX extra_i ON queen.queues (priority); ALTER TABLE queen.log_txns SET (autovacuum_enabled = on); \
         ALTER TABLE queen.queues ALTER COLUMN retry_limit SET DEFAULT 7",
    )
    .await;
    let before = shape(&pool).await;
    assert_eq!(apply(&pool, &ApplyOptions::default()).await.unwrap().statements_run, 0);
    assert_eq!(shape(&pool).await, before);
}

#[tokio::test]
async fn another_shape_is_refused_and_never_changed() {
    for (damage, told) in [
        (
            "ALTER TABLE queen.queues ALTER COLUMN priority TYPE bigint",
            "column queen.queues.priority is bigint, not integer",
        ),
        ("DROP TABLE queen.log_dlq; CREATE VIEW queen.log_dlq AS SELECT 1 AS i", "queen.log_dlq is no table"),
    ] {
        let pool = damaged(damage).await;
        let before = shape(&pool).await;
        let error = apply(&pool, &ApplyOptions::default()).await.unwrap_err();
        assert!(matches!(&error, SchemaError::Shape { .. }), "{error}");
        assert!(error.to_string().contains(told), "{error}");
        assert_eq!(error.class(), FailureClass::Config);
        assert!(check(&pool, &ApplyOptions::default()).await.unwrap().iter().any(|line| line.contains(told)));
        assert_eq!(shape(&pool).await, before);
    }
}

#[tokio::test]
async fn data_that_contradicts_a_repair_is_a_definitive_error() {
    let pool = damaged(
        "DROP INDEX queen.queues_tenant_name_uk; INSERT INTO queen.queues (name) VALUES ('twice'), ('twice')",
    )
    .await;
    let error = apply(&pool, &ApplyOptions::default()).await.unwrap_err();
    assert!(matches!(error, SchemaError::Statement { attempts: 1, .. }), "{error}");
    assert!(error.to_string().contains("23505") && error.to_string().contains("030_queues.sql"), "{error}");
    assert_ne!(error.class(), FailureClass::Transient);
}

#[tokio::test]
async fn an_invalid_index_is_told() {
    let pool = damaged("INSERT INTO queen.queues (name, priority) VALUES ('a', 1), ('b', 1)").await;
    let build = "CREATE UNIQUE INDEX CONCURRENTLY extra_uk ON queen.queues (priority)";
    assert_eq!(admin(&pool).await.batch(build).await.unwrap_err().sqlstate(), Some("23505"));
    assert_eq!(
        check(&pool, &ApplyOptions::default()).await.unwrap(),
        ["index queen.extra_uk is invalid".to_owned()]
    );
    assert_eq!(apply(&pool, &ApplyOptions::default()).await.unwrap().statements_run, 0);
}
