use queen_storage::admin::{DlqFilter, DlqPage, dlq_page};
use queen_types::{TenantId, Timestamp, Uuid};

use crate::support::{Fixture, TENANT, group, partition, queue};

/// Dead letters by their transaction ids, and the total.
fn seen(page: &DlqPage) -> (Vec<&str>, i64) {
    (page.records.iter().map(|r| r.transaction_id.as_deref().unwrap()).collect(), page.total)
}

fn all() -> DlqFilter {
    DlqFilter { limit: 100, ..DlqFilter::default() }
}

/// Offsets name the records; a smaller offset failed later.
async fn fixture() -> Fixture {
    let f = Fixture::new().await;
    let q = f.queue("q").await;
    let other = f.queue("other").await;
    let p = f.partition(q, "p").await;
    let r = f.partition(q, "r").await;
    let s = f.partition(other, "p").await;
    f.dead(p, "g", 1, 10).await;
    f.dead(r, "h", 2, 20).await;
    f.dead(p, "h", 3, 30).await;
    f.dead(s, "g", 4, 40).await;
    let foreign = f.queue_of(TenantId(Uuid::from_u128(9)), "q").await;
    let foreign = f.partition(foreign, "p").await;
    f.dead(foreign, "g", 5, 0).await;
    f
}

#[tokio::test]
async fn newest_failure_first_and_only_of_the_tenant() {
    let f = fixture().await;
    assert_eq!(seen(&dlq_page(&f.pool, TENANT, &all()).await.unwrap()), (vec!["t1", "t2", "t3", "t4"], 4));
}

#[tokio::test]
async fn filters() {
    let f = fixture().await;
    let q = Some(queue("q"));
    for (filter, expected) in [
        (DlqFilter { queue: q.clone(), ..all() }, &["t1", "t2", "t3"][..]),
        (DlqFilter { queue: Some(queue("none")), ..all() }, &[]),
        (DlqFilter { partition: Some(partition("p")), ..all() }, &["t1", "t3", "t4"]),
        (DlqFilter { queue: q.clone(), partition: Some(partition("p")), ..all() }, &["t1", "t3"]),
        (DlqFilter { group: Some(group("h")), ..all() }, &["t2", "t3"]),
        (DlqFilter { queue: q.clone(), group: Some(group("g")), ..all() }, &["t1"]),
    ] {
        let page = dlq_page(&f.pool, TENANT, &filter).await.unwrap();
        assert_eq!(seen(&page), (expected.to_vec(), expected.len() as i64), "{filter:?}");
    }
}

#[tokio::test]
async fn times_are_inclusive_at_both_ends() {
    let f = fixture().await;
    let page = dlq_page(&f.pool, TENANT, &all()).await.unwrap();
    let at = |i: usize| page.records[i].failed_at;
    for (from, to, expected) in [
        (Some(at(2)), None, &["t1", "t2", "t3"][..]),
        (Some(Timestamp(at(2).0 + 1)), None, &["t1", "t2"]),
        (None, Some(at(2)), &["t3", "t4"]),
        (None, Some(Timestamp(at(2).0 - 1)), &["t4"]),
        (Some(at(2)), Some(at(1)), &["t2", "t3"]),
        (Some(at(1)), Some(at(2)), &[]),
    ] {
        let filter = DlqFilter { from, to, ..all() };
        assert_eq!(seen(&dlq_page(&f.pool, TENANT, &filter).await.unwrap()).0, expected);
    }
}

#[tokio::test]
async fn the_total_counts_what_is_on_other_pages() {
    let f = fixture().await;
    for (limit, offset, expected) in [
        (3, 0, &["t1", "t2", "t3"][..]),
        (3, 3, &["t4"]),
        (3, 4, &[]),
        (0, 0, &[]),
        (-5, -5, &[]),
        (2, -1, &["t1", "t2"]),
        (i64::MAX, i64::MAX, &[]),
        (i64::MAX, 0, &["t1", "t2", "t3", "t4"]),
    ] {
        let page =
            dlq_page(&f.pool, TENANT, &DlqFilter { limit, offset, ..DlqFilter::default() }).await.unwrap();
        assert_eq!(seen(&page), (expected.to_vec(), 4), "limit {limit} offset {offset}");
    }
}

#[tokio::test]
async fn a_record_in_full() {
    let f = Fixture::new().await;
    let q = f.queue("q").await;
    let p = f.partition(q, "p").await;
    let id = f.dead(p, "g", 7, 0).await;
    let page = dlq_page(&f.pool, TENANT, &all()).await.unwrap();
    let record = &page.records[0];
    assert_eq!(record.id, id);
    assert_eq!((record.partition_id, record.offset, record.retry_count), (p, 7, 2));
    assert_eq!((record.queue.as_str(), record.partition.as_str(), record.group.as_str()), ("q", "p", "g"));
    assert_eq!(record.payload.as_deref(), Some(&b"7"[..]));
    assert_eq!((record.error.as_deref(), record.producer_sub.as_deref()), (Some("why"), Some("sub")));
    assert!(record.message_id.is_some() && !record.encrypted && record.trace_id.is_none());
    let age = record.failed_at.0 - record.message_created_at.unwrap().0;
    assert_eq!(age, 86_400_000_000, "stored a day before it failed");
}

#[tokio::test]
async fn a_record_whose_segment_was_gone() {
    let f = Fixture::new().await;
    let q = f.queue("q").await;
    let p = f.partition(q, "p").await;
    f.dead(p, "__timer__", 7, 0).await;
    f.run("UPDATE queen.log_dlq SET payload_raw = NULL, message_id = NULL, message_created_at = NULL, error = NULL").await;
    let page = dlq_page(&f.pool, TENANT, &all()).await.unwrap();
    let record = &page.records[0];
    assert_eq!((record.group.as_str(), &record.payload, record.message_id), ("__timer__", &None, None));
    assert_eq!((record.message_created_at, record.error.as_deref()), (None, None));
}
