//! Invariants of the stored log: ranges, frames, hashes, roll-backs.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use queen_core::api::{PushItem, TxnOperation, TxnOutcome, TxnReason, TxnRequest};
use queen_core::{Broker, BrokerOptions};
use queen_segment::{SegmentReader, TxnHash};
use queen_testkit::FaultProxy;
use queen_tests::build::{ack, item, keys, pop};
use queen_tests::scene::{TENANT, World};
use queen_tests::seed::{Run, Runs};
use queen_tests::tables::{SegmentRow, check_tables, row_versions, segments};
use queen_types::{AckStatus, Group, PushStatus, Uuid};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SHORT: Duration = Duration::from_secs(1);
const PUSHERS: u64 = 6;

/// What pushers were told they had stored, by partition name.
type Told = BTreeMap<String, Vec<String>>;

/// Many pushers at once, through both brokers, on a few partitions and a few keys; some of it in transactions that
/// roll back.
async fn stir(world: &World, run: &Run) -> anyhow::Result<Told> {
    let queue = format!("q{}", run.seed);
    let tasks: Vec<_> = (0..PUSHERS)
        .map(|n| {
            let broker = world.brokers[usize::from(n % 2 == 0)].clone();
            tokio::spawn(push_at_random(broker, queue.clone(), StdRng::seed_from_u64(run.seed ^ (n << 32))))
        })
        .collect();
    let mut told = Told::new();
    for task in tasks {
        for (partition, key) in task.await?? {
            told.entry(partition).or_default().push(key);
        }
    }
    Ok(told)
}

async fn push_at_random(
    broker: Broker,
    queue: String,
    mut rng: StdRng,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut told = Vec::new();
    for _ in 0..12 {
        let some = |rng: &mut StdRng| {
            (format!("p{}", rng.random_range(0..3)), format!("k{}", rng.random_range(0..200)))
        };
        let names: Vec<_> = (0..rng.random_range(1..10)).map(|_| some(&mut rng)).collect();
        let items: Vec<PushItem> = names.iter().map(|(p, k)| item(&queue, p, k)).collect();
        if rng.random_bool(0.3) {
            // Mostly refused, for one of its keys exists.
            let operations = items.into_iter().map(TxnOperation::Push).collect();
            let request = TxnRequest { operations, required_leases: Vec::new() };
            match broker.transaction(TENANT, request, None).await? {
                TxnOutcome::Committed(_) => {
                    let mut names = names;
                    names.sort();
                    names.dedup();
                    told.extend(names);
                }
                TxnOutcome::RolledBack { reason, error, .. } => {
                    ensure!(reason == TxnReason::Duplicate, "{error}")
                }
            }
            continue;
        }
        for (name, result) in names.into_iter().zip(broker.push(TENANT, items, None).await) {
            match result.status {
                PushStatus::Queued => told.push(name),
                PushStatus::Duplicate => {}
                PushStatus::Buffered | PushStatus::Failed => anyhow::bail!("{result:?}"),
            }
        }
    }
    Ok(told)
}

async fn by_partition(world: &World) -> anyhow::Result<BTreeMap<Uuid, Vec<SegmentRow>>> {
    let mut partitions: BTreeMap<Uuid, Vec<SegmentRow>> = BTreeMap::new();
    for segment in segments(&world.client).await? {
        partitions.entry(segment.partition).or_default().push(segment);
    }
    Ok(partitions)
}

/// Broken by two writers that get the same base offset, or by a push that reserves offsets it does not fill.
#[tokio::test]
async fn i01_i02_ranges_are_disjoint_ascending_and_without_a_hole() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut runs = Runs::of(SHORT)?;
    let mut stored = 0;
    while let Some(run) = runs.next_run() {
        let told = run.explain(stir(&world, &run).await)?;
        stored += told.values().map(Vec::len).sum::<usize>();
        let mut found = 0;
        for (partition, segments) in by_partition(&world).await? {
            let mut next = 0;
            for segment in &segments {
                assert_eq!(segment.base, next, "{partition}: seed {}", run.seed);
                assert!(segment.end >= segment.base, "{partition}: seed {}", run.seed);
                next = segment.end + 1;
                found += segment.count();
            }
        }
        assert_eq!(found, stored, "as many offsets as messages were answered queued; seed {}", run.seed);
        run.explain(check_tables(&world.client).await)?;
    }
    world.stop().await;
    Ok(())
}

