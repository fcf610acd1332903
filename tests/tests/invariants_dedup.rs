//! Invariants of pushes that repeat stored messages, or that meet a partition which cannot be written.

use std::collections::HashMap;
use std::time::Duration;

use queen_core::api::{PushItem, PushResult};
use queen_tests::build::{item, keys, pop_partition};
use queen_tests::scene::{TENANT, World};
use queen_tests::seed::Runs;
use queen_tests::tables::{check_tables, row_versions};
use queen_types::{MessageId, PushStatus};
use rand::Rng;
use rand::seq::SliceRandom;

const SHORT: Duration = Duration::from_secs(1);

fn statuses(results: &[PushResult]) -> Vec<PushStatus> {
    results.iter().map(|r| r.status).collect()
}

/// Broken by a duplicate that touches any row of any table on its way to the answer: a partition's row, a counter, a
/// provisioning that inserts what exists.
#[tokio::test]
async fn i18_a_duplicate_writes_no_row_in_any_table() -> anyhow::Result<()> {
    let world = World::start().await?;
    let items = |from: usize| -> Vec<PushItem> {
        (from..from + 9).map(|i| item("q", &format!("p{}", i % 3), &format!("k{i}"))).collect()
    };
    let first = world.brokers[0].push(TENANT, items(0), None).await;
    let before = row_versions(&world.client).await?;
    // The second broker has to resolve every name first.
    for broker in [&world.brokers[0], &world.brokers[1], &world.brokers[1]] {
        let again = broker.push(TENANT, items(0), None).await;
        assert!(again.iter().all(|r| r.status == PushStatus::Duplicate), "{again:?}");
        let ids = |results: &[PushResult]| results.iter().map(|r| r.message_id).collect::<Vec<_>>();
        assert_eq!(ids(&again), ids(&first));
        assert_eq!(row_versions(&world.client).await?, before);
    }
    world.brokers[0].push(TENANT, items(1), None).await;
    assert_ne!(row_versions(&world.client).await?, before, "a new message is seen by the fingerprint");
    world.stop().await;
    Ok(())
}

/// Broken by a segment of which a duplicate takes new messages down with it, or lets them in twice, or changes their
/// order.
#[tokio::test]
async fn i19_new_messages_among_duplicates_are_stored_once_in_request_order() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut runs = Runs::of(SHORT)?;
    while let Some(mut run) = runs.next_run() {
        let queue = format!("q{}n{}", run.seed, run.number);
        let mut stored: Vec<(String, MessageId)> = Vec::new();
        for _ in 0..8 {
            let mut names: Vec<u32> =
                (0..run.rng.random_range(1..30)).map(|_| run.rng.random_range(0..60)).collect();
            names.shuffle(&mut run.rng);
            let items = names.iter().map(|k| item(&queue, "p", &format!("k{k}"))).collect();
            let broker = &world.brokers[run.rng.random_range(0..2)];
            let results = broker.push(TENANT, items, None).await;
            for result in results {
                let known: HashMap<_, _> = stored.iter().map(|(key, id)| (key.as_str(), *id)).collect();
                match known.get(result.transaction_id.as_str()) {
                    Some(id) => {
                        assert_eq!(
                            (result.status, result.message_id),
                            (PushStatus::Duplicate, *id),
                            "seed {}",
                            run.seed
                        );
                    }
                    None => {
                        assert_eq!(result.status, PushStatus::Queued, "{result:?}, seed {}", run.seed);
                        stored.push((result.transaction_id.to_string(), result.message_id));
                    }
                }
            }
        }
        let answer = world.brokers[0].pop(TENANT, pop_partition(&queue, "p", 1000)).await?;
        let expected: Vec<String> = stored.into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys(&answer), expected, "seed {}", run.seed);
        run.explain(check_tables(&world.client).await)?;
    }
    world.stop().await;
    Ok(())
}

/// Broken by a push of several partitions in which the duplicates of one, or the refusal of another, change what
/// becomes of a third.
#[tokio::test]
async fn i20_no_partition_of_a_push_suffers_from_another() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    let seen = ["good", "twice", "refused"].map(|p| item("q", p, "seen"));
    assert_eq!(statuses(&broker.push(TENANT, seen.to_vec(), None).await), [PushStatus::Queued; 3]);
    world
        .client
        .batch_execute(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN
                 IF NEW.partition_id IN (SELECT id FROM queen.log_partitions WHERE name LIKE 'refused%') THEN
                     RAISE EXCEPTION 'refused' USING ERRCODE = 'check_violation';
                 END IF;
                 RETURN NEW;
             END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON queen.log_segments FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        )
        .await?;
    let mut runs = Runs::of(SHORT)?;
    let mut stored = 1;
    while let Some(mut run) = runs.next_run() {
        let mut items = Vec::new();
        for i in 0..5 {
            let fresh = format!("{}.{}.{i}", run.seed, run.number);
            items.push(item("q", "good", &fresh));
            items.push(item("q", "twice", "seen"));
            items.push(item("q", "refused", &fresh));
            items.push(item("q", &format!("refused{}", run.seed % 3), &fresh));
        }
        items.shuffle(&mut run.rng);
        for (item, result) in items.clone().iter().zip(broker.push(TENANT, items, None).await) {
            let expected = match item.partition.as_str() {
                "good" => PushStatus::Queued,
                "twice" => PushStatus::Duplicate,
                _ => PushStatus::Failed,
            };
            assert_eq!(result.status, expected, "{:?}: {result:?}, seed {}", item.partition, run.seed);
            assert_eq!(result.error.is_some(), expected == PushStatus::Failed);
        }
        stored += 5;
    }
    let counts = world
        .client
        .query(
            "SELECT p.name, COALESCE(sum(s.end_offset - s.base_offset + 1), 0)::int8 FROM queen.log_partitions p
             LEFT JOIN queen.log_segments s ON s.partition_id = p.id GROUP BY p.name",
            &[],
        )
        .await?;
    let counts: HashMap<&str, i64> = counts.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!((counts["good"], counts["twice"], counts["refused"]), (stored, 1, 1));
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}
