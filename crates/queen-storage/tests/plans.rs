//! Every statement of the data path keeps to its indexes under a generic plan, on tables of which the planner knows
//! nothing, and its file says what it locks and writes.

use queen_storage::sql::ALL;

/// Statements that may walk a table, each for a reason.
const MAY_WALK: &[&str] = &[
    // No index serves a lease id, see the file.
    "lease/find.sql",
];

fn parameters(sql: &str) -> usize {
    (1..=20).take_while(|n| sql.contains(&format!("${n}"))).count()
}

#[tokio::test]
async fn no_statement_reads_a_big_table_from_end_to_end() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let pool = db.pool().await;
    let mut conn = pool.get().await?;
    for (i, (path, sql)) in ALL.iter().enumerate() {
        conn.batch(&format!("PREPARE s{i} AS {sql}")).await?;
        let nulls = vec!["NULL"; parameters(sql)].join(", ");
        let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
        let mut plan = String::new();
        for message in conn.simple_query(&format!("EXPLAIN (COSTS OFF) EXECUTE s{i}{arguments}")).await? {
            if let queen_pg::SimpleQueryMessage::Row(row) = message {
                plan.push_str(row.get(0).unwrap_or_default());
                plan.push('\n');
            }
        }
        let walks = plan.contains("Seq Scan on");
        assert!(!walks || MAY_WALK.contains(path), "{path}:\n{plan}");
        for table in ["log_segments", "log_partitions", "log_consumers", "log_txns"] {
            // An index read without a condition is a walk all the same.
            let bare = plan.lines().zip(plan.lines().skip(1).chain([""])).any(|(line, next)| {
                line.contains("Index")
                    && line.contains(&format!(" on {table}"))
                    && !next.contains("Index Cond")
            });
            assert!(!bare || MAY_WALK.contains(path), "{path} walks an index of {table}:\n{plan}");
        }
    }
    Ok(())
}

#[test]
fn every_file_says_who_calls_it_what_it_locks_and_what_it_writes() {
    for (path, sql) in ALL {
        let head: String = sql.lines().take_while(|line| line.starts_with("--")).collect();
        for word in ["Caller:", "Locks:", "Writes:"] {
            assert!(head.contains(word), "{path} has no {word:?} in its head");
        }
    }
}