/// Broken by a segment whose blob holds other frames than its offsets say, or whose hashes are of other frames, in
/// another order, or not the big-endian xxh3_128 of the transaction ids; then deduplication and acks miss.
#[tokio::test]
async fn i03_i04_segments_decode_to_their_offsets_and_hashes() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut runs = Runs::of(SHORT)?;
    while let Some(run) = runs.next_run() {
        let told = run.explain(stir(&world, &run).await)?;
        let mut expected: Vec<String> = told.into_values().flatten().collect();
        let mut found = Vec::new();
        for segment in segments(&world.client).await? {
            let reader = SegmentReader::open(&segment.blob)?;
            assert_eq!(reader.len(), segment.count(), "seed {}", run.seed);
            assert_eq!(segment.hashes.len(), 16 * segment.count(), "seed {}", run.seed);
            for (frame, hash) in reader.frames(0, reader.len()).zip(segment.hashes.chunks(16)) {
                assert_eq!(TxnHash::of(frame.transaction_id.as_bytes()).0, hash, "seed {}", run.seed);
                found.push(frame.transaction_id.to_owned());
            }
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "seed {}", run.seed);
        world
            .client
            .batch_execute(
                "DELETE FROM queen.log_segments; DELETE FROM queen.log_consumers; DELETE FROM queen.queues",
            )
            .await?;
    }
    world.stop().await;
    Ok(())
}

/// Broken by a hash that is computed otherwise on another day: then old messages are no duplicates any more.
#[tokio::test]
async fn i04_hashes_are_those_of_the_published_vectors() -> anyhow::Result<()> {
    let world = World::start().await?;
    world.brokers[0].push(TENANT, vec![item("q", "p", ""), item("q", "p", "txn-0001")], None).await;
    let hashes = &segments(&world.client).await?[0].hashes;
    let hex: String = hashes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "99aa06d3014798d86001c324468d497fe6db1a376171f085299a000943065f9c");
    world.stop().await;
    Ok(())
}

/// Broken by a push that leaves something of itself behind when it fails: because the database refuses a row, because
/// its transaction is refused, or because the connection breaks anywhere in between.
#[tokio::test]
async fn i05_a_push_that_is_rolled_back_leaves_nothing() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    broker.push(TENANT, vec![item("q", "p", "a"), item("q", "other", "a")], None).await;
    let before = row_versions(&world.client).await?;

    world
        .client
        .batch_execute(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'check_violation'; END $$;
             CREATE TRIGGER refuse AFTER INSERT ON queen.log_segments FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        )
        .await?;
    let results = broker.push(TENANT, vec![item("q", "p", "b"), item("q", "other", "b")], None).await;
    assert!(results.iter().all(|r| r.status == PushStatus::Failed), "{results:?}");
    assert_eq!(row_versions(&world.client).await?, before, "the database refused the rows");
    world.client.batch_execute("DROP TRIGGER refuse ON queen.log_segments").await?;

    let push = |queue: &str, key: &str| TxnOperation::Push(item(queue, "p", key));
    let nobody = TxnOperation::Ack {
        group: Group::queue_mode(),
        partition: queen_types::PartitionId(Uuid::from_u128(1)),
        transaction_id: "a".to_owned(),
        status: AckStatus::Completed,
        lease: None,
        error: None,
    };
    for operations in
        [vec![push("q", "c"), push("fresh", "c"), push("q", "a")], vec![push("fresh", "c"), nobody]]
    {
        let request = TxnRequest { operations, required_leases: Vec::new() };
        let outcome = broker.transaction(TENANT, request, None).await?;
        assert!(matches!(outcome, TxnOutcome::RolledBack { .. }), "{outcome:?}");
        assert_eq!(row_versions(&world.client).await?, before, "{outcome:?}");
    }
    // Nothing is remembered of what was rolled back either.
    let results = broker.push(TENANT, vec![item("q", "p", "b"), item("fresh", "p", "c")], None).await;
    assert!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// Broken by a push whose connection breaks and which is stored in part, or told as stored without being so.
