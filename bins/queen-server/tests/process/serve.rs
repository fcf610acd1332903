use std::net::TcpListener;

use rustix::process::Signal;

use crate::program::{Program, endless_request, http, run, try_http, wait_until};
use crate::settings::{Settings, free_port, loopback};

#[tokio::test]
async fn it_applies_the_schema_serves_and_ends_on_a_signal() {
    let db = queen_testkit::empty_db().await.unwrap();
    let port = free_port();
    let mut program = Program::start(&[], &Settings::new(&db, port).pairs());
    program.line_with("listening");
    wait_until("the schema", || http(loopback(port), "GET", "/readyz?strict=1", "").0 == 200);
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
