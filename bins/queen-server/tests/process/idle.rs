//! What the program costs while nobody uses it.

use std::time::Duration;

use crate::program::{Program, http, wait_until};
use crate::settings::{Settings, free_port, loopback};

/// How long wake-ups are counted: two cycles of retention, one of the statistics.
const SPAN: Duration = Duration::from_secs(10);

/// How often the threads of a process went to sleep so far.
fn sleeps(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: std::fs::DirEntry| {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    tasks.flatten().map(of).sum()
}

/// At most 25 wake-ups a second, all loops together (decision 34 of the specification).
#[tokio::test]
async fn an_idle_program_sleeps() {
    let db = queen_testkit::db().await.unwrap();
    let port = free_port();
    let mut program = Program::start(&[], &Settings::new(&db, port).pairs());
    program.line_with("listening");
    wait_until("the schema", || http(loopback(port), "GET", "/readyz?strict=1", "").0 == 200);
    // Boot is over, and the notes of retention are walked once.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = sleeps(program.id());
    tokio::time::sleep(SPAN).await;
    let woken = (sleeps(program.id()) - before) as f64 / SPAN.as_secs_f64();
    println!("{woken} wake-ups a second");
    assert!(woken <= 25.0, "{woken} wake-ups a second");
    assert_eq!(program.stop(), Some(0));
}
