use std::sync::Arc;
use std::time::{Duration, Instant};

use queen_storage::admin::{delete_queue, load_queue, partition_ids_of_queue};
use queen_types::{TenantId, Uuid};

use crate::support::{Fixture, TENANT, queue};

const EVERYTHING: &str =
    "SELECT (SELECT count(*) FROM queen.queues) + (SELECT count(*) FROM queen.log_partitions)
    + (SELECT count(*) FROM queen.log_segments) + (SELECT count(*) FROM queen.log_txns)
    + (SELECT count(*) FROM queen.log_consumers) + (SELECT count(*) FROM queen.log_dlq)
    + (SELECT count(*) FROM queen.consumer_groups_metadata)";

/// A queue with two partitions and a row in every table: 10 rows.
async fn fill(f: &Fixture, tenant: TenantId, name: &str) {
    let q = f.queue_of(tenant, name).await;
    for partition in ["a", "b"] {
        let p = f.partition(q, partition).await;
        f.segment(p, 0, 4).await;
        f.cursor(p, "g", 1).await;
        if partition == "a" {
            f.dead(p, "g", 1, 0).await;
            let sql = "INSERT INTO queen.log_txns VALUES ($1::uuid, -5, -1, now(), '\\x00')";
            f.conn().await.execute(sql, &[&p.0]).await.unwrap();
        }
    }
    let sql = "INSERT INTO queen.consumer_groups_metadata
            (tenant_id, consumer_group, queue_id, subscription_mode, subscription_timestamp)
        VALUES ($1::uuid, 'g', $2::uuid, 'all', now())";
    f.conn().await.execute(sql, &[&tenant.0, &q.0]).await.unwrap();
}

#[tokio::test]
async fn everything_of_the_queue_goes_and_nothing_else() {
    let f = Fixture::new().await;
    let other = TenantId(Uuid::from_u128(3));
    fill(&f, TENANT, "q").await;
    let own = f.count(EVERYTHING).await;
    fill(&f, TENANT, "neighbour").await;
    fill(&f, other, "q").await;
    assert_eq!(own, 10);
    let ids = partition_ids_of_queue(&f.pool, TENANT, &queue("q")).await.unwrap();
    let deleted = delete_queue(&f.pool, TENANT, &queue("q")).await.unwrap().unwrap();
    assert_eq!(deleted.partitions, ids);
    assert_eq!(ids.len(), 2);
    assert_eq!(f.count(EVERYTHING).await, 2 * own);
    assert_eq!(load_queue(&f.pool, TENANT, &queue("q")).await.unwrap(), None);
    assert!(load_queue(&f.pool, other, &queue("q")).await.unwrap().is_some());
    assert_eq!(delete_queue(&f.pool, TENANT, &queue("q")).await.unwrap(), None);
    assert_eq!(partition_ids_of_queue(&f.pool, TENANT, &queue("q")).await.unwrap(), []);
}

#[tokio::test]
async fn an_empty_queue_goes_too() {
    let f = Fixture::new().await;
    f.queue("q").await;
    assert_eq!(delete_queue(&f.pool, TENANT, &queue("q")).await.unwrap().unwrap().partitions, []);
    assert_eq!(f.count(EVERYTHING).await, 0);
}

/// Waits until some session of this database waits for a lock.
async fn until_blocked(f: &Fixture) {
    let blocked = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let began = Instant::now();
    while f.count(blocked).await == 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "nobody waits");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_waits_for_whoever_holds_a_row_and_then_finishes() {
    for hold in [
        "SELECT 1 FROM queen.log_dlq FOR UPDATE",
        "SELECT 1 FROM queen.queues FOR KEY SHARE",
        "SELECT 1 FROM queen.log_partitions FOR NO KEY UPDATE",
        "SELECT 1 FROM queen.log_consumers FOR UPDATE",
    ] {
        let f = Arc::new(Fixture::new().await);
        fill(&f, TENANT, "q").await;
        let mut holder = f.conn().await;
        let mut tx = holder.begin();
        tx.query(hold, &[]).await.unwrap();
        let deleting = {
            let f = Arc::clone(&f);
            tokio::spawn(async move { delete_queue(&f.pool, TENANT, &queue("q")).await })
        };
        until_blocked(&f).await;
        tx.commit().await.unwrap();
        assert!(deleting.await.unwrap().unwrap().is_some(), "{hold}");
        assert_eq!(f.count(EVERYTHING).await, 0, "{hold}");
    }
}

