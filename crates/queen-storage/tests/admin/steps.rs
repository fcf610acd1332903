//! Work that goes in steps over a table it deletes from: each step begins where the last one ended, so that the whole
//! costs by rows. Counted are the index entries that it reads, while a transaction elsewhere keeps every dead row.

use std::time::Duration;

use queen_pg::{PgOptions, Pool};
use queen_storage::admin::delete_queue;
use queen_storage::{Storage, StorageOptions};
use queen_testkit::wait_until;
use queen_types::Uuid;

use crate::support::{Fixture, TENANT, queue};

const READ: &str = "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)::int8
    + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)::int8";
const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'queen/steps'
    AND datname = current_database()";

const OLD: &str = "now() - interval '9 days' + n * interval '1 ms'";

/// Runs `work` on a queue that `fill` filled with so many rows, and on one with four times as many, of which it says how
/// many it deleted. Four times the rows must cost less than five times as much; work that looks again at what it deleted
/// costs nearer to sixteen times.
async fn costs_by_rows(rows: i64, fill: impl Fn(i64) -> String, work: impl AsyncFn(Storage) -> i64) {
    let mut entries = Vec::new();
    for rows in [rows, 4 * rows] {
        let f = Fixture::new().await;
        f.queue("q").await;
        let sessions =
            || Pool::new(PgOptions { application_name: "queen/steps".to_owned(), ..f.db.options() });
        let filling = sessions().unwrap();
        filling.get().await.unwrap().batch(&fill(rows)).await.unwrap();
        filling.close();
        let before = settled(&f).await;
        let old = f.db.connect().await.unwrap();
        old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
        let pool = sessions().unwrap();
        let deleted = work(Storage::new(pool.clone(), StorageOptions::default())).await;
        pool.close();
        entries.push(settled(&f).await - before);
        assert_eq!(deleted, rows);
    }
    assert!(entries[0] > 0 && entries[1] < 5 * entries[0], "{entries:?}");
}

/// What was read in all, once every session that is counted has ended: it reports at its end.
async fn settled(f: &Fixture) -> i64 {
    let ended = async || f.count(SESSIONS).await == 0;
    wait_until("the sessions to end", Duration::from_secs(10), ended).await.unwrap();
    let mut read = f.count(READ).await;
    loop {
        // Before PostgreSQL 15 a report takes a moment to arrive.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = f.count(READ).await;
        if now == read {
            return read;
        }
        read = now;
    }
}

fn partitions(n: i64, then: &str) -> String {
    format!(
        "INSERT INTO queen.log_partitions (queue_id, name) SELECT q.id, n::text FROM queen.queues q, generate_series(1, {n}) n;
         {then}"
    )
}

#[tokio::test]
async fn deleting_a_queue_with_many_partitions() {
    let fill = |n| {
        partitions(
            n,
            "INSERT INTO queen.log_segments SELECT id, 0, 0, now(), '', '' FROM queen.log_partitions",
        )
    };
    let partitions: Option<i64> = std::env::var("QUEEN_TEST_PARTITIONS").ok().and_then(|n| n.parse().ok());
    costs_by_rows(partitions.unwrap_or(1_200), fill, async |storage| {
        let deleted = delete_queue(storage.pool(), TENANT, &queue("q")).await.unwrap().unwrap();
        deleted.partitions.len() as i64
    })
    .await;
}

#[tokio::test]
async fn deleting_a_queue_with_a_long_log() {
    let fill = |n| {
        let segments = format!(
            "INSERT INTO queen.log_segments SELECT id, n, n, now(), '', '' FROM queen.log_partitions, generate_series(1, {n}) n"
        );
        partitions(1, &segments)
    };
    costs_by_rows(25_000, fill, async |storage| {
        let segments = "SELECT count(*) FROM queen.log_segments";
        let before: i64 = storage.pool().get().await.unwrap().query(segments, &[]).await.unwrap()[0].get(0);
        delete_queue(storage.pool(), TENANT, &queue("q")).await.unwrap().unwrap();
        before
    })
    .await;
}

#[tokio::test]
async fn purging_dead_letters() {
    let fill = |n| {
        partitions(
            n / 20,
            "INSERT INTO queen.log_dlq (partition_id, consumer_group, \"offset\", failed_at)
                 SELECT id, 'g', n, now() + n * interval '1 ms' FROM queen.log_partitions, generate_series(1, 20) n",
        )
    };
    costs_by_rows(10_000, fill, async |storage| {
        storage.purge_dead_letters(TENANT, &queue("q"), None).await.unwrap() as i64
    })
    .await;
}

