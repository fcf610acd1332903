//! Every administrative call on statistics, status and metrics.

use anyhow::{Context, Result};
use queen_client_rust_tests::Fixture;
use queen_mq::Error;
use serde_json::{Value, json};

/// A broker with a queue of three messages, two consumed, and fresh counters.
async fn used() -> Result<Fixture> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("shop.orders");
    orders.partition("a").push_many(0..3).await?;
    let popped = fixture.queen.queue("shop.orders").batch(2).wait(false).pop().await?;
    anyhow::ensure!(popped.len() == 2, "{popped:?}");
    fixture.queen.ack_all(&popped).await?;
    let refreshed = fixture.queen.admin().refresh_consumer_stats().await?;
    assert_eq!((&refreshed["queuesUpdated"], &refreshed["segPartitions"]), (&json!(1), &json!(1)));
    assert!(refreshed["refreshedAt"].as_str().is_some_and(|at| at.ends_with('Z')), "{refreshed}");
    Ok(fixture)
}

#[tokio::test]
async fn the_overview_adds_up() -> Result<()> {
    let fixture = used().await?;
    let overview = fixture.queen.admin().overview().await?;
    for (key, count) in [("queues", 1), ("partitions", 1), ("namespaces", 1), ("tasks", 1)] {
        assert_eq!(overview[key], count, "{key}: {overview}");
    }
    let messages = &overview["messages"];
    assert_eq!(
        (&messages["total"], &messages["pending"], &messages["completed"]),
        (&json!(3), &json!(1), &json!(2))
    );
    assert_eq!(overview["lag"]["offset"], json!({"avg": 1, "median": 1, "min": 1, "max": 1}));
    assert!(overview["statsAge"].as_i64().is_some_and(|age| (0..10).contains(&age)), "{overview}");
    Ok(())
}

#[tokio::test]
async fn queues_have_a_status() -> Result<()> {
    let fixture = used().await?;
    let admin = fixture.queen.admin();
    let listed = admin.queue_stats(&[("limit", "10".to_owned())]).await?;
    let orders = &listed["queues"][0];
    assert_eq!(
        (&orders["name"], &orders["messages"]["pending"]),
        (&json!("shop.orders"), &json!(1)),
        "{listed}"
    );
    assert_eq!(listed["pagination"], json!({"limit": 10, "offset": 0}));
    let none = admin.queue_stats(&[("namespace", "bank".to_owned())]).await?;
    assert_eq!(none["queues"], json!([]));
    let detail = admin.queue_detail("shop.orders", &[]).await?;
    assert_eq!(detail["totals"]["messages"]["total"], 3, "{detail}");
    assert_eq!(detail["partitions"][0]["name"], "a", "{detail}");
    assert_eq!(detail["queue"]["config"]["retryLimit"], 3, "{detail}");
    let missing = admin.queue_detail("nothing", &[]).await;
    assert!(matches!(missing, Err(Error::Http { status: 404, .. })), "{missing:?}");
    Ok(())
}

#[tokio::test]
async fn series_have_their_blocks() -> Result<()> {
    let fixture = used().await?;
    let admin = fixture.queen.admin();
    let blocks = |body: &Value, keys: &[&str]| -> Result<()> {
        for key in keys {
            body.get(key).with_context(|| format!("{key} is missing: {body}"))?;
        }
        Ok(())
    };
    let status = admin.status(&[]).await?;
    blocks(
        &status,
        &["timeRange", "throughput", "queues", "messages", "leases", "deadLetterQueue", "workers", "errors"],
    )?;
    assert_eq!(status["messages"]["completed"], 2, "{status}");
    assert_eq!(status["leases"]["totalAcked"], 2, "{status}");
    blocks(
        &admin.analytics(&[("interval", "hour".to_owned())]).await?,
        &["dataPoints", "interval", "from", "to"],
    )?;
    blocks(&admin.system_metrics(&[]).await?, &["timeRange", "bucketMinutes", "replicaCount", "replicas"])?;
    blocks(&admin.worker_metrics(&[]).await?, &["timeSeries", "workers", "queues", "summary"])?;
    let postgres = admin.postgres_stats().await?;
    blocks(&postgres, &["timestamp", "database", "databaseCache", "tableCache", "deadTuples", "tableSizes"])?;
    assert!(postgres["tableSizes"].as_array().is_some_and(|tables| tables.len() > 5), "{postgres}");
    let unreadable = admin.status(&[("from", "yesterday".to_owned())]).await;
    assert!(matches!(&unreadable, Err(Error::Http { status: 400, message, .. }) if message.contains("from")));
    Ok(())
}
