//! Acks of whole batches, which take a way of their own: the answers and rows are those of any other ack.

use std::time::Duration;

use anyhow::{Context, ensure};
use queen_core::api::{AckItem, AckResult, PopRequest};
use queen_core::{Broker, BrokerOptions};
use queen_testkit::TestDb;
use queen_tests::build::{ack, acks, broker, group, keys, pop, push, queue};
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, Group, LeaseId, PartitionId, TenantId, Uuid};
use tokio_postgres::Client;

const T: TenantId = TenantId::DEFAULT;

/// A database that counts what the item-by-item way writes: it inserts on conflict, the other one updates.
async fn database() -> anyhow::Result<(TestDb, Client)> {
    let db = queen_testkit::db().await?;
    let client = db.connect().await?;
    client
        .batch_execute(
            "CREATE TABLE public.slow (partition_id uuid);
             CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN INSERT INTO public.slow VALUES (NEW.partition_id); RETURN NEW; END $$;
             CREATE TRIGGER note BEFORE INSERT ON queen.log_consumers FOR EACH ROW
                 WHEN (COALESCE(NEW.worker_id, '') = '') EXECUTE FUNCTION public.note()",
        )
        .await?;
    Ok((db, client))
}

async fn slow_writes(client: &Client) -> anyhow::Result<i64> {
    Ok(client.query_one("SELECT count(*) FROM public.slow", &[]).await?.get(0))
}

/// Every cursor of the queue, without what differs between two runs of the same.
async fn cursors(client: &Client, queue: &str) -> anyhow::Result<Vec<String>> {
    let sql = "SELECT p.name || ' ' || (to_jsonb(c) - 'partition_id' - 'created_at' - 'worker_id' - 'lease_expires_at'
                      - 'lease_acquired_at' - 'active_at' || jsonb_build_object('leased', c.worker_id IS NOT NULL,
                      'acquired', c.lease_acquired_at IS NOT NULL))::text
               FROM queen.log_consumers c JOIN queen.log_partitions p ON p.id = c.partition_id
               JOIN queen.queues q ON q.id = p.queue_id WHERE q.name = $1 ORDER BY p.name, c.consumer_group";
    Ok(client.query(sql, &[&queue]).await?.iter().map(|row| row.get(0)).collect())
}

/// The ways to take a delivered batch to an end, or not.
macro_rules! cases {
    (whole: $($whole:ident)*; other: $($other:ident)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Case { $($whole,)* $($other),* }

        use Case::*;

        const WHOLE: &[Case] = &[$($whole),*];
        const OTHER: &[Case] = &[$($other),*];
    };
}

cases! {
    // RepeatOfDeleted: the last message repeats the id of one that was deleted before this group saw it.
    whole: Whole Single Shuffled Repeated ThroughExtension RepeatOfDeleted;
    other: Twice AfterRetries RepeatingKeysInside RepeatingKeysAtTheEnd WithoutTheLast WithoutTheFirst PartThenAll OneFailed
        OneToRetry OneDead OneForeignMore OneForeignInstead WrongLease NoLease TwoLeases WrongGroup WrongTenant Expired
        TakenOver GroupDeleted QueueDeleted
}

