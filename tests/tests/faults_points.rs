//! A fault at every point of a push, a transaction and a pop: afterwards all of it is there, once, or nothing.

use std::time::Duration;

use anyhow::{Context, ensure};
use queen_core::api::{PopRequest, PushResult, TxnOperation, TxnOutcome, TxnReason, TxnRequest};
use queen_core::{Broker, BrokerOptions, Error};
use queen_testkit::wait_until;
use queen_tests::build::{item, keys, pop};
use queen_tests::failpoint::{Fault, Often, Point, arm, disarm};
use queen_tests::scene::World;
use queen_tests::tables::{check_tables, row_versions};
use queen_types::{AckStatus, Group, PushStatus, TenantId};
use tokio_postgres::Client;

const T: TenantId = TenantId::DEFAULT;

const FAULTS: [Fault; 3] = [Fault::Refuse, Fault::Conflict, Fault::Kill];

const fn at_row(table: &'static str) -> Point {
    Point { table, at_commit: false }
}

const fn at_commit(table: &'static str) -> Point {
    Point { table, at_commit: true }
}

async fn count(client: &Client, sql: &str) -> anyhow::Result<i64> {
    Ok(client.query_one(sql, &[]).await?.get(0))
}

const MESSAGES: &str = "SELECT COALESCE(sum(end_offset - base_offset + 1), 0)::int8 FROM queen.log_segments";

/// Every combination of a point, a fault and its frequency.
fn cases(points: &[Point]) -> Vec<(Point, Fault, Often)> {
    let faults = FAULTS.iter().flat_map(|fault| [(*fault, Often::Once), (*fault, Often::Always)]);
    let faults: Vec<_> = faults.collect();
    points.iter().flat_map(|point| faults.iter().map(|(fault, often)| (*point, *fault, *often))).collect()
}

/// I-5. Broken by a push that leaves anything of itself behind when it fails, that tells of a success before the commit,
/// or that stores its messages twice when a passing fault makes it try again.
#[tokio::test]
async fn i05_a_push_that_meets_a_fault_at_any_point_is_whole_or_absent() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    broker.push(T, vec![item("q", "p", "first")], None).await;
    let points =
        [at_row("queues"), at_row("log_partitions"), at_row("log_segments"), at_commit("log_segments")];
    for (i, (point, fault, often)) in cases(&points).into_iter().enumerate() {
        let before = count(&world.client, MESSAGES).await?;
        let push = async || -> Vec<PushResult> {
            let old = item("q", "p", &format!("k{i}"));
            let new = item(&format!("q{i}"), "p", &format!("k{i}"));
            broker.push(T, vec![old, new], None).await
        };
        arm(&world.client, point, fault, often).await?;
        let results = push().await;
        let strikes = disarm(&world.client).await?;
        let case = format!("{point:?} {fault:?} {often:?}: {results:?}");
        ensure!(strikes > 0, "never came by: {case}");
        check_tables(&world.client).await.with_context(|| case.clone())?;
        let stored = count(&world.client, MESSAGES).await? - before;
        let queued = results.iter().filter(|r| r.status == PushStatus::Queued).count() as i64;
        ensure!(stored == queued, "{stored} are stored: {case}");
        if often == Often::Once && fault.passes() {
            ensure!(queued == 2, "a passing fault is overcome in place: {case}");
        }
        if often == Often::Always {
            ensure!(queued < 2, "{case}");
        }
        let again = push().await;
        ensure!(again.iter().all(|r| r.status != PushStatus::Failed), "{case}, then {again:?}");
        for (first, again) in results.iter().zip(&again) {
            let is_repeat = again.status == PushStatus::Duplicate && again.message_id == first.message_id;
            ensure!(is_repeat == (first.status == PushStatus::Queued), "{case}, then {again:?}");
        }
        ensure!(count(&world.client, MESSAGES).await? == before + 2, "{case}");
    }
    world.stop().await;
    Ok(())
}

