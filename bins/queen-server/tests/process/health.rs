//! `queen-server healthcheck`, as a container runs it.

use std::io::{Read, Write};
use std::net::TcpListener;

use queen_core::PgOptions;

use crate::program::{Program, run, wait_until};
use crate::settings::{Settings, free_port, loopback};

#[tokio::test]
async fn a_broker_that_lives_and_is_ready() {
    let db = queen_testkit::db().await.unwrap();
    let port = free_port();
    let settings = Settings::new(&db, port);
    let mut program = Program::start(&[], &settings.pairs());
    program.line_with("listening");
    assert_eq!(run(&["healthcheck"], &settings.pairs()), (Some(0), String::new(), String::new()));
    wait_until("readiness", || run(&["healthcheck", "--ready"], &settings.pairs()).0 == Some(0));
    assert_eq!(program.stop(), Some(0));
    let (code, _, err) = run(&["healthcheck"], &settings.pairs());
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("GET http://127.0.0.1:{port}/livez")), "{err}");
}

#[test]
fn a_broker_without_its_database_lives() {
    let port = free_port();
    let nowhere = PgOptions { host: "127.0.0.1".to_owned(), port: 1, ..PgOptions::default() };
    let settings = Settings::on(nowhere, port);
    let mut program = Program::start(&[], &settings.pairs());
    program.line_with("listening");
    assert_eq!(run(&["healthcheck"], &settings.pairs()).0, Some(0));
    assert_eq!(program.stop(), Some(0));
}

#[test]
fn something_else_that_listens_is_no_broker() {
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let answering = std::thread::spawn(move || {
        for answer in ["SSH-2.0-x\r\n", "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy"] {
            let (mut stream, _) = listener.accept().unwrap();
            // What was asked is read, so that the answer is not lost to a reset.
            assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let (code, _, err) = run(&["healthcheck"], &[("PORT", &port)]);
    assert!(code == Some(1) && err.contains("no HTTP answer"), "{err}");
    let (code, _, err) = run(&["healthcheck", "--ready"], &[("PORT", &port)]);
    assert!(code == Some(1) && err.contains("/readyz answers 503: busy"), "{err}");
    answering.join().unwrap();
}
