use std::net::{SocketAddr, TcpListener};

use queen_testkit::TestDb;
use rustix::process::Signal;

use crate::program::{Program, endless_request, http, run, try_http, wait_until};

/// The variables that name a test database and a port.
pub(crate) struct Settings(pub(crate) Vec<(&'static str, String)>);

impl Settings {
    pub(crate) fn new(db: &TestDb, port: u16) -> Settings {
        let pg = db.options();
        Settings(vec![
            ("PG_HOST", pg.host),
            ("PG_PORT", pg.port.to_string()),
            ("PG_USER", pg.user),
            ("PG_PASSWORD", pg.password.unwrap_or_default()),
            ("PG_DATABASE", pg.database),
            ("DB_POOL_SIZE", "4".to_owned()),
            ("QUEEN_BIND_ADDR", "127.0.0.1".to_owned()),
            ("PORT", port.to_string()),
            // Nobody shares a spool.
            (
                "FILE_BUFFER_DIR",
                format!("{}/spool-{port}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id()),
            ),
        ])
    }

    pub(crate) fn pairs(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind(loopback(0)).unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn it_applies_the_schema_serves_and_ends_on_a_signal() {
    let db = queen_testkit::empty_db().await.unwrap();
    let port = free_port();
    let mut program = Program::start(&[], &Settings::new(&db, port).pairs());
    program.line_with("listening");
    assert_eq!(http(loopback(port), "GET", "/readyz?strict=1", "").0, 200);
    program.signal(Signal::HUP);
    program.line_with("SIGHUP is ignored");
    assert_eq!(http(loopback(port), "GET", "/health", "").0, 200);
    program.signal(Signal::INT);
    assert_eq!(program.ended().code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let db = queen_testkit::db().await.unwrap();
    let port = free_port();
    let mut program = Program::start(&[], &Settings::new(&db, port).pairs());
    program.line_with("listening");
    let _open = endless_request(loopback(port));
    program.signal(Signal::TERM);
    wait_until("the listener to close", || try_http(loopback(port), "GET", "/status", "").is_none());
    program.signal(Signal::INT);
    assert_eq!(program.ended().code(), Some(130));
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let db = queen_testkit::db().await.unwrap();
    let taken = TcpListener::bind(loopback(0)).unwrap();
    let addr = taken.local_addr().unwrap();
    let (code, _, err) = run(&[], &Settings::new(&db, addr.port()).pairs());
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("cannot bind {addr}")), "{err}");
}
