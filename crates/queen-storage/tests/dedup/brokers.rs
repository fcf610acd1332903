//! Two brokers with a memory each, and a broker that comes back without one.

use queen_storage::admin;

use crate::support::{Fate, TENANT, World, commit, is_repeat, key, push, queue};

/// Broken by a broker that vouches for offsets which the other one wrote.
#[tokio::test]
async fn the_same_keys_through_two_brokers_at_the_same_time_are_stored_once() {
    let world = World::new().await;
    let (a, b) = (world.storage(), world.storage());
    for round in 0..120 {
        let ids: Vec<String> = (0..3).map(|i| format!("{round}.{i}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let back: Vec<&str> = ids.iter().rev().copied().collect();
        let (ours, theirs) = if round % 3 == 0 {
            let (ours, theirs) = tokio::join!(push(&a, "p", &ids), commit(&b, "p", &back));
            (ours, if theirs { 3 } else { 0 })
        } else {
            let (ours, theirs) = tokio::join!(push(&a, "p", &ids), push(&b, "p", &back));
            (ours, theirs.iter().filter(|fate| !is_repeat(fate)).count())
        };
        let stored = ours.iter().filter(|fate| !is_repeat(fate)).count();
        assert_eq!(stored + theirs, 3, "round {round}: {ours:?}");
    }
    assert_eq!(world.stored_twice().await, 0);
}

/// [E-52]: broken by a memory that goes by names.
#[tokio::test]
async fn a_queue_that_another_broker_made_anew_has_a_memory_of_its_own() {
    let world = World::new().await;
    let (a, b) = (world.storage(), world.storage());
    push(&a, "p", &["one", "two", "three"]).await;
    admin::delete_queue(&world.pool, TENANT, &queue()).await.unwrap();
    b.forget_queue(TENANT, &queue());
    assert_eq!(push(&b, "p", &["x"]).await, [Fate::Stored(0)]);
    // A still has the old id.
    let again = push(&a, "p", &["x", "one"]).await;
    assert!(is_repeat(&again[0]), "{again:?}");
    assert_eq!(again[1], Fate::Stored(1));
    assert_eq!(world.stored_twice().await, 0);
}

/// [E-54]: the gap that another broker's commit leaves is filled by the push that finds it.
#[tokio::test]
async fn a_commit_of_another_broker_is_learned_from_the_next_push() {
    let world = World::new().await;
    let (a, b) = (world.storage(), world.storage());
    push(&a, "p", &["1"]).await;
    push(&b, "p", &["2", "3"]).await;
    assert!(commit(&b, "p", &["4"]).await);
    let before = a.dedup_stats();
    assert_eq!(push(&a, "p", &["5"]).await, [Fate::Stored(4)]);
    let after = a.dedup_stats();
    // One page for B's first push would have been read by B; A reads none.
    assert_eq!((after.pages, after.partitions), (before.pages, 1));
    assert_eq!(after.searched, before.searched + 1);
    for id in ["1", "2", "3", "4", "5"] {
        assert!(is_repeat(&push(&a, "p", &[id]).await[0]), "{id}");
        assert!(is_repeat(&push(&b, "p", &[id]).await[0]), "{id}");
    }
    assert!(!commit(&a, "p", &["3"]).await);
    assert_eq!(a.dedup_stats().pages, before.pages);
    assert_eq!(world.stored_twice().await, 0);
}

/// Broken by a push that reports an answer of the statement that cannot search as its verdict.
#[tokio::test]
async fn what_was_taken_for_known_and_was_not_is_searched() {
    let world = World::new().await;
    let (a, b) = (world.storage(), world.storage());
    push(&a, "p", &["1"]).await;
    push(&b, "p", &["2"]).await;
    let before = a.dedup_stats();
    let fates = push(&a, "p", &["3", "2", "1"]).await;
    assert!(fates[0] == Fate::Stored(2) && is_repeat(&fates[1]) && is_repeat(&fates[2]), "{fates:?}");
    assert!(a.dedup_stats().searched > before.searched);
    // Two partitions, of which one has grown behind our back.
    push(&a, "other", &["1"]).await;
    push(&b, "p", &["4"]).await;
    let both = a.push(&[crate::support::lane("other", &["2"]), crate::support::lane("p", &["4"])]).await;
    let both: Vec<Fate> = both.into_iter().flat_map(crate::support::fates).collect();
    assert!(both[0] == Fate::Stored(1) && is_repeat(&both[1]), "{both:?}");
    assert_eq!(world.stored_twice().await, 0);
}

#[tokio::test]
async fn a_broker_that_starts_again_reads_back_what_is_stored() {
    let world = World::new().await;
    let ids: Vec<String> = (0..50).map(|i| format!("k{i}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    push(&world.storage(), "p", &ids).await;
    let again = world.storage();
    assert_eq!(push(&again, "p", &["new"]).await, [Fate::Stored(50)]);
    let stats = again.dedup_stats();
    assert_eq!((stats.pages, stats.clear, stats.searched, stats.unknown), (1, 1, 0, 0));
    assert!(push(&again, "p", &ids).await.iter().all(is_repeat));
    assert!(!commit(&world.storage(), "p", &["k7"]).await);
}

/// A window of more than a page is read in several, the oldest key included.
#[tokio::test]
async fn a_long_window_is_read_back_page_by_page() {
    let world = World::new().await;
    world.storage().push(&[crate::support::lane("p", &["first"])]).await;
    let ids: Vec<String> = (0..70_000).map(|i| format!("k{i}")).collect();
    world.append("p", &ids).await;
    let storage = world.storage();
    assert_eq!(push(&storage, "p", &["new"]).await, [Fate::Stored(70_001)]);
    let stats = storage.dedup_stats();
    assert!(stats.pages >= 2 && stats.clear == 1 && stats.unknown == 0, "{stats:?}");
    assert!((350_000..600_000).contains(&stats.bytes), "{stats:?}");
    for id in ["first", "k0", "k4463", "k4464", "k4465", "k69999", "new"] {
        assert!(is_repeat(&push(&storage, "p", &[id]).await[0]), "{id}");
    }
    assert_eq!(push(&storage, "p", &["other"]).await, [Fate::Stored(70_002)]);
    assert_eq!(storage.dedup_stats().pages, stats.pages);
}

/// Hashes whose segments retention has deleted count as long as they are kept.
#[tokio::test]
async fn hashes_that_outlived_their_segments_are_read_back_and_searched() {
    let world = World::new().await;
    let old = world.storage();
    for id in ["1", "2", "3", "4"] {
        push(&old, "p", &[id]).await;
    }
    world
        .client
        .batch_execute(
            "INSERT INTO queen.log_txns SELECT partition_id, base_offset, end_offset, created_at, hashes
             FROM queen.log_segments WHERE base_offset < 2;
             UPDATE queen.log_partitions SET log_start = 2;
             DELETE FROM queen.log_segments WHERE base_offset < 2",
        )
        .await
        .unwrap();
    for storage in [old, world.storage(), world.storage_of(0)] {
        for id in ["1", "2", "3", "4"] {
            assert!(is_repeat(&push(&storage, "p", &[id]).await[0]), "{id}");
        }
    }
    let fresh = world.storage();
    push(&fresh, "p", &["5"]).await;
    assert_eq!(fresh.dedup_stats().clear, 1);
    assert!(fresh.partition_id(&key("p")).await.unwrap().is_some());
}