#[tokio::test]
async fn i05_a_push_that_is_cut_off_is_stored_whole_or_not_at_all() -> anyhow::Result<()> {
    const MESSAGES: usize = 40;
    let db = queen_testkit::db().await?;
    let proxy = FaultProxy::start(&db.options().host, db.options().port).await?;
    let mut pg = db.options();
    (pg.host, pg.port) = ("127.0.0.1".to_owned(), proxy.port());
    let broker = Broker::start(BrokerOptions { pg, ..queen_tests::options() }).await?;
    let client = db.connect().await?;
    let mut runs = Runs::of(SHORT)?;
    while let Some(mut run) = runs.next_run() {
        let queue = format!("q{}n{}", run.seed, run.number);
        broker.push(TENANT, vec![item(&queue, "0", "first"), item(&queue, "1", "first")], None).await;
        let items: Vec<_> =
            (0..MESSAGES).map(|i| item(&queue, &(i % 2).to_string(), &format!("k{i}"))).collect();
        let pushing = broker.push(TENANT, items.clone(), None);
        let pause = Duration::from_micros(run.rng.random_range(0..4000));
        let cut = async {
            tokio::time::sleep(pause).await;
            proxy.cut();
        };
        let (results, ()) = tokio::join!(pushing, cut);
        proxy.restore();
        check_tables(&client).await?;
        let counts: Vec<i64> = client
            .query(
                "SELECT sum(end_offset - base_offset + 1)::int8 FROM queen.log_segments s
                 JOIN queen.log_partitions p ON p.id = s.partition_id
                 JOIN queen.queues q ON q.id = p.queue_id AND q.name = $1 GROUP BY p.id",
                &[&queue],
            )
            .await?
            .iter()
            .map(|row| row.get(0))
            .collect();
        let whole = 1 + MESSAGES as i64 / 2;
        assert!(counts == [1, 1] || counts == [whole, whole], "{counts:?}, seed {}", run.seed);
        if results.iter().any(|r| r.status == PushStatus::Queued) {
            assert_eq!(counts, [whole, whole], "told as stored; seed {}", run.seed);
        }
        // The pool may still hand out a connection that was cut.
        let again = queen_testkit::wait_for("a push after the cut", Duration::from_secs(10), async || {
            let again = broker.push(TENANT, items.clone(), None).await;
            again.iter().all(|r| r.status != PushStatus::Failed).then_some(again)
        });
        again.await?;
        check_tables(&client).await?;
    }
    broker.shutdown().await;
    Ok(())
}

/// Broken by a push that starts at an offset which had been used before retention emptied the partition, or that moves
/// where the log begins.
#[tokio::test]
async fn i07_the_log_starts_at_its_first_segment_and_never_earlier() -> anyhow::Result<()> {
    let world = World::start().await?;
    let [broker, _] = &world.brokers;
    let mut runs = Runs::of(SHORT)?;
    while let Some(mut run) = runs.next_run() {
        let queue = format!("q{}n{}", run.seed, run.number);
        let (mut end, mut start) = (0, 0);
        for round in 0..4 {
            for push in 0..run.rng.random_range(0..4) {
                let count = run.rng.random_range(1..4);
                let items = (0..count).map(|i| item(&queue, "p", &format!("{round}.{push}.{i}"))).collect();
                let results = broker.push(TENANT, items, None).await;
                assert!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
                end += count;
            }
            let cut: i64 = run.rng.random_range(start..=end);
            world
                .client
                .batch_execute(&format!(
                    "WITH gone AS (
                         DELETE FROM queen.log_segments s USING queen.log_partitions p, queen.queues q
                         WHERE p.id = s.partition_id AND q.id = p.queue_id AND q.name = '{queue}' AND s.end_offset < {cut}
                         RETURNING s.partition_id, s.end_offset)
                     UPDATE queen.log_partitions p
                     SET last_offset = GREATEST(p.last_offset, g.last), log_start = g.last + 1
                     FROM (SELECT partition_id, max(end_offset) AS last FROM gone GROUP BY 1) g
                     WHERE p.id = g.partition_id"
                ))
                .await?;
            run.explain(check_tables(&world.client).await)?;
            let row = world
                .client
                .query_opt(
                    "SELECT p.log_start FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id
                     WHERE q.name = $1",
                    &[&queue],
                )
                .await?;
            let now = row.map_or(0, |row| row.get(0));
            assert!(now >= start && now <= cut, "{now} after {start}, cut at {cut}; seed {}", run.seed);
            start = now;
        }
        let answer = broker.pop(TENANT, pop(&queue, 100)).await?;
        assert_eq!(keys(&answer).len() as i64, end - start, "seed {}", run.seed);
        if let (Some(first), Some(lease)) = (answer.partitions.first(), &answer.lease) {
            let last = &keys(&answer)[keys(&answer).len() - 1];
            let done = ack(first.partition_id, Some(lease), last, AckStatus::Completed);
            let done = broker.ack(TENANT, Group::queue_mode(), vec![done]).await;
            assert!(done[0].success && done[0].lease_released, "{done:?}");
        }
        run.explain(check_tables(&world.client).await)?;
    }
    world.stop().await;
    Ok(())
}
