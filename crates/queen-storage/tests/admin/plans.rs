//! Every statement keeps to its indexes under a generic plan, and its file says what it locks and writes.

use queen_pg::SimpleQueryMessage;
use queen_storage::{admin, maintenance, metrics, stats};

use crate::support::Fixture;

/// Tables that grow with traffic.
const BIG: &[&str] = &["log_segments", "log_partitions", "log_consumers", "log_txns", "log_dlq"];

/// Statements that may walk a table, each for a reason.
const MAY_WALK: &[&str] = &[];

/// Every statement of the two areas.
fn all() -> impl Iterator<Item = (usize, (&'static str, &'static str))> {
    let areas = [admin::sql::ALL, maintenance::sql::ALL, stats::sql::ALL, metrics::sql::ALL];
    areas.into_iter().flatten().copied().enumerate()
}

fn parameters(sql: &str) -> usize {
    (1..=40).rev().find(|n| sql.contains(&format!("${n}"))).unwrap_or(0)
}

#[tokio::test]
async fn no_statement_walks_a_big_table() {
    let f = Fixture::new().await;
    let mut conn = f.conn().await;
    for (i, (path, sql)) in all() {
        conn.batch(&format!("PREPARE s{i} AS {sql}")).await.unwrap();
        let nulls = vec!["NULL"; parameters(sql)].join(", ");
        let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
        let mut plan = String::new();
        for message in
            conn.simple_query(&format!("EXPLAIN (COSTS OFF) EXECUTE s{i}{arguments}")).await.unwrap()
        {
            if let SimpleQueryMessage::Row(row) = message {
                plan.push_str(row.get(0).unwrap());
                plan.push('\n');
            }
        }
        if MAY_WALK.contains(&path) {
            continue;
        }
        let lines: Vec<&str> = plan.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let scanned = line.split(" on ").nth(1).and_then(|rest| rest.split(' ').next());
            if !scanned.is_some_and(|table| BIG.contains(&table)) {
                continue;
            }
            assert!(!line.contains("Seq Scan"), "{path} walks a table:\n{plan}");
            let conditioned = lines.get(at + 1).is_some_and(|next| next.contains("Cond"));
            assert!(!line.contains("Index") || conditioned, "{path} walks an index:\n{plan}");
        }
    }
}

#[test]
fn every_file_says_who_calls_it_what_it_locks_and_what_it_writes() {
    for (_, (path, sql)) in all() {
        let head: String = sql.lines().take_while(|line| line.starts_with("--")).collect();
        for word in ["Caller:", "Locks:", "Writes:"] {
            assert!(head.contains(word), "{path} has no {word:?} in its head");
        }
    }
}

#[test]
fn every_file_of_the_folders_is_used() {
    for (folder, statements) in [
        ("admin", admin::sql::ALL),
        ("maintenance", maintenance::sql::ALL),
        ("stats", stats::sql::ALL),
        ("metrics", metrics::sql::ALL),
    ] {
        let path = format!("{}/../../schema/statements/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut files: Vec<String> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| format!("{folder}/{}", entry.unwrap().file_name().into_string().unwrap()))
            .collect();
        let mut used: Vec<&str> = statements.iter().map(|(path, _)| *path).collect();
        files.sort_unstable();
        used.sort_unstable();
        assert_eq!(files, used);
    }
}