async fn play(
    broker: &Broker,
    client: &Client,
    name: &str,
    case: Case,
) -> anyhow::Result<Vec<Vec<AckResult>>> {
    let all: &[&str] = match case {
        Single => &["a"],
        RepeatingKeysInside => &["a", "b", "a", "c"],
        RepeatingKeysAtTheEnd => &["a", "b", "c", "a"],
        _ => &["a", "b", "c", "d"],
    };
    let edit = queen_types::OptionsEdit { dedup_window_seconds: Some(0), ..Default::default() };
    let request = queen_core::api::ConfigureRequest { queue: queue(name), replace: false, edit };
    broker.configure(T, request).await?;
    if case == RepeatOfDeleted {
        push(broker, name, "p", &["d"]).await?;
        delete_all(client, name).await?;
    }
    push(broker, name, "p", all).await?;
    let seconds = matches!(case, Expired | TakenOver).then_some(1);
    let request = PopRequest { lease_seconds: seconds, ..pop(name, 9) };
    let mut held = broker.pop(T, request.clone()).await?;
    ensure!(keys(&held) == all, "{held:?}");
    if case == AfterRetries {
        for _ in 0..2 {
            broker.ack(T, Group::queue_mode(), acks(&held, AckStatus::Failed)).await;
            held = broker.pop(T, request.clone()).await?;
            ensure!(keys(&held) == all, "{held:?}");
        }
    }
    let lease = held.lease.clone().context("a lease")?;
    let partition = held.partitions[0].partition_id;
    let mut items = acks(&held, AckStatus::Completed);
    let mut more: Vec<Vec<AckItem>> = Vec::new();
    let (mut tenant, mut whose) = (T, Group::queue_mode());
    match case {
        Shuffled => items.reverse(),
        Repeated => items.extend(acks(&held, AckStatus::Completed)),
        Twice => more.push(items.clone()),
        ThroughExtension => {
            let extended = broker.extend_lease(T, &lease, 500).await?;
            ensure!(extended.renewed == 1, "{extended:?}");
        }
        WithoutTheLast => more.push(vec![items.pop().context("an item")?]),
        WithoutTheFirst => more.push(vec![items.remove(0)]),
        PartThenAll => {
            more.push(items.clone());
            items.truncate(2);
        }
        OneFailed => items[2].status = AckStatus::Failed,
        OneToRetry => items[3].status = AckStatus::Retry,
        OneDead => items[0].status = AckStatus::Dlq,
        OneForeignMore => items.push(ack(partition, Some(&lease), "foreign", AckStatus::Completed)),
        OneForeignInstead => items[1].transaction_id = "foreign".to_owned(),
        WrongLease => items.iter_mut().for_each(|i| i.lease = Some(LeaseId::mint())),
        NoLease => items.iter_mut().for_each(|i| i.lease = None),
        TwoLeases => items.extend(all.iter().map(|key| ack(partition, None, key, AckStatus::Completed))),
        WrongGroup => whose = group("other"),
        WrongTenant => tenant = TenantId(Uuid::from_u128(77)),
        Expired | TakenOver => {
            tokio::time::sleep(Duration::from_millis(1100)).await;
            if case == TakenOver {
                let taken = broker.pop(T, pop(name, 9)).await?;
                ensure!(keys(&taken) == all, "{taken:?}");
            }
        }
        GroupDeleted => {
            client
                .execute("DELETE FROM queen.log_consumers WHERE partition_id = $1", &[&partition.0])
                .await?;
        }
        QueueDeleted => {
            broker.delete_queue(T, &queue(name)).await?;
        }
        Whole | Single | RepeatOfDeleted | AfterRetries | RepeatingKeysInside | RepeatingKeysAtTheEnd => {}
    }
    let mut results = vec![broker.ack(tenant, whose, items).await];
    for items in more {
        results.push(broker.ack(T, Group::queue_mode(), items).await);
    }
    Ok(results)
}

/// Deletes the messages of a queue as retention does, which keeps their hashes.
async fn delete_all(client: &Client, queue: &str) -> anyhow::Result<()> {
    client
        .batch_execute(&format!(
            "WITH of_queue AS (SELECT p.id FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id
                               WHERE q.name = '{queue}'),
                  gone AS (DELETE FROM queen.log_segments s USING of_queue WHERE s.partition_id = of_queue.id
                           RETURNING s.partition_id, s.base_offset, s.end_offset, s.created_at, s.hashes),
                  kept AS (INSERT INTO queen.log_txns SELECT * FROM gone)
             UPDATE queen.log_partitions p SET log_start = gone.end_offset + 1, last_offset = gone.end_offset
             FROM gone WHERE p.id = gone.partition_id",
        ))
        .await?;
    Ok(())
}

