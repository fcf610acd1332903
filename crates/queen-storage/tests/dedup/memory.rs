//! A memory that is too small, switched off, or of another server.

use std::collections::HashMap;

use queen_pg::PgTimestamp;
use queen_storage::sql::ALL;
use queen_types::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::{World, commit, is_repeat, key, push};

/// Random pushes over partitions that do not fit, against a map of what is stored.
#[tokio::test]
async fn a_memory_that_holds_next_to_nothing_stays_exact() {
    let world = World::new().await;
    let seed = rand::rng().random();
    let mut rng = StdRng::seed_from_u64(seed);
    for budget in [0, 7_000, 20_000] {
        let brokers = [world.storage_of(budget), world.storage_of(budget)];
        let mut stored: HashMap<(u32, u32), bool> = HashMap::new();
        for _ in 0..250 {
            let at = rng.random_range(0..40_u32);
            let partition = format!("{budget}.{at}");
            let mut ids: Vec<u32> = (0..rng.random_range(1..60)).map(|_| rng.random_range(0..400)).collect();
            ids.sort_unstable();
            ids.dedup();
            let names: Vec<String> = ids.iter().map(u32::to_string).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let storage = &brokers[rng.random_range(0..2)];
            if rng.random_bool(0.2) {
                let any = ids.iter().any(|id| stored.contains_key(&(at, *id)));
                assert_eq!(commit(storage, &partition, &names).await, !any, "seed {seed}");
                if any {
                    continue;
                }
            } else {
                let fates = push(storage, &partition, &names).await;
                for (id, fate) in ids.iter().zip(&fates) {
                    let known = stored.contains_key(&(at, *id));
                    assert_eq!(is_repeat(fate), known, "{partition} {id}, seed {seed}");
                }
            }
            stored.extend(ids.iter().map(|id| ((at, *id), true)));
        }
        for broker in &brokers {
            let stats = broker.dedup_stats();
            assert!(stats.bytes <= budget, "{stats:?}");
            assert_eq!(stats.evicted > 0, budget > 0, "{stats:?}");
        }
    }
    assert_eq!(world.stored_twice().await, 0);
}

/// What the statements make of knowledge that comes from another server, or reaches beyond the end of the log: broken by
/// one that believes it.
#[tokio::test]
async fn knowledge_of_another_server_or_beyond_the_log_is_ignored() {
    let world = World::new().await;
    let storage = world.storage();
    push(&storage, "p", &["a", "b"]).await;
    let partition = storage.partition_id(&key("p")).await.unwrap().unwrap();
    let mut conn = world.pool.get().await.unwrap();
    let ours: PgTimestamp = conn.query("SELECT pg_postmaster_start_time()", &[]).await.unwrap()[0].get(0);
    let other = PgTimestamp(Timestamp(ours.0.0 - 1));
    let a = queen_segment::TxnHash::of(b"a").0;
    // Says that "a" is certainly not stored, which is a lie.
    for (server, upto, believed) in
        [(ours, 1_i64, true), (other, 1, false), (ours, 2, false), (ours, 0, false)]
    {
        let lists = (vec![partition.0], vec![0_i64], vec![1_i32], vec![a.as_slice()], vec![b"".as_slice()]);
        let (vouched, none): (Vec<i64>, Vec<i64>) = (vec![upto], vec![-1]);
        let statement = |path| ALL.iter().find(|(name, _)| *name == path).unwrap().1;
        let mut tx = conn.begin();
        let rows = tx
            .query(
                statement("push/insert_clear.sql"),
                &[&lists.0, &lists.1, &lists.2, &lists.3, &lists.4, &vouched, &none, &false, &server],
            )
            .await
            .unwrap();
        assert_eq!(rows[0].get::<_, Option<i64>>("base_offset"), believed.then_some(2));
        tx.rollback().await.unwrap();
        if upto == 0 {
            // A stretch that ends before "a" was stored would be true of it, had it been stored above.
            continue;
        }
        let mut tx = conn.begin();
        let rows = tx
            .query(
                statement("push/insert.sql"),
                &[
                    &lists.0, &lists.1, &lists.2, &lists.3, &lists.4, &vouched, &none, &none, &none, &false,
                    &server,
                ],
            )
            .await
            .unwrap();
        assert_eq!(rows[0].get::<_, Option<i64>>("base_offset"), believed.then_some(2));
        assert_eq!(rows[0].get::<_, Option<Vec<i64>>>("originals"), (!believed).then(|| vec![0]));
        tx.rollback().await.unwrap();
    }
}

/// Commits that were not heard of: a push is dropped, or its session ended, while it waits for its partition, and may be
/// stored or not. Broken by a memory that goes on as if nothing had come between.
#[tokio::test]
async fn a_push_whose_outcome_is_unknown_leaves_nothing_vouched_that_is_not_so() {
    let world = World::new().await;
    let storage = world.storage();
    push(&storage, "p", &["a"]).await;
    for round in 0..6 {
        let id = format!("b{round}");
        let mut holder = world.pool.get().await.unwrap();
        let mut tx = holder.begin();
        tx.query("SELECT 1 FROM queen.log_partitions FOR UPDATE", &[]).await.unwrap();
        let waiting = tokio::spawn({
            let (storage, id) = (storage.clone(), id.clone());
            async move { push(&storage, "p", &[&id]).await }
        });
        let blocked = "SELECT pid FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        queen_testkit::wait_until("the push to wait", std::time::Duration::from_secs(10), async || {
            world.client.query(blocked, &[]).await.is_ok_and(|rows| rows.len() == 1)
        })
        .await
        .unwrap();
        if round % 2 == 0 {
            waiting.abort();
            tx.rollback().await.unwrap();
        } else {
            let pid: i32 = world.client.query_one(blocked, &[]).await.unwrap().get(0);
            world.client.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
            tx.rollback().await.unwrap();
            // It may have been tried again.
            let _ = waiting.await;
        }
        let again = push(&storage, "p", &["a", &id, &format!("c{round}")]).await;
        assert!(is_repeat(&again[0]) && !is_repeat(&again[2]), "{again:?}");
        let again = push(&storage, "p", &["a", &id, &format!("c{round}")]).await;
        assert!(again.iter().all(is_repeat), "{again:?}");
        assert_eq!(world.stored_twice().await, 0);
    }
}
