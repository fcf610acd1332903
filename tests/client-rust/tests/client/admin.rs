use anyhow::{Context, Result};
use queen_client_rust_tests::Fixture;
use queen_mq::{AckStatus, DlqParams, Error, QueueOptions, SubscriptionMode};
use serde_json::{Value, json};

/// The status of the error that a call must end with, and its text.
fn failure<T: std::fmt::Debug>(outcome: queen_mq::Result<T>) -> Result<(u16, String, Option<String>)> {
    match outcome {
        Err(Error::Http { status, message, code, .. }) => {
            let code = code.map(serde_json::to_value).transpose()?;
            Ok((status, message, code.and_then(|code| code.as_str().map(str::to_owned))))
        }
        other => anyhow::bail!("an HTTP error was expected, not {other:?}"),
    }
}

fn named<'a>(list: &'a Value, key: &str, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|entry| entry[key] == name)
}

#[tokio::test]
async fn health_is_told() -> Result<()> {
    let fixture = Fixture::start().await?;
    let health = fixture.queen.admin().health().await?;
    assert_eq!(health["status"], "healthy");
    assert_eq!(health["database"], "connected");
    assert!(health["version"].as_str().is_some_and(|version| version.split('.').count() >= 3), "{health}");
    Ok(())
}

#[tokio::test]
async fn metrics_are_told() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push(1).await?;
    let metrics: Value = serde_json::from_str(&fixture.queen.admin().metrics().await?)?;
    for key in ["uptime", "requests", "messages", "database", "memory", "cpu"] {
        assert!(metrics.get(key).is_some(), "{key} is missing: {metrics}");
    }
    Ok(())
}

#[tokio::test]
async fn configure_echoes_every_option_that_it_stored() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    let options = QueueOptions {
        namespace: Some("shop".into()),
        task: Some("ship".into()),
        priority: Some(7),
        lease_time: Some(90),
        retry_limit: Some(5),
        retry_delay: Some(250),
        max_size: Some(1000),
        ttl: Some(60),
        dead_letter_queue: Some(false),
        dlq_after_max_retries: Some(true),
        delayed_processing: Some(1),
        window_buffer: Some(2),
        retention_seconds: Some(3),
        completed_retention_seconds: Some(4),
        retention_enabled: Some(true),
        max_wait_time_seconds: Some(5),
        min_pop_wait_time: Some(6),
        dedup_window_seconds: Some(7),
        ..Default::default()
    };
    let configured = orders.configure(options).await?;
    assert_eq!(configured["configured"], true);
    assert_eq!(configured["queue"], "orders");
    assert_eq!((&configured["namespace"], &configured["task"]), (&json!("shop"), &json!("ship")));
    assert_eq!(configured["storage"], "segments");
    let expected = json!({
        "priority": 7, "leaseTime": 90, "retryLimit": 5, "retryDelay": 250, "maxSize": 1000, "ttl": 60,
        "deadLetterQueue": false, "dlqAfterMaxRetries": true, "delayedProcessing": 1, "windowBuffer": 2,
        "retentionSeconds": 3, "completedRetentionSeconds": 4, "retentionEnabled": true,
        "maxWaitTimeSeconds": 5, "minPopWaitTime": 6, "dedupWindowSeconds": 7, "encryptionEnabled": false,
    });
    for (option, value) in expected.as_object().context("an object")? {
        assert_eq!(&configured["options"][option], value, "{option}");
    }

    // What a later call leaves out keeps its value.
    let merged = orders.configure(QueueOptions { lease_time: Some(30), ..Default::default() }).await?;
    assert_eq!(merged["queueId"], configured["queueId"]);
    assert_eq!((&merged["options"]["leaseTime"], &merged["options"]["retryLimit"]), (&json!(30), &json!(5)));
    Ok(())
}

#[tokio::test]
async fn create_gives_the_defaults() -> Result<()> {
    let fixture = Fixture::start().await?;
    let created = fixture.queen.queue("orders").create().await?;
    assert_eq!(created["configured"], true);
    assert_eq!(created["options"]["leaseTime"], 300);
    assert_eq!(created["options"]["retryLimit"], 3);
    assert_eq!(created["options"]["dedupWindowSeconds"], 3600);
    Ok(())
}