/// Broken by a whole batch that is answered or written in another way than its items would be, and by a memory that takes
/// for whole what is not, or for held what is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ways_answer_and_write_the_same() -> anyhow::Result<()> {
    let (db, client) = database().await?;
    let slow = broker(&db, BrokerOptions { ack_registry: false, ..queen_tests::options() }).await?;
    let fast = broker(&db, queen_tests::options()).await?;
    let alone = broker(&db, BrokerOptions { ack_fusion: false, ..queen_tests::options() }).await?;
    for case in WHOLE.iter().chain(OTHER).copied() {
        let expected = play(&slow, &client, &format!("{case:?}.slow"), case).await?;
        let rows = cursors(&client, &format!("{case:?}.slow")).await?;
        for (way, broker) in [("fast", &fast), ("alone", &alone)] {
            let before = slow_writes(&client).await?;
            let name = format!("{case:?}.{way}");
            let results = play(broker, &client, &name, case).await?;
            ensure!(results == expected, "{name}: {results:#?}, not {expected:#?}");
            let found = cursors(&client, &name).await?;
            ensure!(found == rows, "{name}: {found:#?}, not {rows:#?}");
            if WHOLE.contains(&case) {
                ensure!(slow_writes(&client).await? == before, "{name} went item by item");
                ensure!(results[0].iter().all(|r| r.success && r.lease_released), "{name}: {results:?}");
            }
        }
        check_tables(&client).await.with_context(|| format!("{case:?}"))?;
    }
    for broker in [slow, fast, alone] {
        broker.shutdown().await;
    }
    Ok(())
}

/// One request over several partitions: whole, in part, under a lost lease, and without a partition. Answers stand where
/// their items stood, and only what is not whole goes item by item.
#[tokio::test]
async fn a_request_of_both_kinds_is_answered_in_order() -> anyhow::Result<()> {
    let (db, client) = database().await?;
    let broker = broker(&db, queen_tests::options()).await?;
    for partition in ["a", "b", "c", "d"] {
        push(&broker, "q", partition, &["x", "y"]).await?;
    }
    let held = broker.pop(T, PopRequest { partitions: None, ..pop("q", 99) }).await?;
    ensure!(held.partitions.len() == 4, "{held:?}");
    let id = |name: &str| {
        held.partitions
            .iter()
            .find(|p| p.partition.as_str() == name)
            .map(|p| p.partition_id)
            .context("a partition")
    };
    client
        .execute("UPDATE queen.log_consumers SET worker_id = 'thief' WHERE partition_id = $1", &[&id("d")?.0])
        .await?;
    let lease = held.lease.as_ref();
    let done = |partition: PartitionId, key: &str| ack(partition, lease, key, AckStatus::Completed);
    let items = vec![
        done(id("c")?, "x"),
        done(id("a")?, "y"),
        AckItem { partition: None, ..done(id("a")?, "x") },
        done(id("d")?, "x"),
        done(id("b")?, "x"),
        done(id("a")?, "x"),
        done(id("d")?, "y"),
        done(id("b")?, "y"),
    ];
    let results = broker.ack(T, Group::queue_mode(), items).await;
    let told: Vec<(bool, bool, Option<&str>)> =
        results.iter().map(|r| (r.success, r.lease_released, r.error.as_deref())).collect();
    let (whole, part) = ((true, true, None), (true, false, None));
    let lost = (false, false, Some("invalid or expired lease"));
    let missing = (false, false, Some("partitionId is required"));
    ensure!(told == [part, whole, missing, lost, whole, whole, lost, whole], "{told:?}");
    let slow: Vec<Uuid> = client
        .query("SELECT DISTINCT partition_id FROM public.slow", &[])
        .await?
        .iter()
        .map(|r| r.get(0))
        .collect();
    ensure!(
        !slow.contains(&id("a")?.0) && !slow.contains(&id("b")?.0) && slow.contains(&id("c")?.0),
        "{slow:?}"
    );
    check_tables(&client).await?;
    broker.shutdown().await;
    Ok(())
}

/// A lease is any broker's to ack; the one that did not give it out looks at the items.
#[tokio::test]
async fn another_broker_acks_item_by_item() -> anyhow::Result<()> {
    let (db, client) = database().await?;
    let (one, two) = (broker(&db, queen_tests::options()).await?, broker(&db, queen_tests::options()).await?);
    push(&one, "q", "p", &["a", "b"]).await?;
    let held = one.pop(T, pop("q", 9)).await?;
    let results = two.ack(T, Group::queue_mode(), acks(&held, AckStatus::Completed)).await;
    ensure!(results.iter().all(|r| r.success && r.lease_released), "{results:?}");
    ensure!(slow_writes(&client).await? == 1);
    // The first one still remembers the lease, and learns that it is gone.
    let late = one.ack(T, Group::queue_mode(), acks(&held, AckStatus::Completed)).await;
    ensure!(late.iter().all(|r| r.error.as_deref() == Some("invalid or expired lease")), "{late:?}");
    for broker in [one, two] {
        broker.shutdown().await;
    }
    Ok(())
}
