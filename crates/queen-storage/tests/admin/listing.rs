use queen_storage::admin::{Counts, namespaces, queue_detail, queue_list, tasks};
use queen_types::{TenantId, Uuid};

use crate::support::{Fixture, TENANT, queue};

/// A partition of a queue of its own, 10 messages in two segments.
async fn ten(f: &Fixture, name: &str) -> queen_types::PartitionId {
    let q = f.queue(name).await;
    let p = f.partition(q, "p").await;
    f.segment(p, 0, 3).await;
    f.segment(p, 4, 9).await;
    p
}

async fn counts_of(f: &Fixture, name: &str) -> Counts {
    let detail = queue_detail(&f.pool, TENANT, &queue(name)).await.unwrap().unwrap();
    let listed = queue_list(&f.pool, TENANT, false).await.unwrap();
    let listed = listed.iter().find(|q| q.name.as_str() == name).unwrap();
    assert_eq!(detail.totals, listed.counts, "both views of {name}");
    detail.totals
}

#[tokio::test]
async fn nobody_has_consumed() {
    let f = Fixture::new().await;
    ten(&f, "q").await;
    let expected = Counts { total: 10, backlog: 10, ..Counts::default() };
    assert_eq!(counts_of(&f, "q").await, expected);
}

#[tokio::test]
async fn the_slowest_named_group_decides_and_queue_mode_only_without_one() {
    let f = Fixture::new().await;
    let p = ten(&f, "q").await;
    f.cursor(p, "__QUEUE_MODE__", 6).await;
    assert_eq!(counts_of(&f, "q").await, Counts { total: 10, backlog: 3, completed: 7, ..Counts::default() });
    f.cursor(p, "fast", 9).await;
    assert_eq!(counts_of(&f, "q").await.backlog, 0, "a named group outranks queue mode");
    f.cursor(p, "slow", 1).await;
    assert_eq!(counts_of(&f, "q").await, Counts { total: 10, backlog: 8, completed: 2, ..Counts::default() });
}

#[tokio::test]
async fn live_leases_are_processing_and_no_more_than_the_backlog() {
    let f = Fixture::new().await;
    let p = ten(&f, "q").await;
    f.cursor(p, "a", 3).await;
    f.lease(p, "a", 7, 60).await;
    let counts = counts_of(&f, "q").await;
    assert_eq!((counts.backlog, counts.processing, counts.ready()), (6, 4, 2));
    f.cursor(p, "b", 3).await;
    f.lease(p, "b", 9, 60).await;
    let counts = counts_of(&f, "q").await;
    assert_eq!((counts.backlog, counts.processing, counts.ready()), (6, 6, 0), "4 + 6, capped");
    f.lease(p, "a", 7, -1).await;
    f.lease(p, "b", 9, -1).await;
    assert_eq!(counts_of(&f, "q").await.processing, 0, "expired leases hold nothing");
}

#[tokio::test]
async fn deleted_offsets_are_neither_total_nor_backlog() {
    let f = Fixture::new().await;
    let p = ten(&f, "q").await;
    f.cursor(p, "a", 1).await;
    f.run(
        "DELETE FROM queen.log_segments WHERE base_offset = 0; UPDATE queen.log_partitions SET log_start = 4",
    )
    .await;
    assert_eq!(counts_of(&f, "q").await, Counts { total: 6, backlog: 6, ..Counts::default() });
    // Everything is deleted: only last_offset remembers the end.
    f.run("DELETE FROM queen.log_segments; UPDATE queen.log_partitions SET log_start = 10, last_offset = 9")
        .await;
    assert_eq!(counts_of(&f, "q").await, Counts::default());
}

#[tokio::test]
async fn the_newest_segment_counts_where_last_offset_lags() {
    let f = Fixture::new().await;
    let p = ten(&f, "q").await;
    f.run("UPDATE queen.log_partitions SET last_offset = 3").await;
    assert_eq!(counts_of(&f, "q").await.total, 10);
    f.cursor(p, "a", 9).await;
    assert_eq!(counts_of(&f, "q").await.backlog, 0);
}

#[tokio::test]
async fn dead_letters_are_not_completed() {
    let f = Fixture::new().await;
    let p = ten(&f, "q").await;
    f.cursor(p, "a", 4).await;
    f.dead(p, "a", 2, 0).await;
    f.dead(p, "a", 3, 0).await;
    assert_eq!(
        counts_of(&f, "q").await,
        Counts { total: 10, backlog: 5, processing: 0, completed: 3, dead_letter: 2 }
    );
}