/// A message of each of two partitions of the source, under one lease.
async fn two_of_the_source(broker: &Broker, name: &str) -> anyhow::Result<Vec<TxnOperation>> {
    let pushed = broker.push(T, vec![item(name, "done", "s"), item(name, "dead", "s")], None).await;
    ensure!(pushed.iter().all(|r| r.status == PushStatus::Queued), "{pushed:?}");
    let answer = broker.pop(T, PopRequest { partitions: None, ..pop(name, 9) }).await?;
    ensure!(answer.partitions.len() == 2, "{answer:?}");
    let acks = answer.partitions.iter().map(|p| TxnOperation::Ack {
        group: Group::queue_mode(),
        partition: p.partition_id,
        transaction_id: "s".to_owned(),
        status: if p.partition.as_str() == "dead" { AckStatus::Dlq } else { AckStatus::Completed },
        lease: answer.lease.clone(),
        error: Some("given up by the test".to_owned()),
    });
    Ok(acks.collect())
}

/// I-29. Broken by a transaction of which a queue, a message, a cursor or a dead letter is committed apart from the rest,
/// or is there twice when a passing fault makes it try again.
#[tokio::test]
async fn i29_a_transaction_that_meets_a_fault_at_any_point_is_whole_or_absent() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    broker.push(T, vec![item("sink", "p", "first")], None).await;
    let points = [
        at_row("queues"),
        at_row("log_partitions"),
        at_row("log_segments"),
        at_row("log_consumers"),
        at_row("log_dlq"),
        at_commit("log_segments"),
        at_commit("log_consumers"),
        at_commit("log_dlq"),
    ];
    for (i, (point, fault, often)) in cases(&points).into_iter().enumerate() {
        let source = format!("source{i}");
        let mut operations = two_of_the_source(broker, &source).await?;
        operations.push(TxnOperation::Push(item("sink", "p", &source)));
        operations.push(TxnOperation::Push(item("sink", &source, &source)));
        operations.push(TxnOperation::Push(item(&format!("sink{i}"), "p", &source)));
        let before = row_versions(&world.client).await?;
        arm(&world.client, point, fault, often).await?;
        let outcome = broker
            .transaction(T, TxnRequest { operations: operations.clone(), required_leases: Vec::new() }, None)
            .await?;
        let strikes = disarm(&world.client).await?;
        let case = format!("{point:?} {fault:?} {often:?}: {outcome:?}");
        ensure!(strikes > 0, "never came by: {case}");
        let overcome = often == Often::Once && fault.passes();
        match &outcome {
            TxnOutcome::Committed(results) => ensure!(overcome && results.len() == 5, "{case}"),
            TxnOutcome::RolledBack { reason, .. } => {
                ensure!(!overcome && *reason == TxnReason::DbError, "{case}");
                ensure!(row_versions(&world.client).await? == before, "something is left: {case}");
                let again = broker
                    .transaction(T, TxnRequest { operations, required_leases: Vec::new() }, None)
                    .await?;
                ensure!(matches!(again, TxnOutcome::Committed(_)), "{case}, then {again:?}");
            }
        }
        check_tables(&world.client).await.with_context(|| case.clone())?;
        let cases_done = i as i64 + 1;
        ensure!(count(&world.client, MESSAGES).await? == 1 + 5 * cases_done, "{case}");
        ensure!(count(&world.client, "SELECT count(*) FROM queen.log_dlq").await? == cases_done, "{case}");
        let done = "SELECT count(*) FROM queen.log_consumers WHERE committed = 0 AND worker_id IS NULL";
        ensure!(count(&world.client, done).await? == 2 * cases_done, "{case}");
    }
    world.stop().await;
    Ok(())
}

/// [E-25] and [E-24]: a claim that fails is an error, never "nothing there", and hides nothing. Broken by a failure that is
/// swallowed, or by a lease that outlives the failed pop that took it.
#[tokio::test]
async fn a_pop_that_meets_a_fault_says_so_and_hides_nothing() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    for (i, (point, fault, often)) in
        cases(&[at_row("log_consumers"), at_commit("log_consumers")]).into_iter().enumerate()
    {
        let name = format!("q{i}");
        broker.push(T, vec![item(&name, "p", "only")], None).await;
        arm(&world.client, point, fault, often).await?;
        let struck = broker.pop(T, pop(&name, 9)).await;
        ensure!(disarm(&world.client).await? > 0, "never came by");
        match &struck {
            Ok(answer) => ensure!(keys(answer) == ["only"], "{point:?} {fault:?} {often:?}: {answer:?}"),
            Err(error) => ensure!(matches!(error, Error::Statement { .. }), "{error:?}"),
        }
        if struck.is_err() {
            ensure!(keys(&broker.pop(T, pop(&name, 9)).await?) == ["only"], "{point:?} {fault:?} {often:?}");
        }
    }
    world.stop().await;
    Ok(())
}

