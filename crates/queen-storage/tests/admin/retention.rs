use std::time::Duration;

use queen_pg::SimpleQueryMessage;
use queen_storage::admin::queue_pins;
use queen_storage::maintenance::Step;
use queen_storage::maintenance::sql::ALL;
use queen_storage::{Storage, StorageOptions};
use queen_types::{PartitionId, QueueId, Uuid};

use crate::support::{Fixture, TENANT, queue};

const PERIOD: Duration = Duration::from_secs(5);

struct Scene {
    f: Fixture,
    storage: Storage,
    queue: QueueId,
}

impl Scene {
    async fn new(options: &str) -> Scene {
        let f = Fixture::new().await;
        let queue = f.queue("q").await;
        f.run(&format!("UPDATE queen.queues SET {options}")).await;
        let storage = Storage::new(f.pool.clone(), StorageOptions::default());
        Scene { f, storage, queue }
    }

    /// A partition with one-message segments of these ages in seconds, oldest first.
    async fn partition(&self, name: &str, ages: &[i32]) -> PartitionId {
        let p = self.f.partition(self.queue, name).await;
        let sql = "INSERT INTO queen.log_segments
            SELECT $1::uuid, a.ord - 1, a.ord - 1, now() - make_interval(secs => a.age), decode(md5(a.ord::text), 'hex'), '\\x00'
            FROM unnest($2::int4[]) WITH ORDINALITY AS a (age, ord)";
        self.f.conn().await.execute(sql, &[&p.0, &ages]).await.unwrap();
        self.mend().await;
        p
    }

    async fn mend(&self) -> usize {
        let (mut at, mut wrong) = (None, 0);
        loop {
            let (next, found) = self.storage.mend_marks(at).await.unwrap();
            wrong += found;
            match next {
                Some(next) => at = Some(next),
                None => return wrong,
            }
        }
    }

    /// Looks at the work list and steps until nothing is due; what was deleted.
    async fn cycle(&self) -> Step {
        let mut sum = Step::default();
        while let Some(due) = self.storage.retention_due(None).await.unwrap() {
            let look = self.storage.retention_look(&due.partitions, due.now, PERIOD).await.unwrap();
            for id in look.deletable {
                let step = self.storage.retention_step(id, due.now, 2).await.unwrap();
                assert!(step.segments > 0, "a look calls deletable what a step does not delete");
                sum.add(step);
            }
        }
        sum
    }

