//! What runs out of time, or is given up by its caller, ends on the server, and its connection is not used again.
#![allow(clippy::unwrap_used)]

mod support;

use queen_pg::{PgError, PgOptions, Pool, step};
use queen_types::FailureClass;
use std::time::{Duration, Instant};
use support::{admin, eventually, options};
use tokio::net::TcpListener;

const NOBODY_SLEEPS: &str = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = $1";
const SOMEBODY_SLEEPS: &str = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = $1 \
     AND state = 'active' AND query LIKE '%pg_sleep%'";

fn impatient() -> PgOptions {
    PgOptions { statement_timeout: Duration::from_millis(300), ..options() }
}

#[tokio::test]
async fn a_passed_deadline_cancels_on_the_server_and_loses_the_connection() {
    let options = impatient();
    let app = options.application_name.clone();
    let pool = Pool::new(options).unwrap();
    let mut conn = pool.get().await.unwrap();

    let error = conn.query("SELECT pg_sleep(60)", &[]).await.unwrap_err();
    assert!(matches!(error, PgError::Timeout { after } if after == Duration::from_millis(300)), "{error}");
    assert_eq!(error.class(), FailureClass::Transient);
    assert!(error.is_outcome_unknown() && !error.is_pool());
    assert!(conn.is_closed());
    assert!(matches!(conn.query("SELECT 1", &[]).await, Err(PgError::Closed(_))));
    drop(conn);

    assert_eq!(pool.status().size, 0);
    eventually(&mut admin().await, NOBODY_SLEEPS, &app).await;
    let mut conn = pool.get().await.unwrap();
    assert_eq!(support::number(&mut conn, "SELECT 7::bigint").await, 7);
}

#[tokio::test]
async fn a_transaction_that_passes_its_deadline_is_rolled_back() {
    let options = PgOptions { statement_timeout: Duration::from_millis(400), ..support::database().await };
    let app = options.application_name.clone();
    let pool = Pool::new(options).unwrap();
    let mut conn = pool.get().await.unwrap();
    conn.batch("CREATE TABLE public.t (i int)").await.unwrap();

    let steps = [step("INSERT INTO public.t VALUES (1)", &[]), step("SELECT pg_sleep(60)", &[])];
    assert!(matches!(conn.transact(&steps).await, Err(PgError::Timeout { .. })));
    drop(conn);

    eventually(&mut admin().await, NOBODY_SLEEPS, &app).await;
    let mut conn = pool.get().await.unwrap();
    assert_eq!(support::number(&mut conn, "SELECT count(*) FROM public.t").await, 0);
}

#[tokio::test]
async fn a_dropped_future_cancels_on_the_server_too() {
    let options = options();
    let app = options.application_name.clone();
    let pool = Pool::new(options).unwrap();
    let mut admin = admin().await;

    let worker = tokio::spawn({
        let pool = pool.clone();
        async move {
            let mut conn = pool.get().await.unwrap();
            let _ = conn.query("SELECT pg_sleep(60)", &[]).await;
        }
    });
    eventually(&mut admin, SOMEBODY_SLEEPS, &app).await;
    worker.abort();
    eventually(&mut admin, NOBODY_SLEEPS, &app).await;
    assert_eq!(pool.status().size, 0);
}

#[tokio::test]
async fn a_dropped_call_leaves_a_closed_connection_behind() {
    let pool = Pool::new(options()).unwrap();
    let mut conn = pool.get().await.unwrap();
    let slept =
        tokio::time::timeout(Duration::from_millis(100), conn.query("SELECT pg_sleep(60)", &[])).await;
    assert!(slept.is_err());
    assert!(matches!(conn.batch("SELECT 1").await, Err(PgError::Closed(_))));
    drop(conn);
    assert_eq!(pool.status().size, 0);
}

#[tokio::test]
async fn the_server_stops_what_a_dead_broker_left_running() {
    let pool = Pool::new(impatient()).unwrap();
    let mut conn = pool.get().await.unwrap();
    assert_eq!(support::text(&mut conn, "SELECT current_setting('statement_timeout')").await, "5300ms");
}

#[tokio::test]
async fn waiting_for_a_free_connection_is_bounded() {
    let options = PgOptions { pool_size: 1, pool_wait: Duration::from_millis(200), ..options() };
    let pool = Pool::new(options).unwrap();
    let held = pool.get().await.unwrap();
    let began = Instant::now();
    let error = pool.get().await.err().unwrap();
    assert!(matches!(error, PgError::PoolWait { .. }), "{error}");
    assert!(error.is_pool());
    assert_eq!(error.class(), FailureClass::Transient);
    assert!(began.elapsed() >= Duration::from_millis(200) && began.elapsed() < Duration::from_secs(3));
    let status = pool.status();
    assert_eq!((status.max, status.size, status.active, status.idle), (1, 1, 1, 0));
    drop(held);
    assert_eq!(pool.status().idle, 1);
    pool.get().await.unwrap();
}

