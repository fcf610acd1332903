//! Transactions are atomic whatever fails, take one round trip, and never leave a session half open.
#![allow(clippy::unwrap_used)]

mod support;

use queen_pg::{Conn, PgError, PgOptions, Pool, Step, step};
use queen_types::FailureClass;
use std::time::Duration;
use support::{Proxy, database, eventually, number};

const INSERT: &str = "INSERT INTO public.t (i) VALUES ($1)";
const COUNT: &str = "SELECT count(*) FROM public.t";

async fn table() -> (Pool, Conn) {
    let pool = Pool::new(PgOptions { pool_size: 1, ..database().await }).unwrap();
    let mut conn = pool.get().await.unwrap();
    conn.batch("CREATE TABLE public.t (i int PRIMARY KEY CHECK (i < 100))").await.unwrap();
    (pool, conn)
}

/// A savepoint is refused exactly where there is no transaction.
async fn is_idle(conn: &mut Conn) {
    let refused = conn.batch("SAVEPOINT s").await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("25P01"), "{refused}");
}

#[tokio::test]
async fn all_steps_or_none() {
    let (_pool, mut conn) = table().await;
    let answers = conn.transact(&[step(INSERT, &[&1]), step(COUNT, &[]), step(INSERT, &[&2])]).await.unwrap();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[1][0].get::<_, i64>(0), 1);

    let error = conn.transact(&[step(INSERT, &[&3]), step(INSERT, &[&100]), step(INSERT, &[&4])]).await;
    let error = error.unwrap_err();
    assert_eq!(error.sqlstate(), Some("23514"), "{error}");
    assert_eq!(error.class(), FailureClass::Permanent);
    assert_eq!(number(&mut conn, COUNT).await, 2);
    is_idle(&mut conn).await;
}

#[tokio::test]
async fn the_first_error_is_the_one_that_counts() {
    let (_pool, mut conn) = table().await;
    let steps = [step(INSERT, &[&1]), step(INSERT, &[&1]), step(INSERT, &[&100])];
    assert_eq!(conn.transact(&steps).await.unwrap_err().sqlstate(), Some("23505"));
}

#[tokio::test]
async fn a_commit_that_fails_is_an_error() {
    let (_pool, mut conn) = table().await;
    conn.batch("CREATE TABLE public.c (i int REFERENCES public.t (i) DEFERRABLE INITIALLY DEFERRED)")
        .await
        .unwrap();
    let error = conn.transact(&[step("INSERT INTO public.c VALUES (5)", &[])]).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("23503"));
    assert_eq!(number(&mut conn, "SELECT count(*) FROM public.c").await, 0);
    is_idle(&mut conn).await;
}

#[tokio::test]
async fn a_parameter_that_cannot_be_encoded_leaves_no_hole() {
    let (_pool, mut conn) = table().await;
    let wrong = "text for an integer";
    for steps in [
        [step(INSERT, &[&1]), step(INSERT, &[&wrong]), step(INSERT, &[&2])],
        [step(INSERT, &[&1]), step(INSERT, &[&2]), step(INSERT, &[])],
    ] {
        let error = conn.transact(&steps).await.unwrap_err();
        assert!(matches!(error, PgError::Value(_)), "{error}");
        assert_eq!(error.class(), FailureClass::Permanent);
        assert_eq!(number(&mut conn, COUNT).await, 0);
        is_idle(&mut conn).await;
    }
}

#[tokio::test]
async fn a_statement_that_cannot_be_prepared_opens_nothing() {
    let (_pool, mut conn) = table().await;
    let steps = [step(INSERT, &[&1]), step("SELECT * FROM public.missing", &[])];
    let error = conn.transact(&steps).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("42P01"));
    assert_eq!(error.class(), FailureClass::Config);
    assert_eq!(number(&mut conn, COUNT).await, 0);
}

async fn through_proxy() -> (Proxy, Pool, Conn) {
    let (direct, mut conn) = table().await;
    conn.batch("INSERT INTO public.t VALUES (50)").await.unwrap();
    let options = direct.options().clone();
    let proxy = Proxy::start(options.host.clone(), options.port).await;
    let pool = Pool::new(PgOptions { host: "127.0.0.1".to_owned(), port: proxy.port, ..options }).unwrap();
    let mut conn = pool.get().await.unwrap();
    // Prepares both statements.
    conn.transact(&[step(INSERT, &[&51]), step(COUNT, &[])]).await.unwrap();
    (proxy, pool, conn)
}

