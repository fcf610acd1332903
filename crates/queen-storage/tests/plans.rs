//! Every statement of the data path keeps to its indexes under a generic plan, on tables of which the planner knows
//! nothing, and its file says what it locks and writes.

use queen_storage::sql::ALL;

/// Statements that may walk a table, each for a reason.
const MAY_WALK: &[&str] = &[
    // No index serves a lease id, see the file.
    "lease/find.sql",
    // Counts every note of the tenant.
    "traces/names.sql",
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
        let plan = explain(&mut conn, &format!("s{i}"), sql).await?;
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

/// `EXPLAIN` of the prepared statement `name` with as many NULLs as it has parameters.
async fn explain(conn: &mut queen_pg::Conn, name: &str, sql: &str) -> anyhow::Result<String> {
    let nulls = vec!["NULL"; parameters(sql)].join(", ");
    let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    let mut plan = String::new();
    for message in conn.simple_query(&format!("EXPLAIN (COSTS OFF) EXECUTE {name}{arguments}")).await? {
        if let queen_pg::SimpleQueryMessage::Row(row) = message {
            plan.push_str(row.get(0).unwrap_or_default());
            plan.push('\n');
        }
    }
    Ok(plan)
}

/// docs/decisions/008: one page per row, in input order, whatever the planner knows of the table.
#[tokio::test]
async fn whole_batches_are_acked_by_the_address_of_their_rows() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let pool = db.pool().await;
    let (_, sql) = ALL.iter().find(|(path, _)| *path == "ack/full.sql").expect("a statement");
    let mut conn = pool.get().await?;
    conn.batch(&format!("PREPARE empty AS {sql}")).await?;
    let mut plans = vec![explain(&mut conn, "empty", sql).await?];
    conn.batch(
        "INSERT INTO queen.queues (tenant_id, name) VALUES ('00000000-0000-0000-0000-000000000001', 'q');
         INSERT INTO queen.log_partitions (queue_id, name)
             SELECT q.id, n::text FROM queen.queues q, generate_series(1, 20000) n;
         INSERT INTO queen.log_consumers (partition_id) SELECT id FROM queen.log_partitions;
         ANALYZE",
    )
    .await?;
    conn.batch(&format!("PREPARE grown AS {sql}")).await?;
    plans.push(explain(&mut conn, "empty", sql).await?);
    plans.push(explain(&mut conn, "grown", sql).await?);
    for plan in plans {
        let lines: Vec<&str> = plan.lines().map(str::trim).collect();
        let shape = [
            "Update on log_consumers c",
            "->  Nested Loop",
            "->  Function Scan on i",
            "->  Tid Scan on log_consumers c",
        ];
        let nodes: Vec<&str> =
            lines.iter().filter(|l| l.starts_with("->") || l.starts_with("Update")).copied().collect();
        assert_eq!(nodes, shape, "{plan}");
        assert!(lines.contains(&"TID Cond: (ctid = i.address)"), "{plan}");
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