#[tokio::test]
async fn a_server_that_never_answers_is_bounded_by_the_connect_timeout() {
    // Accepts, and says nothing.
    let hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = PgOptions {
        host: "127.0.0.1".to_owned(),
        port: hole.local_addr().unwrap().port(),
        connect_timeout: Duration::from_millis(300),
        ..PgOptions::default()
    };
    let pool = Pool::new(options).unwrap();
    let began = Instant::now();
    let pooled = pool.get().await.err().unwrap();
    let own = pool.connect("own").await.err().unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    for error in [pooled, own] {
        assert!(matches!(error, PgError::Connect { sqlstate: None, .. }), "{error}");
        assert!(error.is_pool());
        assert_eq!(error.class(), FailureClass::Transient);
    }
}

#[tokio::test]
async fn nobody_listening_is_a_connect_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let options = PgOptions { host: "127.0.0.1".to_owned(), port, ..PgOptions::default() };
    let error = Pool::new(options).unwrap().get().await.err().unwrap();
    assert!(error.is_pool() && error.class() == FailureClass::Transient, "{error}");
}

#[tokio::test]
async fn a_missing_database_needs_an_operator() {
    let options = PgOptions { database: "nowhere".to_owned(), ..options() };
    let error = Pool::new(options).unwrap().get().await.err().unwrap();
    assert_eq!(error.sqlstate(), Some("3D000"));
    assert_eq!(error.class(), FailureClass::Config);
    assert!(error.is_pool() && error.to_string().contains("nowhere"), "{error}");
}

#[tokio::test]
async fn a_session_that_the_server_ended_is_not_handed_out_again() {
    let options = options();
    let app = options.application_name.clone();
    let pool = Pool::new(options).unwrap();
    drop(pool.get().await.unwrap());
    let mut admin = admin().await;
    admin
        .query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", &[&app])
        .await
        .unwrap();
    eventually(&mut admin, NOBODY_SLEEPS, &app).await;
    // The client notices the closed socket a moment later than the server.
    let mut answers = Vec::new();
    for _ in 0..3 {
        let mut conn = pool.get().await.unwrap();
        answers.push(conn.query("SELECT 1", &[]).await.map(|rows| rows.len()));
    }
    assert!(matches!(answers.last(), Some(Ok(1))), "{answers:?}");
    assert!(answers.iter().flat_map(|a| a.as_ref().err()).all(|e| e.class() == FailureClass::Transient));
}

#[tokio::test]
async fn a_closed_pool_hands_out_nothing() {
    let pool = Pool::new(options()).unwrap();
    let mut conn = pool.get().await.unwrap();
    pool.close();
    assert!(matches!(pool.get().await, Err(PgError::Closed(_))));
    assert_eq!(support::number(&mut conn, "SELECT 1::bigint").await, 1);
}

/// The line is suspected after 2 s, and a new connection tells which of the two it is.
#[tokio::test]
async fn a_long_statement_is_left_alone_and_one_on_a_silent_line_is_not() {
    let direct = options();
    let proxy = support::Proxy::start(direct.host.clone(), direct.port).await;
    let options = PgOptions {
        host: "127.0.0.1".to_owned(),
        port: proxy.port,
        connect_timeout: Duration::from_secs(2),
        ..direct
    };
    let pool = Pool::new(options).unwrap();
    let mut conn = pool.get().await.unwrap();
    let other = pool.get().await.unwrap();
    conn.batch("SELECT pg_sleep(2.5)").await.unwrap();
    drop(other);

    proxy.hold_answers();
    let began = Instant::now();
    let error = conn.batch("SELECT 1").await.unwrap_err();
    assert!(matches!(error, PgError::Timeout { .. }) && error.is_outcome_unknown(), "{error}");
    assert!(began.elapsed() < Duration::from_secs(8), "it took {:?}", began.elapsed());
    // What one call has learnt the next one knows.
    let began = Instant::now();
    let error = pool.get().await.err().unwrap();
    assert!(error.is_pool() && error.class() == FailureClass::Transient, "{error}");
    assert!(began.elapsed() < Duration::from_millis(500), "it took {:?}", began.elapsed());

    proxy.release_answers();
    let end = Instant::now() + Duration::from_secs(10);
    let mut conn = loop {
        match pool.get().await {
            Ok(conn) => break conn,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(support::number(&mut conn, "SELECT 7::bigint").await, 7);
    assert_eq!(pool.status().size, 1, "the connections of before are gone");
}

#[tokio::test]
async fn a_pool_that_is_held_gives_nothing_until_it_is_released() {
    let pool = Pool::new(options()).unwrap();
    pool.hold("not yet");
    let error = pool.get().await.err().unwrap();
    assert!(error.is_pool() && error.to_string().contains("not yet"), "{error}");
    assert_eq!(error.class(), FailureClass::Transient);
    pool.connect("beside").await.unwrap();
    pool.release();
    pool.get().await.unwrap();
}
