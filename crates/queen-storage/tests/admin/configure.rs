use std::sync::Arc;

use queen_storage::admin::{configure, load_queue};
use queen_types::{Namespace, OptionsEdit, QueueOptions, RetryBackoff, Task, TenantId, Uuid};

use crate::support::{Fixture, TENANT, queue};

/// Every option away from its default, so that a swapped column shows.
fn odd() -> QueueOptions {
    QueueOptions {
        namespace: Namespace::new("space").unwrap(),
        task: Task::new("task").unwrap(),
        lease_time: 1,
        retry_limit: 2,
        retry_delay: 3,
        priority: 4,
        max_queue_size: 5,
        ttl: 6,
        dead_letter_queue: false,
        dlq_after_max_retries: false,
        delayed_processing: 7,
        window_buffer: 8,
        min_pop_wait_time: 9,
        dedup_window_seconds: 10,
        retention_enabled: true,
        retention_seconds: 11,
        completed_retention_seconds: 12,
        max_wait_time_seconds: 13,
        encryption_enabled: true,
        retry_backoff: RetryBackoff::Exponential,
        retry_delay_max: 14,
        retry_jitter: 0.25,
        max_delivery_attempts: 15,
        redeliver_skipped: true,
        group_expiry_seconds: 16,
        protect_leased: true,
        dlq_retention_seconds: 17,
    }
}

fn edit_of(o: QueueOptions) -> OptionsEdit {
    OptionsEdit {
        namespace: Some(o.namespace),
        task: Some(o.task),
        lease_time: Some(o.lease_time),
        retry_limit: Some(o.retry_limit),
        retry_delay: Some(o.retry_delay),
        priority: Some(o.priority),
        max_queue_size: Some(o.max_queue_size),
        ttl: Some(o.ttl),
        dead_letter_queue: Some(o.dead_letter_queue),
        dlq_after_max_retries: Some(o.dlq_after_max_retries),
        delayed_processing: Some(o.delayed_processing),
        window_buffer: Some(o.window_buffer),
        min_pop_wait_time: Some(o.min_pop_wait_time),
        dedup_window_seconds: Some(o.dedup_window_seconds),
        retention_enabled: Some(o.retention_enabled),
        retention_seconds: Some(o.retention_seconds),
        completed_retention_seconds: Some(o.completed_retention_seconds),
        max_wait_time_seconds: Some(o.max_wait_time_seconds),
        encryption_enabled: Some(o.encryption_enabled),
        retry_backoff: Some(o.retry_backoff),
        retry_delay_max: Some(o.retry_delay_max),
        retry_jitter: Some(o.retry_jitter),
        max_delivery_attempts: Some(o.max_delivery_attempts),
        redeliver_skipped: Some(o.redeliver_skipped),
        group_expiry_seconds: Some(o.group_expiry_seconds),
        protect_leased: Some(o.protect_leased),
        dlq_retention_seconds: Some(o.dlq_retention_seconds),
    }
}

fn lease(seconds: i32) -> OptionsEdit {
    OptionsEdit { lease_time: Some(seconds), ..OptionsEdit::default() }
}

#[tokio::test]
async fn a_new_queue_starts_from_the_defaults() {
    let f = Fixture::new().await;
    for (name, replace) in [("merged", false), ("replaced", true)] {
        let (id, options) = configure(&f.pool, TENANT, &queue(name), replace, &lease(7)).await.unwrap();
        assert_eq!(options, QueueOptions { lease_time: 7, ..QueueOptions::default() });
        let row = load_queue(&f.pool, TENANT, &queue(name)).await.unwrap().unwrap();
        assert_eq!((row.id, row.options), (id, options));
    }
    assert_eq!(f.count("SELECT count(*) FROM queen.queues WHERE created_by = 'configure'").await, 2);
}

#[tokio::test]
async fn every_option_has_its_own_column() {
    let f = Fixture::new().await;
    let name = queue("q");
    let (_, created) = configure(&f.pool, TENANT, &name, false, &edit_of(odd())).await.unwrap();
    assert_eq!(created, odd());
    assert_eq!(load_queue(&f.pool, TENANT, &name).await.unwrap().unwrap().options, odd());

    let born_by_push = queue("born.by.push");
    f.queue("born.by.push").await;
    let (_, updated) = configure(&f.pool, TENANT, &born_by_push, false, &edit_of(odd())).await.unwrap();
    assert_eq!(updated, odd());
    assert_eq!(load_queue(&f.pool, TENANT, &born_by_push).await.unwrap().unwrap().options, odd());
    let by_name = "SELECT count(*) FROM queen.queues WHERE lease_time = 1 AND retry_limit = 2 AND retry_delay = 3
        AND priority = 4 AND max_queue_size = 5 AND ttl = 6 AND NOT dead_letter_queue AND NOT dlq_after_max_retries
        AND delayed_processing = 7 AND window_buffer = 8 AND min_pop_wait_time = 9 AND dedup_window_seconds = 10
        AND retention_enabled AND retention_seconds = 11 AND completed_retention_seconds = 12
        AND max_wait_time_seconds = 13 AND encryption_enabled AND retry_backoff = 'exponential'
        AND retry_delay_max = 14 AND retry_jitter = 0.25 AND max_delivery_attempts = 15 AND redeliver_skipped
        AND group_expiry_seconds = 16 AND protect_leased AND dlq_retention_seconds = 17
        AND namespace = 'space' AND task = 'task'";
    assert_eq!(f.count(by_name).await, 2);
}