#[tokio::test]
async fn the_listing_is_newest_first_and_of_one_tenant() {
    let f = Fixture::new().await;
    let old = ten(&f, "old").await;
    f.run("UPDATE queen.queues SET created_at = now() - interval '1 hour'").await;
    let new = f.queue("new").await;
    f.queue_of(TenantId(Uuid::from_u128(5)), "foreign").await;
    f.cursor(old, "a", 2).await;
    let listed = queue_list(&f.pool, TENANT, true).await.unwrap();
    let names: Vec<&str> = listed.iter().map(|q| q.name.as_str()).collect();
    assert_eq!(names, ["new", "old"]);
    assert_eq!((listed[0].id, listed[0].partitions, listed[0].segments), (new, 0, 0));
    assert_eq!(listed[0].counts, Counts::default());
    assert_eq!((listed[1].partitions, listed[1].segments, listed[1].counts.total), (1, 2, 10));
    let cheap = queue_list(&f.pool, TENANT, false).await.unwrap();
    assert!(cheap.iter().all(|q| q.segments == 0));
}

#[tokio::test]
async fn counts_add_up_over_partitions_and_cap_in_each() {
    let f = Fixture::new().await;
    let q = f.queue("q").await;
    for (name, committed, leased) in [("b", 2, 4), ("a", 4, 4), ("", -1, 1)] {
        let p = f.partition(q, name).await;
        f.segment(p, 0, 4).await;
        f.cursor(p, "g", committed).await;
        f.lease(p, "g", leased, 60).await;
    }
    let detail = queue_detail(&f.pool, TENANT, &queue("q")).await.unwrap().unwrap();
    let per: Vec<(&str, i64, i64)> =
        detail.partitions.iter().map(|p| (p.name.as_str(), p.counts.backlog, p.counts.processing)).collect();
    assert_eq!(per, [("", 5, 2), ("a", 0, 0), ("b", 2, 2)]);
    let expected = Counts { total: 15, backlog: 7, processing: 4, completed: 8, dead_letter: 0 };
    assert_eq!(detail.totals, expected);
    assert_eq!(counts_of(&f, "q").await, expected);
    assert_eq!((detail.stored.segments, detail.stored.bytes), (3, 15));
    assert!(detail.partitions.iter().all(|p| p.oldest_at.is_some() && p.oldest_at == p.newest_at));
}

#[tokio::test]
async fn a_detail_of_nothing_and_of_an_empty_queue() {
    let f = Fixture::new().await;
    assert_eq!(queue_detail(&f.pool, TENANT, &queue("none")).await.unwrap(), None);
    f.queue("a.b").await;
    let detail = queue_detail(&f.pool, TENANT, &queue("a.b")).await.unwrap().unwrap();
    assert!(detail.partitions.is_empty());
    assert_eq!(detail.totals, Counts::default());
    assert_eq!((detail.queue.options.namespace.as_str(), detail.queue.options.task.as_str()), ("a", "b"));
    assert_eq!(detail.queue.options.lease_time, 60);
}

#[tokio::test]
async fn namespaces_and_tasks_add_up() {
    let f = Fixture::new().await;
    let p = ten(&f, "billing.invoice").await;
    f.cursor(p, "a", 3).await;
    f.lease(p, "a", 5, 60).await;
    ten(&f, "billing.refund").await;
    f.queue("plain").await;
    let of = |totals: Vec<queen_storage::admin::KeyTotals>| -> Vec<(String, i64, i64, i64, i64)> {
        totals
            .into_iter()
            .map(|t| (t.key, t.queues, t.partitions, t.counts.total, t.counts.ready()))
            .collect()
    };
    assert_eq!(
        of(namespaces(&f.pool, TENANT).await.unwrap()),
        [("billing".to_owned(), 2, 2, 20, 14), ("plain".to_owned(), 1, 0, 0, 0)]
    );
    assert_eq!(
        of(tasks(&f.pool, TENANT).await.unwrap()),
        [
            (String::new(), 1, 0, 0, 0),
            ("invoice".to_owned(), 1, 1, 10, 4),
            ("refund".to_owned(), 1, 1, 10, 10)
        ]
    );
}
