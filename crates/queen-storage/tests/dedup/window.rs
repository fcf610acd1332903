//! Windows that change, and rows that grow older than them.

use crate::support::{Fate, World, is_repeat, push};

#[tokio::test]
async fn without_a_window_everything_is_stored_and_nothing_is_searched() {
    let world = World::new().await;
    world.window(0).await;
    let storage = world.storage();
    for offset in 0..5 {
        assert_eq!(push(&storage, "p", &["x"]).await, [Fate::Stored(offset)]);
    }
    let stats = storage.dedup_stats();
    assert_eq!((stats.clear, stats.searched, stats.unknown), (5, 0, 0));
    // With a window, what was stored without one counts.
    world.window(3600).await;
    assert!(is_repeat(&push(&storage, "p", &["x"]).await[0]));
    assert_eq!(push(&storage, "p", &["y"]).await, [Fate::Stored(5)]);
    assert!(is_repeat(&push(&storage, "p", &["x"]).await[0]));
    assert!(is_repeat(&push(&storage, "p", &["y"]).await[0]));
    world.window(0).await;
    assert_eq!(push(&storage, "p", &["y"]).await, [Fate::Stored(6)]);
}

/// [E-53]: broken by a broker that decides by its own idea of the window.
#[tokio::test]
async fn a_window_that_shrinks_and_widens_counts_as_it_stands() {
    let world = World::new().await;
    world.window(3600).await;
    let old = world.storage();
    push(&old, "p", &["early", "late"]).await;
    world.age(600).await;
    assert!(is_repeat(&push(&old, "p", &["early"]).await[0]));
    world.window(60).await;
    assert_eq!(push(&old, "p", &["early"]).await, [Fate::Stored(2)]);
    // This one reads only what is inside the small window back.
    let young = world.storage();
    assert_eq!(push(&young, "p", &["other"]).await, [Fate::Stored(3)]);
    world.window(3600).await;
    for storage in [&young, &old] {
        assert!(is_repeat(&push(storage, "p", &["late"]).await[0]));
        assert!(is_repeat(&push(storage, "p", &["early"]).await[0]));
    }
    assert_eq!(push(&young, "p", &["more"]).await, [Fate::Stored(4)]);
    assert!(is_repeat(&push(&young, "p", &["late"]).await[0]));
}

#[tokio::test]
async fn a_key_that_left_the_window_is_stored_again_and_then_counts_from_there() {
    let world = World::new().await;
    world.window(3600).await;
    let storage = world.storage();
    push(&storage, "p", &["a", "b"]).await;
    world.age(4000).await;
    assert_eq!(push(&storage, "p", &["a"]).await, [Fate::Stored(2)]);
    assert!(is_repeat(&push(&storage, "p", &["a"]).await[0]));
    assert_eq!(push(&world.storage(), "p", &["b"]).await, [Fate::Stored(3)]);
}

/// A long log of which only the end is inside the window: the search skips the rest, and still finds its first row.
#[tokio::test]
async fn a_search_of_a_long_log_begins_where_the_window_does() {
    let world = World::new().await;
    world.window(3600).await;
    let storage = world.storage_of(0);
    push(&storage, "p", &["first"]).await;
    let ids = |prefix: &str, count| (0..count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    world.append("p", &ids("old", 6000)).await;
    world.age(4000).await;
    world.append("p", &ids("new", 1500)).await;
    for id in ["new0", "new1", "new700", "new1499"] {
        assert!(is_repeat(&push(&storage, "p", &[id]).await[0]), "{id}");
    }
    assert_eq!(push(&storage, "p", &["old5999"]).await, [Fate::Stored(7501)]);
    assert_eq!(push(&storage, "p", &["first"]).await, [Fate::Stored(7502)]);
    let reader = world.storage();
    assert!(is_repeat(&push(&reader, "p", &["new0"]).await[0]));
    assert_eq!(push(&reader, "p", &["old0"]).await, [Fate::Stored(7503)]);
    assert_eq!(reader.dedup_stats().pages, 1);
}

/// Broken by a statement whose clock is read before the lock was obtained: what waited would be stamped before what it
/// waited for, and the window would begin too early.
#[tokio::test]
async fn the_stamp_of_a_push_that_waited_is_of_after_the_wait() {
    let world = World::new().await;
    let storage = world.storage();
    push(&storage, "p", &["a"]).await;
    // The first is appended without a search, the second with one.
    for ids in [["b", "c"], ["d", "a"]] {
        let mut holder = world.pool.get().await.unwrap();
        let mut tx = holder.begin();
        tx.query("SELECT 1 FROM queen.log_partitions FOR UPDATE", &[]).await.unwrap();
        let waiting = tokio::spawn({
            let storage = storage.clone();
            async move { push(&storage, "p", &ids).await }
        });
        let blocked = "SELECT 1 FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        queen_testkit::wait_until("the push to wait", std::time::Duration::from_secs(10), async || {
            world.client.query(blocked, &[]).await.is_ok_and(|rows| rows.len() == 1)
        })
        .await
        .unwrap();
        world
            .client
            .execute("CREATE TABLE public.released AS SELECT clock_timestamp() AS at", &[])
            .await
            .unwrap();
        tx.rollback().await.unwrap();
        waiting.await.unwrap();
        let late = "SELECT max(s.created_at) > max(r.at) FROM queen.log_segments s, public.released r";
        assert!(world.client.query_one(late, &[]).await.unwrap().get::<_, bool>(0));
        world.client.execute("DROP TABLE public.released", &[]).await.unwrap();
    }
}
