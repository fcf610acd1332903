//! Messages that the database refuses for good, and refusals that only look like it.

use std::time::{Duration, Instant};

use queen_core::Mode;
use queen_segment::TxnHash;
use queen_testkit::wait_until;
use queen_tests::build::item;
use queen_types::PushStatus;
use tokio_postgres::Client;

use crate::{SOON, Scene, consume, keys};

/// From now on the database refuses segments that hold one of these keys, with that code.
async fn refuse(client: &Client, keys: &[&str], code: &str) -> anyhow::Result<()> {
    let hex =
        |key: &&str| TxnHash::of(key.as_bytes()).0.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let list: Vec<String> = keys.iter().map(|key| format!("'\\x{}'::bytea", hex(key))).collect();
    client
        .batch_execute(&format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF EXISTS (SELECT FROM unnest(ARRAY[{}]) AS bad(hash) WHERE position(bad.hash IN NEW.hashes) > 0) THEN
                     RAISE EXCEPTION 'refused by the test' USING ERRCODE = '{code}';
                 END IF;
                 RETURN NEW;
             END $$;
             DROP TRIGGER IF EXISTS refuse ON queen.log_segments;
             CREATE TRIGGER refuse BEFORE INSERT ON queen.log_segments FOR EACH ROW EXECUTE FUNCTION refuse()",
            list.join(", ")
        ))
        .await?;
    Ok(())
}

async fn accept(client: &Client) -> anyhow::Result<()> {
    Ok(client.batch_execute("DROP TRIGGER IF EXISTS refuse ON queen.log_segments").await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn s25_a_push_that_can_never_be_stored_fails_and_its_neighbours_do_not() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    let client = s.db.connect().await?;
    refuse(&client, &["bad"], "23514").await?;
    let results = s.push(vec![item("q", "p", "a"), item("q", "r", "bad"), item("q", "t", "c")]).await;
    let statuses: Vec<PushStatus> = results.iter().map(|r| r.status).collect();
    assert_eq!(statuses, [PushStatus::Queued, PushStatus::Failed, PushStatus::Queued]);
    assert!(
        results[1].error.as_ref().is_some_and(|text| text.contains("refused by the test")),
        "{results:?}"
    );
    assert_eq!(s.broker.buffered().pending, 0, "what can never be stored is not spooled");
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s06_exactly_the_bad_event_is_quarantined_and_can_be_driven_again() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    let client = s.db.connect().await?;
    refuse(&client, &["bad"], "23514").await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    let names: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.insert(11, "bad");
    s.push_all(&all, PushStatus::Buffered).await?;
    let began = Instant::now();
    s.broker.set_maintenance(Mode::Push, false).await;
    s.drained().await?;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    wait_until("the quarantine", SOON, async || s.broker.buffered().quarantined == 1).await?;
    let page = s.broker.quarantined(None, 0, 10).await?;
    let found = &page.events[0];
    assert_eq!(found.event.as_ref().map(|e| e.transaction_id.as_str()), Some("bad"));
    assert_eq!(found.why.sqlstate.as_deref(), Some("23514"));
    assert!(found.why.error.contains("refused by the test") && !found.why.failed_at.is_empty());
    assert_eq!(keys(&consume(&s.broker, "p").await?), names);
    // What made it bad is gone.
    accept(&client).await?;
    assert_eq!(s.broker.requeue(&found.file, None).await?, 1);
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["bad"]);
    assert_eq!(
        (s.broker.buffered().quarantined, s.files()),
        (0, vec![".lock".to_owned(), "failed".to_owned()])
    );
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s07_a_file_that_fails_as_a_whole_holds_the_others_up_for_three_seconds() -> anyhow::Result<()> {
    let s = Scene::with(|options| options.files.events_per_file = 2).await?;
    let client = s.db.connect().await?;
    refuse(&client, &["x", "y"], "22001").await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    s.push_all(&["x", "y", "a", "b"], PushStatus::Buffered).await?;
    let began = Instant::now();
    s.broker.set_maintenance(Mode::Push, false).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(s.broker.buffered().quarantined, 0, "the first attempts leave it");
    s.drained().await?;
    let took = began.elapsed();
    assert!(took > Duration::from_millis(2200) && took < Duration::from_millis(4000), "{took:?}");
    wait_until("the quarantine", SOON, async || s.broker.buffered().quarantined == 2).await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["a", "b"]);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s09_codes_that_pass_are_spooled_and_codes_that_do_not_fail() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    let client = s.db.connect().await?;
    let passing = [
        "40001", "40P01", "08006", "53100", "53300", "57014", "57P03", "58030", "25006", "55P03", "55006",
        "42883",
    ];
    let lasting = ["23505", "22001", "P0001", "40002", "XX000"];
    for code in lasting {
        refuse(&client, &[code], code).await?;
        let results = s.push(vec![item("q", code, code)]).await;
        assert_eq!(results[0].status, PushStatus::Failed, "{code}: {results:?}");
    }
    for code in passing {
        refuse(&client, &[code], code).await?;
        let results = s.push(vec![item("q", code, code)]).await;
        assert_eq!(results[0].status, PushStatus::Buffered, "{code}: {results:?}");
        accept(&client).await?;
        s.drained().await?;
        assert_eq!(keys(&consume(&s.broker, code).await?), [code]);
    }
    assert_eq!(s.broker.buffered().quarantined, 0);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn h06_a_database_that_is_read_only_for_a_while_quarantines_nothing() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.push_all(&["before"], PushStatus::Queued).await?;
    let client = s.db.connect().await?;
    let read_only = async |on: &str| {
        client
            .batch_execute(&format!(
                "ALTER DATABASE {} SET default_transaction_read_only = {on};
                 SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
                s.db.name()
            ))
            .await
    };
    read_only("on").await?;
    s.push_all(&["a"], PushStatus::Buffered).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let status = s.broker.buffered();
    assert_eq!((status.pending, status.quarantined), (1, 0));
    assert!(!s.broker.is_database_healthy().await, "it answers, and takes nothing");
    // The session of the test writes nothing by default either.
    client.batch_execute("SET default_transaction_read_only = off").await?;
    read_only("off").await?;
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["before", "a"]);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn b39_a_schema_that_is_being_restored_quarantines_nothing() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.push_all(&["before"], PushStatus::Queued).await?;
    let client = s.db.connect().await?;
    client
        .batch_execute(
            "BEGIN; CREATE TABLE kept AS SELECT * FROM queen.system_state WHERE key = 'schema_version';
             DELETE FROM queen.system_state WHERE key = 'schema_version';
             ALTER TABLE queen.log_segments RENAME TO elsewhere; COMMIT",
        )
        .await?;
    s.push_all(&["a"], PushStatus::Buffered).await?;
    tokio::time::sleep(Duration::from_millis(3500)).await;
    let status = s.broker.buffered();
    assert_eq!((status.pending, status.quarantined), (1, 0), "five attempts would be over by now");
    client
        .batch_execute(
            "BEGIN; ALTER TABLE queen.elsewhere RENAME TO log_segments;
             INSERT INTO queen.system_state SELECT * FROM kept; COMMIT",
        )
        .await?;
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["before", "a"]);
    s.broker.shutdown().await;
    Ok(())
}
