//! What is accepted outlives the process, however that ends; and the command for what stands in quarantine.

use std::time::Duration;

use queen_testkit::FaultProxy;
use rustix::process::Signal;

use crate::program::{Program, between, http, run, wait_until};
use crate::settings::{Settings, free_port, loopback, spool};

fn push(keys: std::ops::Range<usize>) -> String {
    let items: Vec<String> = keys
        .map(|n| format!(r#"{{"queue":"q","partition":"p","transactionId":"t{n}","payload":{n}}}"#))
        .collect();
    format!(r#"{{"items":[{}]}}"#, items.join(","))
}

/// I-41: killed while the database is away, and again while it replays; every answered push is delivered once, in order.
#[tokio::test(flavor = "multi_thread")]
async fn accepted_pushes_survive_kills_of_the_process() {
    let db = queen_testkit::db().await.unwrap();
    let direct = db.options();
    let proxy = FaultProxy::start(&direct.host, direct.port).await.unwrap();
    let pg = queen_core::PgOptions { host: "127.0.0.1".to_owned(), port: proxy.port(), ..direct };
    let port = free_port();
    let addr = loopback(port);
    let settings = Settings::on(pg, port);
    let mut program = Program::start(&[], &settings.pairs());
    program.line_with("listening");
    assert!(http(addr, "POST", "/api/v1/push", &push(0..3)).1.contains("queued"));
    proxy.cut();
    for n in 0..40 {
        let (status, body) = http(addr, "POST", "/api/v1/push", &push(3 + n * 25..3 + (n + 1) * 25));
        assert_eq!((status, body.matches(r#""status":"buffered""#).count()), (201, 25), "{body}");
    }
    program.signal(Signal::KILL);
    program.ended();
    // S-12: the write that was under way is cut off.
    let dir = spool(port);
    let newest = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path());
    let newest = newest.filter(|p| p.extension().is_some_and(|e| e == "tmp" || e == "buf")).max().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    bytes.extend_from_slice(&[200, 1, 0, 0, 9, 9, 9, 9, b'{', b'"']);
    std::fs::write(&newest, bytes).unwrap();

    proxy.restore();
    let mut program = Program::start(&[], &settings.pairs());
    program.line_with("listening");
    program.signal(Signal::KILL);
    program.ended();
    let mut program = Program::start(&[], &settings.pairs());
    program.line_with("listening");
    wait_until("the replay", || {
        http(addr, "GET", "/api/v1/status/buffers", "").1.starts_with(r#"{"pending":0,"#)
    });
    let body = http(addr, "GET", "/api/v1/pop/queue/q/partition/p?batch=5000", "").1;
    let found: Vec<String> = body
        .match_indices(r#""transactionId":""#)
        .map(|(at, _)| between(&body[at..], r#"Id":""#, "\"").to_owned())
        .collect();
    let wanted: Vec<String> = (0..1003).map(|n| format!("t{n}")).collect();
    assert_eq!(found, wanted);
    let page = http(addr, "GET", "/api/v1/system/spool", "").1;
    assert!(page.contains(r#""quarantined":0"#) && page.contains(r#""writable":true"#), "{page}");
    assert_eq!(program.stop(), Some(0));
}

/// A second broker on the same spool is refused, and told who holds it.
#[tokio::test(flavor = "multi_thread")]
async fn s17_a_spool_has_one_owner() {
    let db = queen_testkit::db().await.unwrap();
    let (port, other) = (free_port(), free_port());
    let mut program = Program::start(&[], &Settings::new(&db, port).with("QUEEN_SERVER_ID", "first").pairs());
    program.line_with("listening");
    let dir = spool(port);
    let env = Settings::new(&db, other).with("FILE_BUFFER_DIR", &dir);
    let (code, _, err) = run(&[], &env.pairs());
    assert_eq!(code, Some(1));
    assert!(err.contains("belongs to another broker: server first") && err.contains(&dir), "{err}");
    let (code, _, err) = run(&["spool", "list", "--dir", &dir], &[]);
    assert!(code == Some(1) && err.contains("belongs to another broker"), "{err}");
    assert_eq!(program.stop(), Some(0));
}

/// Quarantined messages of a broker that is stopped are listed, shown, exported, driven again and deleted.
#[tokio::test(flavor = "multi_thread")]
async fn quarantined_messages_can_be_handled_without_a_broker() {
    let db = queen_testkit::db().await.unwrap();
    let client = db.connect().await.unwrap();
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'not in this test' USING ERRCODE = '23514'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON queen.log_segments FOR EACH ROW EXECUTE FUNCTION refuse()";
    client.batch_execute(refuse).await.unwrap();
    let port = free_port();
    let addr = loopback(port);
    let settings = Settings::new(&db, port);
    let mut program = Program::start(&[], &settings.pairs());
    program.line_with("listening");
    let switch = |on: bool| {
        let body = format!(r#"{{"enabled":{on}}}"#);
        let (status, answer) = http(addr, "POST", "/api/v1/system/maintenance", &body);
        assert!(status == 200 && answer.contains(r#""mirrored":true"#), "{answer}");
    };
    switch(true);
    assert!(http(addr, "POST", "/api/v1/push", &push(0..2)).1.contains("buffered"));
    switch(false);
    wait_until("the quarantine", || {
        http(addr, "GET", "/api/v1/system/spool", "").1.contains(r#""quarantined":2"#)
    });
    let page = http(addr, "GET", "/api/v1/system/spool/quarantine?payload=true", "").1;
    let file = between(&page, r#""file":""#, "\"").to_owned();
    assert!(page.contains(r#""sqlstate":"23514""#) && page.contains(r#""payload":1"#), "{page}");
    let route = format!("/api/v1/system/spool/quarantine/{file}/requeue");
    assert_eq!(http(addr, "POST", &route, r#"{"indexes":[7]}"#).0, 400);
    assert_eq!(http(addr, "POST", &route.replace("queen-", "x"), "").0, 404);
    assert_eq!(program.stop(), Some(0));

    let dir = spool(port);
    let say = |args: &[&str]| {
        let mut all = vec!["spool"];
        all.extend_from_slice(args);
        all.extend_from_slice(&["--dir", &dir]);
        let (code, out, err) = run(&all, &[]);
        assert_eq!(code, Some(0), "{args:?}: {err}");
        out
    };
    assert!(say(&["list"]).contains(&format!("{file} quarantined events=2")));
    assert!(say(&["show", &file]).contains("23514"));
    let exported = say(&["export", &file]);
    assert_eq!(exported.lines().count(), 2);
    assert!(exported.starts_with(r#"{"queue":"q","partition":"p","transactionId":"t0","#), "{exported}");
    assert_eq!(say(&["requeue", &file, "--index", "0"]).trim(), "requeued 1");
    assert_eq!(say(&["delete", &file]).trim(), "deleted 1");
    let (code, _, err) = run(&["spool", "show", &file, "--dir", &dir], &[]);
    assert!(code == Some(1) && err.contains("no file"), "{err}");

    client.batch_execute("DROP TRIGGER refuse ON queen.log_segments").await.unwrap();
    let mut program = Program::start(&[], &settings.pairs());
    program.line_with("listening");
    wait_until("the replay", || {
        http(addr, "GET", "/api/v1/status/buffers", "").1.starts_with(r#"{"pending":0,"#)
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let body = http(addr, "GET", "/api/v1/pop/queue/q?batch=10", "").1;
    assert!(body.contains(r#""transactionId":"t0""#) && !body.contains("t1"), "{body}");
    assert_eq!(program.stop(), Some(0));
}
