use crate::support::{admin, database, shape, texts};
use queen_pg::{FailureClass, Pool};
use queen_schema::{ApplyOptions, SchemaError, apply};

fn tolerant() -> ApplyOptions {
    ApplyOptions { mismatch_warn: true, ..ApplyOptions::default() }
}

/// A complete database whose version row says something else, and which lacks an index.
async fn built_by(version: i32) -> Pool {
    let pool = database().await;
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    let change = format!(
        "UPDATE queen.system_state SET value = '{{\"version\": {version}, \"product\": \"7.8.9\", \
         \"fingerprint\": \"feed\"}}' WHERE key = 'schema_version'; DROP INDEX queen.idx_cgm_queue"
    );
    admin(&pool).await.batch(&change).await.unwrap();
    pool
}

async fn row(pool: &Pool) -> Vec<String> {
    texts(
        &mut admin(pool).await,
        "SELECT value->>'fingerprint' FROM queen.system_state WHERE key = 'schema_version'",
    )
    .await
}

#[tokio::test]
async fn another_fingerprint_is_refused_naming_both() {
    let pool = built_by(1).await;
    let before = shape(&pool).await;
    let options = ApplyOptions { product_version: "1.2.3".to_owned(), ..ApplyOptions::default() };
    let error = apply(&pool, &options).await.unwrap_err();
    assert!(matches!(error, SchemaError::Mismatch { .. }), "{error}");
    assert_eq!(error.class(), FailureClass::Config);
    let text = error.to_string();
    for part in ["7.8.9", "feed", "1.2.3", "fresh database", "dev --fresh", "QUEEN_SCHEMA_MISMATCH=warn"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(shape(&pool).await, before);
}

#[tokio::test]
async fn a_tolerated_database_gets_what_is_missing_and_keeps_its_row() {
    let pool = built_by(1).await;
    assert_eq!(apply(&pool, &tolerant()).await.unwrap().statements_run, 1);
    assert_eq!(row(&pool).await, ["feed"]);
    assert_eq!(apply(&pool, &tolerant()).await.unwrap().statements_run, 0);
}

#[tokio::test]
async fn a_newer_database_is_served_as_it_is() {
    let pool = built_by(1000).await;
    let before = shape(&pool).await;
    assert!(matches!(apply(&pool, &ApplyOptions::default()).await, Err(SchemaError::Mismatch { .. })));
    assert_eq!(apply(&pool, &tolerant()).await.unwrap().statements_run, 0);
    assert_eq!(shape(&pool).await, before);
}

#[tokio::test]
async fn tables_without_a_row_are_somebody_elses() {
    let pool = database().await;
    let foreign = "CREATE SCHEMA queen; CREATE TABLE queen.queues (id uuid PRIMARY KEY, name text)";
    admin(&pool).await.batch(foreign).await.unwrap();
    let before = shape(&pool).await;
    let error = apply(&pool, &ApplyOptions::default()).await.unwrap_err();
    assert!(matches!(error, SchemaError::Mismatch { .. }), "{error}");
    assert!(error.to_string().contains("no schema version row"), "{error}");
    assert_eq!(shape(&pool).await, before);
}

#[tokio::test]
async fn a_lost_row_is_written_anew_when_the_operator_says_so() {
    let pool = database().await;
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    let own = row(&pool).await;
    admin(&pool).await.batch("DELETE FROM queen.system_state").await.unwrap();
    assert!(matches!(apply(&pool, &ApplyOptions::default()).await, Err(SchemaError::Mismatch { .. })));
    assert_eq!(apply(&pool, &tolerant()).await.unwrap().statements_run, 1);
    assert_eq!(row(&pool).await, own);
    assert_eq!(apply(&pool, &ApplyOptions::default()).await.unwrap().statements_run, 0);
}

#[tokio::test]
async fn other_rows_of_the_state_table_do_not_matter() {
    let pool = database().await;
    admin(&pool)
        .await
        .batch(
            "CREATE SCHEMA queen; CREATE TABLE queen.system_state (key text PRIMARY KEY, value jsonb NOT NULL, \
             updated_at timestamptz NOT NULL DEFAULT now()); \
             INSERT INTO queen.system_state (key, value) VALUES ('maintenance_mode', 'true')",
        )
        .await
        .unwrap();
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    assert_eq!(row(&pool).await.len(), 1);
}
