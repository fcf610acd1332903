//! What one broker does to a group, and the others learn from the database alone.

use std::time::{Duration, Instant};

use anyhow::ensure;
use queen_core::api::{PopRequest, SeekTo};
use queen_core::{Broker, BrokerOptions};
use queen_tests::build::{group, item, keys, pop, queue};
use queen_types::{AckStatus, StartPoint};

use crate::support::T;

const INTERVAL: Duration = Duration::from_millis(300);

/// Broken by a repair that is not written, not read, or applied too late: nothing else would tell the second broker, whose
/// floor looks every ten minutes.
#[tokio::test]
async fn a_peer_redelivers_within_one_interval() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let start = async |id: &str| {
        let options = BrokerOptions {
            pg: db.options(),
            server_id: id.to_owned(),
            reconcile_interval: INTERVAL,
            wait_floor: Duration::from_secs(600),
            ..queen_tests::options()
        };
        Broker::start(options).await
    };
    let (near, far) = (start("near").await?, start("far").await?);
    far.push(T, vec![item("q", "p", "a"), item("q", "r", "b")], None).await;
    let request = PopRequest { group: group("g"), partitions: None, ..pop("q", 10) };
    let take = async |wait: Duration| far.pop(T, PopRequest { wait: Some(wait), ..request.clone() }).await;
    let answer = take(Duration::from_secs(5)).await?;
    ensure!(answer.len() == 2);
    let results = far.ack(T, group("g"), queen_tests::build::acks(&answer, AckStatus::Completed)).await;
    ensure!(results.iter().all(|r| r.success));

    for round in 0..2 {
        let parked = {
            let (far, request) = (far.clone(), request.clone());
            let waiting = PopRequest { wait: Some(Duration::from_secs(30)), ..request };
            tokio::spawn(async move { far.pop(T, waiting).await })
        };
        queen_testkit::wait_until("the pop to park", Duration::from_secs(5), async || {
            !far.parked().is_empty()
        })
        .await?;
        tokio::time::sleep(INTERVAL).await;
        let began = Instant::now();
        match round {
            0 => drop(near.seek(T, &queue("q"), &group("g"), SeekTo::Beginning).await?),
            _ => drop(near.delete_group(T, &group("g"), None, true).await?),
        }
        let answer = parked.await??;
        ensure!(began.elapsed() < INTERVAL + Duration::from_millis(900), "{round}: {:?}", began.elapsed());
        let mut found = keys(&answer);
        found.sort();
        ensure!(found == ["a", "b"], "{round}: {found:?}");
        far.ack(T, group("g"), queen_tests::build::acks(&answer, AckStatus::Completed)).await;
    }
    near.shutdown().await;
    far.shutdown().await;
    Ok(())
}

/// A broker that knows a group as registered while another one deletes it: it begins anew there, nothing of before comes
/// again, and nothing is missed that came since, although the broker told its consumer meanwhile that there is nothing.
#[tokio::test]
async fn a_group_that_was_deleted_elsewhere_begins_anew_everywhere() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let start = async |id: &str| {
        // Nothing is found out by the intervals alone.
        let options = BrokerOptions {
            pg: db.options(),
            server_id: id.to_owned(),
            reconcile_interval: Duration::from_secs(600),
            ..queen_tests::options()
        };
        Broker::start(options).await
    };
    let (near, far) = (start("near").await?, start("far").await?);
    let client = db.connect().await?;
    let registrations = async || -> anyhow::Result<i64> {
        let sql = "SELECT count(*) FROM queen.consumer_groups_metadata WHERE consumer_group = 'g'";
        Ok(client.query_one(sql, &[]).await?.get(0))
    };
    let request =
        PopRequest { group: group("g"), start: Some(StartPoint::New), partitions: None, ..pop("q", 10) };
    let take = async |wait: u64| -> anyhow::Result<Vec<String>> {
        let wait = Some(Duration::from_millis(wait));
        let answer = far.pop(T, PopRequest { wait, ..request.clone() }).await?;
        far.ack(T, group("g"), queen_tests::build::acks(&answer, AckStatus::Completed)).await;
        Ok(keys(&answer))
    };
    near.push(T, vec![item("q", "p", "before")], None).await;
    ensure!(take(0).await?.is_empty(), "it is new");
    near.push(T, vec![item("q", "p", "a")], None).await;
    ensure!(take(5000).await? == ["a"]);
    for round in 0..3 {
        // The far broker has just seen the registration.
        ensure!(take(0).await?.is_empty());
        ensure!(near.delete_group(T, &group("g"), None, true).await?.registration);
        let key = format!("k{round}");
        match round {
            // Deleted, and then a message.
            0 => {}
            // The far broker says in between that there is nothing.
            1 => ensure!(take(0).await?.is_empty()),
            // It hears of the deletion first, and is idle.
            _ => tokio::time::sleep(Duration::from_millis(1500)).await,
        }
        near.push(T, vec![item("q", "p", &key)], None).await;
        ensure!(take(5000).await? == [key.as_str()], "round {round}");
        queen_testkit::wait_until("the registration", Duration::from_secs(3), async || {
            let _ = take(0).await;
            registrations().await.is_ok_and(|n| n == 1)
        })
        .await?;
    }
    ensure!(take(0).await?.is_empty(), "nothing of before");
    near.shutdown().await;
    far.shutdown().await;
    Ok(())
}