#[tokio::test]
async fn a_refused_option_changes_nothing() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    orders.create().await?;
    let bad = QueueOptions { lease_time: Some(-1), retry_limit: Some(9), ..Default::default() };
    let (status, message, _) = failure(orders.configure(bad).await)?;
    assert_eq!(status, 400);
    assert!(message.contains("leaseTime") && message.contains("-1"), "{message}");
    let unchanged = orders.configure(QueueOptions::default()).await?;
    assert_eq!(unchanged["options"]["retryLimit"], 3);
    Ok(())
}

#[tokio::test]
async fn queues_are_listed_with_their_counts() -> Result<()> {
    let fixture = Fixture::start().await?;
    let admin = fixture.queen.admin();
    assert_eq!(admin.list_queues(&[]).await?["queues"], json!([]));
    fixture.queen.queue("shop.orders").push_many(0..3).await?;
    fixture.queen.queue("shop.orders").partition("p").push(3).await?;
    fixture.queen.queue("other").create().await?;

    let listed = admin.list_queues(&[("limit", "1".into())]).await?;
    assert_eq!(listed["queues"].as_array().map(Vec::len), Some(2), "the filter is accepted and ignored");
    let orders = named(&listed["queues"], "name", "shop.orders").context("the queue")?;
    assert_eq!((&orders["namespace"], &orders["task"]), (&json!("shop"), &json!("orders")));
    assert_eq!((&orders["partitions"], &orders["messages"]["total"]), (&json!(2), &json!(4)));
    Ok(())
}

#[tokio::test]
async fn a_queue_is_told_in_detail() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push_many(0..3).await?;
    let popped = fixture.queen.queue("orders").batch(2).wait(false).pop().await?;
    fixture.queen.ack(&popped[0]).await?;

    let detail = fixture.queen.admin().queue("orders").await?;
    assert_eq!(detail["name"], "orders");
    let lane = named(&detail["partitions"], "name", "Default").context("the partition")?;
    assert_eq!(lane["id"], popped[0].partition_id);
    assert_eq!(lane["stats"]["total"], 3);
    assert_eq!(lane["stats"]["failed"], Value::Null);
    assert_eq!(detail["totals"]["total"], 3);
    assert_eq!(detail["options"]["leaseTime"], 60, "a queue that a push made");
    Ok(())
}

#[tokio::test]
async fn depth_is_exact_for_queue_and_group() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").partition("a").push_many(0..5).await?;
    fixture.queen.queue("orders").partition("b").push_many(0..2).await?;
    let admin = fixture.queen.admin();
    let depth = admin.queue_depth("orders", None).await?;
    assert_eq!((&depth["pending"], &depth["partitionsPending"]), (&json!(7), &json!(2)));
    assert_eq!(depth["group"], Value::Null);

    let lane = fixture.queen.queue("orders").partition("a").group("g");
    let popped = lane.subscription_mode(SubscriptionMode::All).batch(5).wait(false).pop().await?;
    assert!(fixture.queen.ack_all(&popped).await?.iter().all(|ack| ack.success));
    let depth = admin.queue_depth("orders", Some("g")).await?;
    assert_eq!((&depth["queue"], &depth["group"]), (&json!("orders"), &json!("g")));
    assert_eq!((&depth["pending"], &depth["effectivePending"]), (&json!(2), &json!(2)));
    assert_eq!(depth["conflation"], false);
    let lanes: Vec<(&Value, &Value)> = depth["partitions"]
        .as_array()
        .context("a list")?
        .iter()
        .map(|lane| (&lane["partition"], &lane["pending"]))
        .collect();
    assert_eq!(lanes, [(&json!("a"), &json!(0)), (&json!("b"), &json!(2))]);
    Ok(())
}

#[tokio::test]
async fn a_deleted_queue_is_gone_and_may_come_back() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").wait(false);
    orders.push("a").await?;
    orders.pop().await?;
    let deleted = orders.delete().await?;
    assert_eq!((&deleted["deleted"], &deleted["existed"]), (&json!(true), &json!(true)));
    let (status, ..) = failure(fixture.queen.admin().queue("orders").await)?;
    assert_eq!(status, 404);
    let again = orders.delete().await?;
    assert_eq!((&again["deleted"], &again["existed"]), (&json!(false), &json!(false)));

    orders.push("b").await?;
    let popped = orders.pop().await?;
    assert_eq!(popped[0].data, "b");
    Ok(())
}