#[tokio::test]
async fn merging_keeps_what_is_left_out_and_replacing_does_not() {
    let f = Fixture::new().await;
    let name = queue("billing.invoice");
    let id = f.queue("billing.invoice").await;
    let retry = OptionsEdit { retry_limit: Some(9), ..OptionsEdit::default() };
    let (same, merged) = configure(&f.pool, TENANT, &name, false, &retry).await.unwrap();
    assert_eq!(same, id);
    assert_eq!((merged.lease_time, merged.retry_limit), (60, 9), "a queue born by a push keeps its 60");
    assert_eq!(merged.namespace.as_str(), "billing");
    let (_, replaced) = configure(&f.pool, TENANT, &name, true, &lease(7)).await.unwrap();
    assert_eq!(replaced, QueueOptions { lease_time: 7, ..QueueOptions::default() });
    let (_, untouched) = configure(&f.pool, TENANT, &name, false, &OptionsEdit::default()).await.unwrap();
    assert_eq!(untouched, replaced);
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let f = Fixture::new().await;
    let other = TenantId(Uuid::from_u128(77));
    let (a, _) = configure(&f.pool, TENANT, &queue("q"), false, &lease(1)).await.unwrap();
    let (b, options) = configure(&f.pool, other, &queue("q"), false, &OptionsEdit::default()).await.unwrap();
    assert_ne!(a, b);
    assert_eq!(options.lease_time, 300);
    assert_eq!(load_queue(&f.pool, TenantId(Uuid::from_u128(78)), &queue("q")).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_edits_of_one_queue_all_survive() {
    let f = Arc::new(Fixture::new().await);
    let edits: [fn(i32) -> OptionsEdit; 4] = [
        |n| OptionsEdit { lease_time: Some(n), ..OptionsEdit::default() },
        |n| OptionsEdit { retry_limit: Some(n), ..OptionsEdit::default() },
        |n| OptionsEdit { window_buffer: Some(n), ..OptionsEdit::default() },
        |n| OptionsEdit { priority: Some(n), ..OptionsEdit::default() },
    ];
    for round in 1..=10 {
        let name = queue(&format!("q{round}"));
        // Each begins with the queue missing, so creation races too.
        let racing = edits.map(|edit| {
            let (f, name) = (Arc::clone(&f), name.clone());
            tokio::spawn(
                async move { configure(&f.pool, TENANT, &name, false, &edit(round)).await.unwrap().0 },
            )
        });
        let mut ids = Vec::new();
        for task in racing {
            ids.push(task.await.unwrap());
        }
        assert!(ids.iter().all(|id| *id == ids[0]));
        let options = load_queue(&f.pool, TENANT, &name).await.unwrap().unwrap().options;
        assert_eq!(
            (options.lease_time, options.retry_limit, options.window_buffer, options.priority),
            (round, round, round, round)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configuring_a_queue_that_is_being_deleted_ends_with_a_queue() {
    let f = Arc::new(Fixture::new().await);
    let name = queue("q");
    for _ in 0..20 {
        f.queue("q").await;
        let deleting = {
            let (f, name) = (Arc::clone(&f), name.clone());
            tokio::spawn(
                async move { queen_storage::admin::delete_queue(&f.pool, TENANT, &name).await.unwrap() },
            )
        };
        let (id, _) = configure(&f.pool, TENANT, &name, false, &lease(5)).await.unwrap();
        let deleted = deleting.await.unwrap();
        let left = load_queue(&f.pool, TENANT, &name).await.unwrap();
        match left {
            // Deleted after the edit, or edited after the deletion.
            None => assert_eq!(deleted.unwrap().id, id),
            Some(row) => assert_eq!((row.id, row.options.lease_time), (id, 5)),
        }
        queen_storage::admin::delete_queue(&f.pool, TENANT, &name).await.unwrap();
    }
}
