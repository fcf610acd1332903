//! What one broker does to a group, and the others learn from the database alone.

use std::time::{Duration, Instant};

use anyhow::ensure;
use queen_core::api::{PopRequest, SeekTo};
use queen_core::{Broker, BrokerOptions};
use queen_tests::build::{group, item, keys, pop, queue};
use queen_types::AckStatus;

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