/// Polls until everything up to the last word of `expected` was written, while no answer gets through.
async fn written(proxy: &Proxy, expected: &str) {
    for _ in 0..1000 {
        if proxy.transcript() == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(proxy.transcript(), expected);
}

#[tokio::test]
async fn a_transaction_is_written_in_order_before_the_first_answer() {
    let (proxy, _pool, mut conn) = through_proxy().await;
    proxy.hold_answers();
    let work = tokio::spawn(async move {
        let answers = conn.transact(&[step(INSERT, &[&1]), step(COUNT, &[]), step(INSERT, &[&2])]).await;
        (answers, conn)
    });
    written(&proxy, "[BEGIN]BESBESBES[COMMIT]").await;
    assert!(!work.is_finished());
    proxy.release_answers();
    let (answers, mut conn) = work.await.unwrap();
    assert_eq!(answers.unwrap()[1][0].get::<_, i64>(0), 3);
    assert_eq!(number(&mut conn, COUNT).await, 4);
}

#[tokio::test]
async fn an_explicit_transaction_takes_two_round_trips() {
    let (proxy, _pool, mut conn) = through_proxy().await;
    proxy.hold_answers();
    let work = tokio::spawn(async move {
        let mut tx = conn.begin();
        let rows = tx.query(COUNT, &[]).await.unwrap();
        let next: i32 = i32::try_from(rows[0].get::<_, i64>(0)).unwrap();
        tx.commit_with(&[step(INSERT, &[&next]), step(COUNT, &[])]).await.unwrap()
    });
    written(&proxy, "[BEGIN]BES").await;
    proxy.release_answers();
    let answers = work.await.unwrap();
    assert_eq!(answers[1][0].get::<_, i64>(0), 3);
    written(&proxy, "[BEGIN]BESBESBES[COMMIT]").await;
}

#[tokio::test]
async fn nothing_is_sent_for_nothing() {
    let (proxy, _pool, mut conn) = through_proxy().await;
    proxy.hold_answers();
    assert!(conn.transact(&[]).await.unwrap().is_empty());
    conn.begin().commit().await.unwrap();
    conn.begin().rollback().await.unwrap();
    drop(conn.begin());
    let mut tx = conn.begin();
    assert!(tx.run(&[]).await.unwrap().is_empty());
    drop(tx);
    proxy.release_answers();
    assert_eq!(number(&mut conn, COUNT).await, 2);
    assert_eq!(proxy.transcript(), "BES");
}

#[tokio::test]
async fn an_explicit_transaction_commits_rolls_back_and_reads_its_own_writes() {
    let (_pool, mut conn) = table().await;
    let mut tx = conn.begin();
    tx.query(INSERT, &[&1]).await.unwrap();
    assert_eq!(tx.query(COUNT, &[]).await.unwrap()[0].get::<_, i64>(0), 1);
    tx.rollback().await.unwrap();
    assert_eq!(number(&mut conn, COUNT).await, 0);

    let mut tx = conn.begin();
    tx.run(&[step(INSERT, &[&1]), step(INSERT, &[&2])]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(number(&mut conn, COUNT).await, 2);
    is_idle(&mut conn).await;
}

#[tokio::test]
async fn an_error_ends_an_explicit_transaction_and_spares_the_connection() {
    let (pool, mut conn) = table().await;
    let mut tx = conn.begin();
    tx.query(INSERT, &[&1]).await.unwrap();
    assert_eq!(tx.query(INSERT, &[&1]).await.unwrap_err().sqlstate(), Some("23505"));
    assert!(matches!(tx.query(INSERT, &[&2]).await, Err(PgError::Value(_))));
    assert!(tx.commit().await.is_err());

    let mut tx = conn.begin();
    tx.query(INSERT, &[&1]).await.unwrap();
    let failed = tx.commit_with(&[step(INSERT, &[&2]), step(INSERT, &[&1])]).await;
    assert_eq!(failed.unwrap_err().sqlstate(), Some("23505"));

    let mut tx = conn.begin();
    tx.query(INSERT, &[&1]).await.unwrap();
    let wrong = "text for an integer";
    let failed = tx.commit_with(&[step(INSERT, &[&2]), step(INSERT, &[&wrong])]).await;
    assert!(matches!(failed, Err(PgError::Value(_))));

    let mut tx = conn.begin();
    tx.query(INSERT, &[&1]).await.unwrap();
    let failed = tx.query("SELECT * FROM public.missing", &[]).await;
    assert_eq!(failed.unwrap_err().sqlstate(), Some("42P01"));
    drop(tx);

    is_idle(&mut conn).await;
    assert_eq!(number(&mut conn, COUNT).await, 0);
    drop(conn);
    assert_eq!(pool.status().idle, 1);
}

#[tokio::test]
async fn a_forgotten_transaction_takes_its_connection_along() {
    let (pool, mut conn) = table().await;
    let mut tx = conn.begin();
    tx.query(INSERT, &[&1]).await.unwrap();
    drop(tx);
    assert!(conn.is_closed());
    drop(conn);
    assert_eq!(pool.status().size, 0);
    let mut conn = pool.get().await.unwrap();
    eventually(&mut conn, "SELECT count(*) = 0 AND $1 = 'x' FROM public.t", "x").await;
    number(&mut conn, "SELECT count(*) FROM (SELECT FROM public.t FOR UPDATE) AS rows").await;
}

const SELECT_ALL: &str = "SELECT * FROM public.t";

#[tokio::test]
async fn statements_outdated_by_ddl_are_prepared_anew() {
    let (pool, mut conn) = table().await;
    conn.batch("INSERT INTO public.t VALUES (1)").await.unwrap();
    assert_eq!(conn.query(SELECT_ALL, &[]).await.unwrap()[0].len(), 1);
    let mut other = pool.connect("other").await.unwrap();

    other.batch("ALTER TABLE public.t ADD COLUMN a int").await.unwrap();
    assert_eq!(conn.query(SELECT_ALL, &[]).await.unwrap()[0].len(), 2);

    other.batch("ALTER TABLE public.t ADD COLUMN b int").await.unwrap();
    let answers = conn.transact(&[step(INSERT, &[&2]), step(SELECT_ALL, &[])]).await.unwrap();
    assert_eq!((answers[1].len(), answers[1][0].len()), (2, 3));

    other.batch("ALTER TABLE public.t ADD COLUMN c int").await.unwrap();
    let mut tx = conn.begin();
    assert_eq!(tx.query(SELECT_ALL, &[]).await.unwrap()[0].len(), 4);
    tx.commit().await.unwrap();

    other.batch("ALTER TABLE public.t ADD COLUMN d int").await.unwrap();
    let mut tx = conn.begin();
    tx.query(COUNT, &[]).await.unwrap();
    let error = tx.query(SELECT_ALL, &[]).await.unwrap_err();
    assert_eq!((error.sqlstate(), error.class()), (Some("0A000"), FailureClass::Transient));
    drop(tx);
    assert_eq!(conn.query(SELECT_ALL, &[]).await.unwrap()[0].len(), 5);
    assert_eq!(number(&mut conn, COUNT).await, 2);
}

#[tokio::test]
async fn statements_that_the_server_forgot_are_prepared_anew() {
    let (_pool, mut conn) = table().await;
    conn.transact(&[step(INSERT, &[&1]), step(COUNT, &[])]).await.unwrap();
    conn.batch("DEALLOCATE ALL").await.unwrap();
    assert_eq!(number(&mut conn, COUNT).await, 1);
    conn.batch("DEALLOCATE ALL").await.unwrap();
    conn.transact(&[step(INSERT, &[&2]), step(INSERT, &[&3])]).await.unwrap();
    assert_eq!(number(&mut conn, COUNT).await, 3);
}

#[tokio::test]
async fn a_lost_connection_is_transient_and_of_unknown_outcome() {
    let (pool, mut conn) = table().await;
    let error = conn.query("SELECT pg_terminate_backend(pg_backend_pid())", &[]).await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Transient, "{error}");
    drop(conn);
    // The pool has one place, so this is a new session in it.
    let mut conn = pool.get().await.unwrap();
    let steps: [Step<'_>; 2] =
        [step(INSERT, &[&1]), step("SELECT pg_terminate_backend(pg_backend_pid())", &[])];
    let error = conn.transact(&steps).await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Transient, "{error}");
    drop(conn);
    let mut conn = pool.get().await.unwrap();
    assert_eq!(number(&mut conn, COUNT).await, 0);
}

#[test]
fn futures_can_be_sent_to_other_threads() {
    fn sendable<T: Send>(_: &T) {}
    #[allow(dead_code)]
    fn calls(conn: &mut Conn) {
        sendable(&conn.query("", &[]));
        sendable(&conn.execute("", &[]));
        sendable(&conn.batch(""));
        sendable(&conn.simple_query(""));
        sendable(&conn.transact(&[]));
        let mut tx = conn.begin();
        sendable(&tx.run(&[]));
        sendable(&tx.commit_with(&[]));
    }
}