#[tokio::test]
async fn namespaces_and_tasks_are_listed() -> Result<()> {
    let fixture = Fixture::start().await?;
    for queue in ["shop.ship", "shop.bill", "bank.bill"] {
        fixture.queen.queue(queue).push_many(0..2).await?;
    }
    let admin = fixture.queen.admin();
    let namespaces = admin.namespaces().await?;
    let shop = named(&namespaces["namespaces"], "namespace", "shop").context("shop")?;
    assert_eq!((&shop["queues"], &shop["partitions"]), (&json!(2), &json!(2)));
    assert_eq!(shop["messages"]["total"], 4);
    let tasks = admin.tasks().await?;
    let bill = named(&tasks["tasks"], "task", "bill").context("bill")?;
    assert_eq!((&bill["queues"], &bill["messages"]["total"]), (&json!(2), &json!(4)));
    Ok(())
}

#[tokio::test]
async fn dead_letters_are_filtered_and_paged() -> Result<()> {
    let fixture = Fixture::start().await?;
    for (queue, group) in [("orders", "mail"), ("orders", "audit"), ("other", "mail")] {
        let queue = fixture.queen.queue(queue).partition(group);
        queue.push_many(["x", "y"]).await?;
        let worker = queue.group(group).subscription_mode(SubscriptionMode::All).batch(1).wait(false);
        for _ in 0..2 {
            let popped = worker.pop().await?;
            let reason = Some(format!("for {group}"));
            assert!(fixture.queen.ack_with(&popped[0], AckStatus::Dlq, reason).await?.dlq);
        }
    }
    let dlq = |queue: Option<&str>, group: Option<&str>, limit, offset| {
        let params =
            DlqParams { queue: queue.map(Into::into), consumer_group: group.map(Into::into), limit, offset };
        let admin = fixture.queen.admin();
        async move { admin.dlq(params).await }
    };
    assert_eq!(dlq(None, None, None, None).await?.total, 6);
    assert_eq!(dlq(Some("orders"), None, None, None).await?.total, 4);
    assert_eq!(dlq(Some("nothing"), None, None, None).await?.total, 0);

    let mail = dlq(Some("orders"), Some("mail"), None, None).await?;
    assert_eq!(mail.total, 2);
    // Newest failure first.
    assert_eq!(mail.messages.iter().map(|m| &m.data).collect::<Vec<_>>(), ["y", "x"]);
    assert!(mail.messages.iter().all(|m| m.error.as_deref() == Some("for mail")));

    let page = dlq(Some("orders"), Some("mail"), Some(1), Some(1)).await?;
    assert_eq!((page.total, page.messages.len()), (2, 1));
    assert_eq!(page.messages[0].data, "x");
    Ok(())
}

#[tokio::test]
async fn a_missing_queue_is_no_missing_route() -> Result<()> {
    let fixture = Fixture::start().await?;
    let admin = fixture.queen.admin();
    for outcome in [admin.queue("nothing").await, admin.queue_depth("nothing", None).await] {
        let (status, message, code) = failure(outcome)?;
        assert_eq!((status, code), (404, None));
        assert!(message.contains("Queue not found"), "{message}");
    }
    Ok(())
}

#[tokio::test]
async fn the_three_routes_that_no_broker_serves_stay_absent() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push(1).await?;
    let (status, _, code) = failure(fixture.queen.admin().partitions(&[]).await)?;
    assert_eq!((status, code.as_deref()), (404, Some("no_such_route")));

    let absent = json!({ "error": "Not Found", "code": "no_such_route" });
    for (method, path) in [
        ("GET", "/api/v1/resources/partitions"),
        ("DELETE", "/api/v1/queues/orders/clear"),
        ("POST", "/api/v1/messages/0190c0de-0a11-7c00-9a00-5f00aa11bb22/t-1/dlq"),
    ] {
        assert_eq!(fixture.raw(method, path).await?, (404, absent.clone()), "{method} {path}");
    }
    Ok(())
}
