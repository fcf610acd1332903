use queen_storage::admin::{PartitionDepth, depth};

use crate::support::{Fixture, TENANT, group, partition, queue};

async fn depths(f: &Fixture, of: Option<&str>) -> Vec<(String, i64, i64)> {
    let of = of.map(group);
    let rows = depth(&f.pool, TENANT, &queue("q"), of.as_ref()).await.unwrap().unwrap();
    rows.into_iter().map(|d| (d.partition.as_str().to_owned(), d.pending, d.processing)).collect()
}

#[tokio::test]
async fn no_queue_and_a_queue_without_partitions() {
    let f = Fixture::new().await;
    assert_eq!(depth(&f.pool, TENANT, &queue("q"), None).await.unwrap(), None);
    assert_eq!(depth(&f.pool, TENANT, &queue("q"), Some(&group("g"))).await.unwrap(), None);
    f.queue("q").await;
    assert_eq!(depth(&f.pool, TENANT, &queue("q"), None).await.unwrap(), Some(vec![]));
    assert_eq!(depth(&f.pool, TENANT, &queue("q"), Some(&group("g"))).await.unwrap(), Some(vec![]));
}

#[tokio::test]
async fn each_view_owes_what_it_has_not_committed() {
    let f = Fixture::new().await;
    let q = f.queue("q").await;
    let b = f.partition(q, "b").await;
    let a = f.partition(q, "a").await;
    let empty = f.partition(q, "").await;
    f.segment(a, 0, 4).await;
    f.segment(b, 0, 1).await;
    let all = |x, y| vec![(String::new(), 0, 0), ("a".to_owned(), x, 0), ("b".to_owned(), y, 0)];
    assert_eq!(depths(&f, None).await, all(5, 2), "everything retained when nobody has a cursor");
    f.cursor(a, "__QUEUE_MODE__", 2).await;
    assert_eq!(depths(&f, None).await, all(2, 2), "queue mode where no named group is");
    f.cursor(a, "slow", 0).await;
    f.cursor(a, "fast", 3).await;
    f.cursor(b, "fast", 1).await;
    f.cursor(empty, "fast", -1).await;
    assert_eq!(depths(&f, None).await, all(4, 0), "the slowest named group, partition by partition");
    assert_eq!(depths(&f, Some("fast")).await, all(1, 0));
    assert_eq!(depths(&f, Some("slow")).await, all(4, 2), "no cursor on b: all of it");
    assert_eq!(depths(&f, Some("unknown")).await, all(5, 2));
    assert_eq!(depths(&f, Some("__QUEUE_MODE__")).await, all(2, 2));
}

#[tokio::test]
async fn leased_messages_are_pending_and_shown_as_processing() {
    let f = Fixture::new().await;
    let q = f.queue("q").await;
    let p = f.partition(q, "p").await;
    f.segment(p, 0, 9).await;
    f.cursor(p, "g", 1).await;
    f.lease(p, "g", 4, 60).await;
    f.cursor(p, "h", 8).await;
    f.lease(p, "h", 9, 60).await;
    let one = |pending, processing| vec![("p".to_owned(), pending, processing)];
    assert_eq!(depths(&f, Some("g")).await, one(8, 3));
    assert_eq!(depths(&f, Some("h")).await, one(1, 1));
    assert_eq!(depths(&f, None).await, one(8, 4));
    f.lease(p, "g", 4, -1).await;
    assert_eq!(depths(&f, Some("g")).await, one(8, 0));
}

#[tokio::test]
async fn deleted_offsets_are_owed_to_nobody() {
    let f = Fixture::new().await;
    let q = f.queue("q").await;
    let p = f.partition(q, "p").await;
    f.segment(p, 6, 9).await;
    f.run("UPDATE queen.log_partitions SET log_start = 6, last_offset = 5").await;
    f.cursor(p, "g", 2).await;
    f.lease(p, "g", 7, 60).await;
    let expected = Some(vec![PartitionDepth { partition: partition("p"), pending: 4, processing: 2 }]);
    assert_eq!(depth(&f.pool, TENANT, &queue("q"), Some(&group("g"))).await.unwrap(), expected);
    assert_eq!(depth(&f.pool, TENANT, &queue("q"), None).await.unwrap(), expected);
    assert_eq!(depths(&f, Some("unknown")).await, [("p".to_owned(), 4, 0)]);
}

#[tokio::test]
async fn a_cursor_beyond_the_log_owes_nothing() {
    let f = Fixture::new().await;
    let q = f.queue("q").await;
    let p = f.partition(q, "p").await;
    f.segment(p, 0, 1).await;
    f.cursor(p, "g", 99).await;
    assert_eq!(depths(&f, Some("g")).await, [("p".to_owned(), 0, 0)]);
}