    async fn offsets(&self, p: PartitionId) -> Vec<i64> {
        let sql = "SELECT base_offset FROM queen.log_segments WHERE partition_id = $1::uuid ORDER BY 1";
        self.f.conn().await.query(sql, &[&p.0]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// log_start, last_offset, whether the notes are empty.
    async fn home(&self, p: PartitionId) -> (i64, i64, bool) {
        let sql = "SELECT log_start, last_offset, oldest_live_at IS NULL AND retention_from IS NULL
            FROM queen.log_partitions WHERE id = $1::uuid";
        let rows = self.f.conn().await.query(sql, &[&p.0]).await.unwrap();
        (rows[0].get(0), rows[0].get(1), rows[0].get(2))
    }

    /// Pages that a statement touches.
    async fn buffers(&self, path: &str, arguments: &str) -> i64 {
        let (_, sql) = ALL.iter().find(|(name, _)| *name == path).unwrap();
        let mut conn = self.f.conn().await;
        conn.batch(&format!("PREPARE s AS {sql}")).await.unwrap();
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE s{arguments}");
        let mut text = String::new();
        for message in conn.simple_query(&explain).await.unwrap() {
            if let SimpleQueryMessage::Row(row) = message {
                text.push_str(row.get(0).unwrap());
            }
        }
        conn.batch("DEALLOCATE s").await.unwrap();
        let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
        ["Shared Hit Blocks", "Shared Read Blocks"]
            .iter()
            .map(|key| plan[0]["Plan"][key].as_i64().unwrap())
            .sum()
    }

    async fn history(&self) -> Vec<(String, i32)> {
        let sql = "SELECT retention_type, sum(messages_deleted)::int4 FROM queen.retention_history GROUP BY 1 ORDER BY 1";
        self.f.conn().await.query(sql, &[]).await.unwrap().iter().map(|r| (r.get(0), r.get(1))).collect()
    }
}

#[tokio::test]
async fn by_age_everything_old_goes_consumed_or_not() {
    let s = Scene::new("retention_enabled = TRUE, retention_seconds = 100").await;
    let p = s.partition("p", &[500, 400, 300, 50, 10]).await;
    let empty = s.partition("all", &[500, 400, 300]).await;
    s.partition("young", &[10]).await;
    s.f.cursor(p, "g", 1).await;
    let deleted = s.cycle().await;
    assert_eq!(deleted, Step { segments: 6, messages: 6, age: 6, unconsumed: 4, ..Step::default() });
    assert_eq!(s.offsets(p).await, [3, 4]);
    assert_eq!(s.home(p).await, (3, 4, false));
    assert_eq!(s.home(empty).await, (3, 2, true));
    assert_eq!(s.history().await, [("retention".to_owned(), 6)]);
    assert_eq!(s.cycle().await, Step::default());
    assert_eq!(s.mend().await, 0, "a step leaves notes that are right");
}

#[tokio::test]
async fn nothing_goes_while_the_rules_are_off() {
    let s =
        Scene::new("retention_enabled = FALSE, retention_seconds = 1, completed_retention_seconds = 1").await;
    let p = s.partition("p", &[500]).await;
    s.f.cursor(p, "g", 0).await;
    assert_eq!(s.storage.retention_due(None).await.unwrap(), None);
}

#[tokio::test]
async fn what_is_consumed_goes_up_to_the_slowest_named_group() {
    let s = Scene::new("retention_enabled = TRUE, completed_retention_seconds = 100").await;
    let p = s.partition("p", &[500, 400, 300, 200, 50]).await;
    s.f.cursor(p, "fast", 4).await;
    s.f.cursor(p, "slow", 1).await;
    // A stray pop without a group pins nothing while a named group exists.
    s.f.cursor(p, "__QUEUE_MODE__", -1).await;
    let nobody = s.partition("nobody", &[500]).await;
    let queue_mode = s.partition("mode", &[500, 400]).await;
    s.f.cursor(queue_mode, "__QUEUE_MODE__", 0).await;
    let deleted = s.cycle().await;
    assert_eq!(deleted, Step { segments: 3, messages: 3, completed: 3, ..Step::default() });
    assert_eq!((s.offsets(p).await, s.offsets(nobody).await), (vec![2, 3, 4], vec![0]));
    assert_eq!(s.offsets(queue_mode).await, [1]);
    assert_eq!(s.history().await, [("completed_retention".to_owned(), 3)]);
    // A segment of which only a part is consumed stays whole, and so does one that nobody was given yet.
    assert_eq!(s.mend().await, 0);
}

/// The report of who pins agrees with what a cycle leaves, and a stray pop without a group pins nothing.
#[tokio::test]
async fn a_queue_tells_which_group_its_old_messages_wait_for() {
    let s = Scene::new("retention_enabled = TRUE, completed_retention_seconds = 100").await;
    let pins = async || {
        let pins = queue_pins(&s.f.pool, TENANT, &queue("q")).await.unwrap();
        pins.into_iter().map(|pin| (pin.group, pin.partitions)).collect::<Vec<_>>()
    };
    for name in ["a", "b", "c"] {
        let p = s.partition(name, &[500, 400, 10]).await;
        s.f.cursor(p, "fast", 2).await;
        s.f.cursor(p, "slow", if name == "c" { 1 } else { -1 }).await;
        s.f.cursor(p, "__QUEUE_MODE__", -1).await;
    }
    let mode = s.partition("mode", &[500]).await;
    s.f.cursor(mode, "__QUEUE_MODE__", -1).await;
    s.partition("nobody", &[500]).await;
    s.partition("young", &[10]).await;
    let slow = (Some("slow".to_owned()), 2);
    let others = [(Some("__QUEUE_MODE__".to_owned()), 1), (None, 1)];
    assert_eq!(pins().await, [std::slice::from_ref(&slow), &others[..]].concat());
    assert_eq!(s.cycle().await.completed, 2, "only where the slow one has passed");
    assert_eq!(pins().await, [&[slow][..], &others[..]].concat());
    s.f.run("UPDATE queen.log_consumers SET committed = 2 WHERE consumer_group = 'slow'").await;
    assert_eq!(pins().await, others);
    let sql = "INSERT INTO queen.consumer_groups_metadata
        (consumer_group, queue_id, subscription_mode, subscription_timestamp) SELECT 'late', id, 'all', 'epoch' FROM queen.queues";
    s.f.run(sql).await;
    assert_eq!(pins().await, [(Some("late".to_owned()), 4)], "it owes everything, and is named");
    s.f.run("UPDATE queen.queues SET completed_retention_seconds = 0").await;
    assert_eq!(pins().await, []);
}

#[tokio::test]
async fn a_registered_group_without_a_cursor_owes_everything() {
    let s = Scene::new("retention_enabled = TRUE, completed_retention_seconds = 100").await;
    let p = s.partition("p", &[500, 400]).await;
    s.f.cursor(p, "fast", 1).await;
    let sql = "INSERT INTO queen.consumer_groups_metadata
        (consumer_group, queue_id, subscription_mode, subscription_timestamp) SELECT 'late', id, 'all', 'epoch' FROM queen.queues";
    s.f.run(sql).await;
    assert_eq!(s.cycle().await, Step::default());
    s.f.cursor(p, "late", 0).await;
    s.f.run("UPDATE queen.log_partitions SET retention_from = oldest_live_at").await;
    assert_eq!(s.cycle().await.completed, 1);
    assert_eq!(s.offsets(p).await, [1]);
}

#[tokio::test]
async fn an_abandoned_group_stops_counting_when_its_queue_says_so() {
    let s = Scene::new(
        "retention_enabled = TRUE, completed_retention_seconds = 100, group_expiry_seconds = 1000",
    )
    .await;
    let p = s.partition("p", &[500, 400]).await;
    s.f.cursor(p, "here", 1).await;
    s.f.cursor(p, "gone", -1).await;
    let only = s.partition("only", &[500]).await;
    s.f.cursor(only, "gone", -1).await;
    assert_eq!(s.cycle().await, Step::default());
    let old =
        "UPDATE queen.log_consumers SET active_at = now() - interval '2000 s' WHERE consumer_group = 'gone';
        UPDATE queen.log_partitions SET retention_from = oldest_live_at";
    s.f.run(old).await;
    assert_eq!(s.cycle().await.completed, 2);
    assert_eq!(s.offsets(p).await, Vec::<i64>::new());
    assert_eq!(s.offsets(only).await, [0], "without any consumer nothing is consumed");
    let cursors = s.f.count("SELECT count(*) FROM queen.log_consumers WHERE consumer_group = 'gone'").await;
    assert_eq!(cursors, 2, "the cursors stay");
}

#[tokio::test]
async fn max_wait_time_deletes_what_nobody_consumed_also_with_retention_off() {
    let s = Scene::new("max_wait_time_seconds = 100").await;
    let p = s.partition("p", &[500, 300, 50]).await;
    s.f.cursor(p, "g", 0).await;
    let deleted = s.cycle().await;
    assert_eq!(deleted, Step { segments: 2, messages: 2, evicted: 2, unconsumed: 1, ..Step::default() });
    assert_eq!(s.offsets(p).await, [2]);
    assert_eq!(s.history().await, [("max_wait_time_eviction".to_owned(), 2)]);
}

#[tokio::test]
async fn leases_hold_deletion_by_age_only_when_the_queue_protects_them() {
    for (protect, left) in [("FALSE", vec![]), ("TRUE", vec![1, 2])] {
        let s = Scene::new(&format!(
            "retention_enabled = TRUE, retention_seconds = 100, protect_leased = {protect}"
        ))
        .await;
        let p = s.partition("p", &[500, 400, 300]).await;
        s.f.cursor(p, "g", 0).await;
        s.f.lease(p, "g", 2, 60).await;
        s.cycle().await;
        assert_eq!(s.offsets(p).await, left, "protect_leased = {protect}");
        s.f.run(
            "UPDATE queen.log_consumers SET lease_expires_at = now() - interval '1 s';
            UPDATE queen.log_partitions SET retention_from = oldest_live_at",
        )
        .await;
        s.cycle().await;
        assert_eq!(s.offsets(p).await, Vec::<i64>::new());
    }
}

#[tokio::test]
async fn a_protected_lease_holds_eviction_too_and_what_went_unconsumed_is_counted() {
    let s = Scene::new("max_wait_time_seconds = 100, protect_leased = TRUE").await;
    let p = s.partition("p", &[500, 400, 300, 10]).await;
    s.f.cursor(p, "g", 0).await;
    s.f.lease(p, "g", 1, 60).await;
    assert_eq!(s.cycle().await, Step { segments: 1, messages: 1, evicted: 1, ..Step::default() });
    assert_eq!(s.offsets(p).await, [1, 2, 3], "the leased one, and what lies behind it");
    s.f.run(
        "UPDATE queen.log_consumers SET lease_expires_at = now() - interval '1 s';
        UPDATE queen.log_partitions SET retention_from = oldest_live_at",
    )
    .await;
    assert_eq!(
        s.cycle().await,
        Step { segments: 2, messages: 2, evicted: 2, unconsumed: 2, ..Step::default() }
    );
    assert_eq!(s.offsets(p).await, [3]);
}

#[tokio::test]
async fn hashes_inside_the_window_outlive_their_segments_and_go_later() {
    let s =
        Scene::new("retention_enabled = TRUE, retention_seconds = 100, dedup_window_seconds = 2000").await;
    let p = s.partition("p", &[5000, 1500, 1000, 10]).await;
    s.cycle().await;
    assert_eq!(s.offsets(p).await, [3]);
    let hashes = "SELECT count(*) FROM queen.log_txns t, generate_series(1, 2) k
        WHERE t.base_offset = k AND t.hashes = decode(md5((k + 1)::text), 'hex')";
    assert_eq!(s.f.count(hashes).await, 2, "the oldest is out of the window");
    assert_eq!(s.mend().await, 0);
    assert_eq!(s.storage.hashes_due().await.unwrap(), []);
    s.f.run("UPDATE queen.queues SET dedup_window_seconds = 1200").await;
    assert_eq!(s.storage.hashes_due().await.unwrap(), [p]);
    assert_eq!(s.storage.hashes_step(p, 10).await.unwrap(), 1);
    assert_eq!(s.storage.hashes_due().await.unwrap(), []);
    s.f.run("UPDATE queen.queues SET dedup_window_seconds = 0, completed_retention_seconds = 0").await;
    assert_eq!(s.storage.hashes_step(p, 10).await.unwrap(), 1, "900 seconds are kept in any case");
    assert_eq!(s.f.count("SELECT count(*) FROM queen.log_txns").await, 0);
    assert_eq!(s.f.count("SELECT txns_start FROM queen.log_partitions").await, 3);
    assert_eq!(s.mend().await, 0);
}

/// What is held is put back, each time for as long as it has been held, so that it stands in nobody's way.
#[tokio::test]
async fn what_is_held_moves_back_on_the_list() {
    let s =
        Scene::new("retention_enabled = TRUE, completed_retention_seconds = 100, retention_seconds = 10000")
            .await;
    let p = s.partition("p", &[130]).await;
    let due = s.storage.retention_due(None).await.unwrap().unwrap();
    let look = s.storage.retention_look(&[p], due.now, PERIOD).await.unwrap();
    assert_eq!((look.deletable.len(), look.held, look.deferred), (0, vec![p], 1));
    assert_eq!(s.storage.retention_due(None).await.unwrap(), None);
    let next = "SELECT extract(epoch FROM retention_from + interval '100 s' - now())::int8 FROM queen.log_partitions";
    let seconds = s.f.count(next).await;
    assert!((28..=30).contains(&seconds), "looked at again in {seconds} s");
    // Not beyond the moment at which the other rule lets it go.
    s.f.run("UPDATE queen.queues SET retention_seconds = 140").await;
    s.storage.retention_look(&[p], due.now, PERIOD).await.unwrap();
    let seconds = s.f.count(next).await;
    assert!((8..=10).contains(&seconds), "looked at again in {seconds} s");
}

#[tokio::test]
async fn an_unused_partition_goes_and_a_used_one_stays() {
    let s = Scene::new("priority = 0").await;
    let names = ["gone", "segment", "letter", "lease", "popped", "young", "hashes"];
    let mut ids = Vec::new();
    for name in names {
        ids.push(s.f.partition(s.queue, name).await);
    }
    s.f.segment(ids[1], 0, 0).await;
    s.f.dead(ids[2], "g", 0, 0).await;
    s.f.cursor(ids[3], "g", -1).await;
    s.f.lease(ids[3], "g", 0, 60).await;
    s.f.cursor(ids[4], "g", -1).await;
    s.f.cursor(ids[0], "g", -1).await;
    let sql = "INSERT INTO queen.log_txns VALUES ($1::uuid, 0, 0, now(), '\\x00')";
    s.f.conn().await.execute(sql, &[&ids[6].0]).await.unwrap();
    s.f.run(
        "UPDATE queen.log_partitions SET created_at = now() - interval '9 days', last_write_at = now() - interval '9 days'
            WHERE name <> 'young';
        UPDATE queen.log_consumers c SET created_at = now() - interval '9 days', active_at = now() - interval '9 days'
            FROM queen.log_partitions p WHERE p.id = c.partition_id AND p.name <> 'popped'",
    )
    .await;
    let (deleted, next) = s.storage.delete_unused_partitions(7, None).await.unwrap();
    let deleted: Vec<Uuid> = deleted.iter().map(|d| d.id.0).collect();
    let mut expected = vec![ids[0].0, ids[6].0];
    expected.sort_unstable();
    assert_eq!(deleted, expected);
    assert_eq!(next, None);
    assert_eq!(s.f.count("SELECT count(*) FROM queen.log_txns").await, 0);
    assert_eq!(s.f.count("SELECT count(*) FROM queen.log_partitions").await, 5);
    assert_eq!(s.f.count("SELECT count(*) FROM queen.log_consumers").await, 2);
    assert_eq!(
        s.storage.delete_unused_partitions(7, None).await.unwrap(),
        (vec![], None),
        "the others wait a day"
    );
}

#[tokio::test]
async fn dead_letters_go_when_their_queue_says_so() {
    let s = Scene::new("priority = 0").await;
    let p = s.f.partition(s.queue, "p").await;
    for ago in [10, 500, 600, 700] {
        s.f.dead(p, "g", 0, ago).await;
    }
    assert_eq!(s.storage.dead_letters_due().await.unwrap(), []);
    s.f.run("UPDATE queen.queues SET dlq_retention_seconds = 100").await;
    let mut due = s.storage.dead_letters_due().await.unwrap();
    assert_eq!((due.len(), due[0].partition), (1, p));
    assert_eq!(s.storage.dead_letters_step(&mut due[0], 2).await.unwrap(), 2);
    assert_eq!(s.storage.dead_letters_step(&mut due[0], 2).await.unwrap(), 1);
    assert_eq!(s.storage.dead_letters_due().await.unwrap(), []);
    assert_eq!(s.f.count("SELECT count(*) FROM queen.log_dlq").await, 1);
}

/// The cost of a cycle is that of the partitions with something to delete, however many others there are.
#[tokio::test]
async fn the_cost_follows_what_is_deletable() {
    let many: i32 = std::env::var("QUEEN_TEST_PARTITIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000);
    let s =
        Scene::new("retention_enabled = TRUE, retention_seconds = 1000, completed_retention_seconds = 100")
            .await;
    s.f.run(&format!(
        "INSERT INTO queen.log_partitions (queue_id, name) SELECT q.id, n::text FROM queen.queues q, generate_series(1, {many}) n;
         INSERT INTO queen.log_segments SELECT id, 0, 0, now(), '\\x00', '\\x00' FROM queen.log_partitions;
         UPDATE queen.log_segments s SET created_at = now() - interval '500 s'
             FROM queen.log_partitions p WHERE p.id = s.partition_id AND p.name::int4 % 2 = 0;
         UPDATE queen.log_segments s SET created_at = now() - interval '2000 s'
             FROM queen.log_partitions p WHERE p.id = s.partition_id AND p.name::int4 <= 50"
    ))
    .await;
    s.mend().await;
    // Half of the rest is old but not consumed by anybody: the first cycle puts those back on the list.
    let first = s.cycle().await;
    assert_eq!(first.messages, 50);
    s.f.run(
        "INSERT INTO queen.log_segments SELECT id, 1, 1, now() - interval '2000 s', '\\x00', '\\x00'
             FROM queen.log_partitions WHERE name::int4 <= 50;
         UPDATE queen.log_partitions SET oldest_live_at = now() - interval '2000 s', retention_from = now() - interval '2000 s'
             WHERE name::int4 <= 50;",
    )
    .await;
    let due = s.storage.retention_due(None).await.unwrap().unwrap();
    assert_eq!(due.partitions.len(), 50);
    let ids: Vec<String> = due.partitions.iter().map(|p| p.0.to_string()).collect();
    let list = s.buffers("maintenance/due.sql", "('{}', '{}')").await;
    let look = s.buffers("maintenance/hold.sql", &format!("('{{{}}}', now(), 5000)", ids.join(","))).await;
    let step = s.buffers("maintenance/step.sql", &format!("('{}', now(), 100, FALSE)", ids[0])).await;
    println!("{many} partitions, 50 due: {list} pages for the list, {look} to look, {step} a step");
    assert!(list < 200 && look < 50 * 40 && step < 150, "{list} {look} {step}");
    assert_eq!(s.cycle().await.messages, 49);
}