#[tokio::test]
async fn dead_letters_that_were_kept_long_enough() {
    let fill = |n| {
        let letters = format!(
            "UPDATE queen.queues SET dlq_retention_seconds = 1;
             INSERT INTO queen.log_dlq (partition_id, consumer_group, \"offset\", failed_at)
                 SELECT id, 'g', n, {OLD} FROM queen.log_partitions, generate_series(1, {n}) n"
        );
        partitions(1, &letters)
    };
    costs_by_rows(2_000, fill, async |storage| {
        let mut due = storage.dead_letters_due().await.unwrap();
        let mut deleted = 0;
        loop {
            let step = storage.dead_letters_step(&mut due[0], 200).await.unwrap();
            deleted += step;
            if step < 200 {
                return deleted;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn retention_of_a_long_log() {
    let fill = |n| {
        let segments = format!(
            "UPDATE queen.queues SET retention_enabled = TRUE, retention_seconds = 1, dedup_window_seconds = 0;
             INSERT INTO queen.log_segments
                 SELECT id, n, n, {OLD}, '', '' FROM queen.log_partitions, generate_series(1, {n}) n;
             UPDATE queen.log_partitions
                 SET oldest_live_at = now() - interval '9 days', retention_from = now() - interval '9 days'"
        );
        partitions(1, &segments)
    };
    costs_by_rows(2_000, fill, async |storage| {
        let due = storage.retention_due(None).await.unwrap().unwrap();
        let mut deleted = 0;
        loop {
            let step = storage.retention_step(due.partitions[0], due.now, 200).await.unwrap();
            deleted += step.segments;
            if step.segments < 200 {
                return deleted;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_list_of_retention() {
    let fill = |n| {
        partitions(
            n,
            "UPDATE queen.queues SET retention_enabled = TRUE, retention_seconds = 1;
             UPDATE queen.log_partitions
                 SET retention_from = now() - interval '9 days' + name::int4 * interval '1 ms'",
        )
    };
    costs_by_rows(3_000, fill, async |storage| {
        let (mut list, mut seen) = (None, std::collections::BTreeSet::new());
        while let Some(due) = storage.retention_due(list.as_ref()).await.unwrap() {
            let done = "UPDATE queen.log_partitions SET retention_from = NULL WHERE id = ANY ($1)";
            let ids: Vec<Uuid> = due.partitions.iter().map(|p| p.0).collect();
            storage.pool().get().await.unwrap().execute(done, &[&ids]).await.unwrap();
            seen.extend(ids);
            list = Some(due);
        }
        seen.len() as i64
    })
    .await;
}

#[tokio::test]
async fn hashes_that_outlived_the_window() {
    let fill = |n| {
        let hashes = format!(
            "INSERT INTO queen.log_txns SELECT id, n, n, {OLD}, '' FROM queen.log_partitions, generate_series(1, {n}) n;
             UPDATE queen.log_partitions SET oldest_txn_at = now() - interval '9 days'"
        );
        partitions(1, &hashes)
    };
    costs_by_rows(2_000, fill, async |storage| {
        let due = storage.hashes_due().await.unwrap();
        let mut deleted = 0;
        loop {
            let step = storage.hashes_step(due[0], 200).await.unwrap();
            deleted += step;
            if step < 200 {
                return deleted;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn partitions_that_nobody_uses() {
    let fill = |n| {
        partitions(
            n,
            "UPDATE queen.log_partitions SET oldest_live_at = NULL, retention_from = NULL,
                 created_at = now() - interval '9 days',
                 last_write_at = now() - interval '9 days' + name::int4 * interval '1 ms'",
        )
    };
    costs_by_rows(1_500, fill, async |storage| {
        let (mut deleted, mut from) = (0, None);
        loop {
            let (gone, next) = storage.delete_unused_partitions(7, from).await.unwrap();
            deleted += gone.len() as i64;
            if next.is_none() {
                return deleted;
            }
            from = next;
        }
    })
    .await;
}

#[tokio::test]
async fn history_that_was_kept_long_enough() {
    let fill = |n| {
        format!(
            "INSERT INTO queen.retention_history (partition_id, retention_type, executed_at)
                 SELECT gen_random_uuid(), 'retention', {OLD} FROM generate_series(1, {n}) n"
        )
    };
    costs_by_rows(12_000, fill, async |storage| {
        let mut deleted = 0;
        loop {
            match storage.purge_metrics(7).await.unwrap() {
                0 => return deleted,
                step => deleted += step,
            }
        }
    })
    .await;
}