/// The claim is committed, and what comes after it fails: shortening the lease to what the answer has room for. Broken by
/// a lease that nobody holds and that hides its messages until it ends by itself.
#[tokio::test]
async fn a_pop_that_fails_after_its_claim_gives_the_lease_back() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let options = BrokerOptions { pg: db.options(), pop_max_bytes: 1, ..queen_tests::options() };
    let broker = Broker::start(options).await?;
    broker.push(T, vec![item("q", "p", "a"), item("q", "p", "b")], None).await;
    let client = db.connect().await?;
    client
        .batch_execute(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '23514'; END $$;
             CREATE TRIGGER refuse BEFORE UPDATE ON queen.log_consumers FOR EACH ROW
                 WHEN (NEW.batch_end < OLD.batch_end) EXECUTE FUNCTION public.refuse()",
        )
        .await?;
    let request = PopRequest { lease_seconds: Some(300), ..pop("q", 9) };
    let refused = broker.pop(T, request.clone()).await;
    ensure!(matches!(refused, Err(Error::Statement { .. })), "{refused:?}");
    client.batch_execute("DROP FUNCTION public.refuse() CASCADE").await?;
    let again = async || broker.pop(T, request.clone()).await.is_ok_and(|answer| keys(&answer) == ["a"]);
    wait_until("the message", Duration::from_secs(5), again).await.context("its lease lasts 300 s")?;
    broker.shutdown().await;
    Ok(())
}

/// [E-24]: a pop that is given up at a moment at which its claim is committed, or about to be. Broken by a lease that
/// nobody holds and that hides its messages until it ends by itself.
#[tokio::test]
async fn a_pop_that_is_dropped_around_its_commit_gives_the_lease_back() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let options = BrokerOptions { pg: db.options(), pop_max_bytes: 1, ..queen_tests::options() };
    let broker = Broker::start(options).await?;
    let client = db.connect().await?;
    client
        .batch_execute(
            "CREATE FUNCTION public.pause() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM pg_catalog.pg_sleep(20); RETURN NEW; END $$",
        )
        .await?;
    let moments = [
        (
            "committing",
            "CREATE CONSTRAINT TRIGGER pause AFTER INSERT ON queen.log_consumers DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION public.pause()",
        ),
        // The lease is shortened to what the answer has room for.
        (
            "committed",
            "CREATE TRIGGER pause BEFORE UPDATE ON queen.log_consumers
             FOR EACH ROW WHEN (NEW.batch_end < OLD.batch_end) EXECUTE FUNCTION public.pause()",
        ),
    ];
    for (name, trigger) in moments {
        broker.push(T, vec![item(name, "p", "a"), item(name, "p", "b")], None).await;
        client.batch_execute(trigger).await?;
        let request = PopRequest { lease_seconds: Some(300), ..pop(name, 9) };
        let popping = tokio::spawn({
            let (broker, request) = (broker.clone(), request.clone());
            async move { broker.pop(T, request).await }
        });
        let sleeping = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND wait_event = 'PgSleep'";
        wait_until("the pop to be at its commit", Duration::from_secs(10), async || {
            client.query_one(sleeping, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 1)
        })
        .await?;
        popping.abort();
        ensure!(popping.await.is_err_and(|error| error.is_cancelled()));
        wait_until("its statement to be cancelled", Duration::from_secs(5), async || {
            client.query_one(sleeping, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 0)
        })
        .await?;
        client.batch_execute("DROP TRIGGER pause ON queen.log_consumers").await?;
        let again = async || broker.pop(T, request.clone()).await.is_ok_and(|answer| keys(&answer) == ["a"]);
        wait_until("the message", Duration::from_secs(5), again).await.with_context(|| name.to_owned())?;
    }
    broker.shutdown().await;
    Ok(())
}
