//! A database that comes late, goes away, or is not what it should be.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use queen_core::PgOptions;
use queen_pgcluster::{Cluster, ClusterOptions, Shutdown};
use queen_testkit::{FaultProxy, Pooler, Turn};

use crate::program::{Program, between, http, run, wait_until};
use crate::settings::{Settings, free_port, loopback};

const PUSH: &str = r#"{"items":[{"queue":"q","payload":1}]}"#;

/// Status and body of a push, and what became of its item.
fn push(addr: SocketAddr) -> (u16, String) {
    let (status, body) = http(addr, "POST", "/api/v1/push", PUSH);
    (status, between(&body, r#""status":""#, "\"").to_owned())
}

/// L-03: the listener is open while the database is away, and says so; when it comes the schema is applied, and
/// everything works, through a second outage too.
#[tokio::test]
async fn a_database_that_comes_late_and_goes_away_again() {
    let dir = tempfile::Builder::new().prefix("queen-late-").tempdir().unwrap();
    let mut cluster =
        Cluster::start_ephemeral(ClusterOptions::for_tests(dir.path().join("c"))).await.unwrap();
    cluster.shut_down(Shutdown::Fast).await.unwrap();
    let pg = PgOptions {
        host: cluster.host().to_owned(),
        port: cluster.port(),
        user: cluster.user().to_owned(),
        ..PgOptions::default()
    };
    let port = free_port();
    let addr = loopback(port);
    let began = Instant::now();
    let mut program = Program::start(&[], &Settings::on(pg, port).pairs());
    program.line_with("starting without the database");
    program.line_with("listening");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());

    let (status, health) = http(addr, "GET", "/health", "");
    assert!(status == 503 && health.contains(r#""database":"disconnected""#), "{health}");
    assert_eq!(http(addr, "GET", "/livez", "").0, 200, "nobody is to kill it for this");
    let ready = http(addr, "GET", "/readyz", "").1;
    assert!(ready.contains(r#""schema":"pending""#) && ready.contains(r#""draining":false"#), "{ready}");
    assert_eq!(http(addr, "GET", "/readyz?strict=1", "").0, 503);
    assert_eq!(push(addr).0, 201);
    assert_ne!(push(addr).1, "queued");
    assert_eq!(http(addr, "GET", "/api/v1/pop/queue/q?batch=1", "").0, 500);

    cluster.restart().await.unwrap();
    program.line_with("the schema is in place");
    wait_until("health", || http(addr, "GET", "/health", "").0 == 200);
    assert_eq!(http(addr, "GET", "/readyz?strict=1", "").0, 200);
    assert_eq!(push(addr), (201, "queued".to_owned()));
    assert_eq!(http(addr, "GET", "/api/v1/pop/queue/q?batch=1", "").0, 200);

    cluster.kill().await.unwrap();
    wait_until("health to turn", || http(addr, "GET", "/health", "").0 == 503);
    assert!(http(addr, "GET", "/readyz", "").1.contains(r#""schema":"applied""#));
    assert_eq!(http(addr, "GET", "/livez", "").0, 200);
    assert_ne!(push(addr).1, "queued");
    cluster.restart().await.unwrap();
    wait_until("a push", || push(addr).1 == "queued");
    wait_until("health to turn back", || http(addr, "GET", "/health", "").0 == 200);

    // While the database is away, too, it ends when it is told to.
    cluster.shut_down(Shutdown::Immediate).await.unwrap();
    assert_eq!(program.stop(), Some(0));
}

/// A database that cannot be used ends the start at once, and a broker that waited for it when it comes.
#[tokio::test]
async fn a_database_of_another_kind_is_refused_whenever_it_comes() {
    let db = queen_testkit::db().await.unwrap();
    let client = db.connect().await.unwrap();
    let foreign = "UPDATE queen.system_state SET value = '{\"version\":99,\"product\":\"x\",\"fingerprint\":\"y\"}' \
                   WHERE key = 'schema_version'";
    client.batch_execute(foreign).await.unwrap();

    let (code, _, err) = run(&[], &Settings::new(&db, free_port()).pairs());
    assert_eq!(code, Some(1));
    assert!(err.contains("the database was built by"), "{err}");

    let direct = db.options();
    let proxy = FaultProxy::start(&direct.host, direct.port).await.unwrap();
    proxy.cut();
    let pg = PgOptions { host: "127.0.0.1".to_owned(), port: proxy.port(), ..direct };
    let mut program = Program::start(&[], &Settings::on(pg, free_port()).pairs());
    program.line_with("listening");
    proxy.restore();
    program.line_with("the broker cannot go on");
    assert_eq!(program.ended().code(), Some(1));
}

/// A pooler that gives each transaction another session is refused, before anything goes wrong behind it.
#[tokio::test]
async fn a_pooler_in_transaction_mode_is_refused() {
    let db = queen_testkit::empty_db().await.unwrap();
    for (connections, turn) in [(1, Turn::Last), (2, Turn::Last), (2, Turn::Longest), (3, Turn::Longest)] {
        let pooler = Pooler::start(&db.options(), connections, turn).await.unwrap();
        let pg = PgOptions { host: "127.0.0.1".to_owned(), port: pooler.port(), ..db.options() };
        let settings = Settings::on(pg, free_port());
        let pairs: Vec<(String, String)> =
            settings.pairs().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        // The pooler lives on this runtime.
        let ran = tokio::task::spawn_blocking(move || {
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            run(&[], &pairs)
        });
        let (code, _, err) = ran.await.unwrap();
        assert_eq!(code, Some(1), "{connections} {turn:?}");
        assert!(
            err.contains("transaction pooling detected; connect directly or use session mode"),
            "{connections} {turn:?}: {err}"
        );
    }
    let tables = "SELECT 1 FROM pg_namespace WHERE nspname = 'queen'";
    assert!(db.connect().await.unwrap().query(tables, &[]).await.unwrap().is_empty(), "nothing was made");
}

/// L-04: brokers that boot at once on an empty database wait for each other.
#[tokio::test]
async fn three_brokers_at_once_on_an_empty_database() {
    let db = queen_testkit::empty_db().await.unwrap();
    let ports = [free_port(), free_port(), free_port()];
    let mut programs = ports.map(|port| Program::start(&[], &Settings::new(&db, port).pairs()));
    for port in ports {
        wait_until("all to be healthy", || {
            crate::program::try_http(loopback(port), "GET", "/health", "")
                .is_some_and(|(status, _)| status == 200)
        });
        assert_eq!(push(loopback(port)), (201, "queued".to_owned()));
    }
    for program in &mut programs {
        assert_eq!(program.stop(), Some(0));
    }
}