/// A replay takes its record, then the queue, then the partition: the order in which the deletion goes too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_and_a_deletion_do_not_deadlock() {
    let f = Arc::new(Fixture::new().await);
    fill(&f, TENANT, "q").await;
    let mut replay = f.conn().await;
    let mut tx = replay.begin();
    tx.query("SELECT 1 FROM queen.log_dlq FOR UPDATE", &[]).await.unwrap();
    let deleting = {
        let f = Arc::clone(&f);
        tokio::spawn(async move { delete_queue(&f.pool, TENANT, &queue("q")).await })
    };
    until_blocked(&f).await;
    // The deletion waits for the record and holds nothing that a replay wants.
    tx.query("SELECT 1 FROM queen.queues FOR KEY SHARE", &[]).await.unwrap();
    tx.query("SELECT 1 FROM queen.log_partitions ORDER BY id FOR NO KEY UPDATE", &[]).await.unwrap();
    tx.query("DELETE FROM queen.log_dlq", &[]).await.unwrap();
    tx.commit().await.unwrap();
    assert!(deleting.await.unwrap().unwrap().is_some());
    assert_eq!(f.count(EVERYTHING).await, 0);
}

/// A record that was filed after the first step, and is held by a replay that waits for the queue: it is left to the
/// replay, since waiting for it would be a deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_a_late_replay_holds_is_left_to_it() {
    let f = Arc::new(Fixture::new().await);
    fill(&f, TENANT, "q").await;
    f.run("DELETE FROM queen.log_dlq").await;
    let mut ack = f.conn().await;
    let mut acking = ack.begin();
    acking.query("SELECT 1 FROM queen.log_consumers FOR UPDATE", &[]).await.unwrap();
    let deleting = {
        let f = Arc::clone(&f);
        tokio::spawn(async move { delete_queue(&f.pool, TENANT, &queue("q")).await })
    };
    until_blocked(&f).await;
    let file = "INSERT INTO queen.log_dlq (partition_id, consumer_group, \"offset\")
        SELECT id, 'g', 0 FROM queen.log_partitions ORDER BY id LIMIT 1";
    f.run(file).await;
    let mut replay = f.conn().await;
    let mut replaying = replay.begin();
    replaying.query("SELECT 1 FROM queen.log_dlq FOR UPDATE", &[]).await.unwrap();
    acking.commit().await.unwrap();
    assert!(deleting.await.unwrap().unwrap().is_some());
    replaying.query("DELETE FROM queen.log_dlq", &[]).await.unwrap();
    replaying.commit().await.unwrap();
    assert_eq!(f.count(EVERYTHING).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_deletions_of_one_queue_are_one() {
    let f = Arc::new(Fixture::new().await);
    for _ in 0..10 {
        fill(&f, TENANT, "q").await;
        let both = [(); 2].map(|()| {
            let f = Arc::clone(&f);
            tokio::spawn(async move { delete_queue(&f.pool, TENANT, &queue("q")).await.unwrap().is_some() })
        });
        let mut deleted = 0;
        for task in both {
            deleted += i32::from(task.await.unwrap());
        }
        assert_eq!(deleted, 1);
        assert_eq!(f.count(EVERYTHING).await, 0);
    }
}

#[tokio::test]
async fn a_large_queue_goes_in_steps() {
    let f = Fixture::new().await;
    fill(&f, TENANT, "neighbour").await;
    let neighbour = f.count(EVERYTHING).await;
    let many = f.queue("many").await;
    f.partition(f.queue("deep").await, "p").await;
    f.run(&format!(
        "INSERT INTO queen.log_partitions (queue_id, name) SELECT '{}', n::text FROM generate_series(1, 1250) n;
         INSERT INTO queen.log_consumers (partition_id, consumer_group) SELECT id, 'g' FROM queen.log_partitions ON CONFLICT DO NOTHING;
         INSERT INTO queen.log_segments SELECT p.id, n, n, now(), '\\x00', '\\x00'
             FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id AND q.name = 'deep',
                  generate_series(0, 25000) n",
        many.0
    ))
    .await;
    let deleted = delete_queue(&f.pool, TENANT, &queue("many")).await.unwrap().unwrap();
    assert_eq!(deleted.partitions.len(), 1250);
    assert_eq!(delete_queue(&f.pool, TENANT, &queue("deep")).await.unwrap().unwrap().partitions.len(), 1);
    assert_eq!(f.count(EVERYTHING).await, neighbour);
    assert_eq!(f.count("SELECT count(*) FROM queen.log_segments").await, 2);
}
