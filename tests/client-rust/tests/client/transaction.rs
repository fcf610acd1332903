use anyhow::{Context, Result};
use queen_client_rust_tests::{Fixture, data};
use queen_mq::{Message, PushItem, QueueOptions, TxnPushItem};
use serde_json::json;

async fn claim(fixture: &Fixture, queue: &str) -> Result<Vec<Message>> {
    Ok(fixture.queen.queue(queue).batch(100).partitions(100).wait(false).pop().await?)
}

#[tokio::test]
async fn ack_and_pushes_commit_together() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push(json!({ "order": 1 })).await?;
    let order = claim(&fixture, "orders").await?;
    let committed = fixture
        .queen
        .transaction()
        .ack(&order[0])
        .push("invoices", json!({ "invoice": 1 }))?
        .push_to("mails", "customer-7", json!("thanks"))?
        .commit()
        .await?;
    assert!(committed.success && committed.error.is_none() && committed.reason.is_none());
    let kinds: Vec<(&str, bool)> =
        committed.results.iter().map(|r| (r.op_type.as_str(), r.success)).collect();
    assert_eq!(kinds.len(), 3);
    assert!(kinds.iter().all(|(_, success)| *success));
    assert_eq!(kinds.iter().filter(|(kind, _)| *kind == "push").count(), 2);
    assert_eq!(kinds.iter().filter(|(kind, _)| *kind == "ack").count(), 1);
    assert_eq!(committed.results.iter().map(|r| r.index).collect::<Vec<_>>(), [0, 1, 2]);

    assert_eq!(fixture.pending("orders", None).await?, 0);
    let invoices = claim(&fixture, "invoices").await?;
    assert_eq!(data(&invoices), [json!({ "invoice": 1 })]);
    let invoice = committed
        .results
        .iter()
        .find(|r| r.queue_name.as_deref() == Some("invoices"))
        .context("the result of the invoice")?;
    assert_eq!(invoice.message_id.as_deref(), Some(invoices[0].id.as_str()));
    assert_eq!(invoice.transaction_id, invoices[0].transaction_id);
    let mails = claim(&fixture, "mails").await?;
    assert_eq!((mails[0].partition.as_str(), &mails[0].data), ("customer-7", &json!("thanks")));
    Ok(())
}

#[tokio::test]
async fn a_duplicate_rolls_everything_back() -> Result<()> {
    let fixture = Fixture::start().await?;
    let queen = &fixture.queen;
    queen.queue("orders").push("order").await?;
    let taken = PushItem::new("mails", json!("original")).transaction_id("mail-1");
    queen.queue("mails").push_items(vec![taken]).await?;
    let order = claim(&fixture, "orders").await?;

    let error = queen
        .transaction()
        .ack(&order[0])
        .push("invoices", "must not appear")?
        .push_item(TxnPushItem::new("mails", json!("again")).transaction_id("mail-1"))?
        .commit()
        .await
        .err()
        .context("a duplicate must fail the bundle")?;
    assert!(error.to_string().contains("QDUP"), "{error}");

    assert_eq!(claim(&fixture, "invoices").await?, []);
    assert_eq!(data(&claim(&fixture, "mails").await?), [json!("original")]);
    assert_eq!(fixture.pending("orders", None).await?, 1);
    // The lease is untouched: the ack works outside of the bundle.
    assert!(queen.ack(&order[0]).await?.success);
    Ok(())
}

#[tokio::test]
async fn a_key_repeated_inside_a_bundle_is_stored_once() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mail = || TxnPushItem::new("mails", json!("once")).transaction_id("mail-1");
    let committed = fixture.queen.transaction().push_item(mail())?.push_item(mail())?.commit().await?;
    let duplicates: Vec<bool> = committed.results.iter().map(|r| r.is_duplicate()).collect();
    assert_eq!(duplicates, [false, true]);
    assert_eq!(committed.results[0].message_id, committed.results[1].message_id);
    assert_eq!(data(&claim(&fixture, "mails").await?), [json!("once")]);
    Ok(())
}

#[tokio::test]
async fn a_lost_lease_rolls_everything_back() -> Result<()> {
    let fixture = Fixture::start().await?;
    let queen = &fixture.queen;
    queen.queue("orders").push("order").await?;
    let order = claim(&fixture, "orders").await?;
    queen.nack(&order[0], "give it to someone else").await?;
    let theirs = claim(&fixture, "orders").await?;

    let stale = queen.transaction().ack(&order[0]).push("invoices", "stale")?.commit().await;
    assert!(stale.is_err(), "{stale:?}");
    assert_eq!(claim(&fixture, "invoices").await?, []);
    assert!(queen.transaction().ack(&theirs[0]).push("invoices", "right")?.commit().await?.success);
    assert_eq!(data(&claim(&fixture, "invoices").await?), [json!("right")]);
    Ok(())
}

#[tokio::test]
async fn a_trace_id_survives_on_this_route() -> Result<()> {
    let fixture = Fixture::start().await?;
    let trace_id = "0190c0de-0a11-7c00-9a00-5f00aa11bb22";
    fixture
        .queen
        .transaction()
        .push_item(TxnPushItem::new("mails", json!(1)).partition("p").trace_id(trace_id))?
        .push("mails", 2)?
        .commit()
        .await?;
    let mut mails = claim(&fixture, "mails").await?;
    mails.sort_by_key(|mail| mail.data.as_i64());
    assert_eq!((mails[0].trace_id.as_deref(), mails[0].partition.as_str()), (Some(trace_id), "p"));
    assert_eq!(mails[1].trace_id, None);
    Ok(())
}

#[tokio::test]
async fn a_failed_ack_may_dead_letter_inside_a_bundle() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    orders.configure(QueueOptions { retry_limit: Some(0), ..Default::default() }).await?;
    orders.push("poison").await?;
    let order = claim(&fixture, "orders").await?;
    let committed = fixture
        .queen
        .transaction()
        .nack(&order[0], "not edible")
        .push("alerts", json!({ "about": "poison" }))?
        .commit()
        .await?;
    assert!(committed.results.iter().any(|r| r.op_type == "ack" && r.is_dlq()), "{committed:?}");
    let dead = orders.dlq(None, None).await?;
    assert_eq!(dead.messages[0].error.as_deref(), Some("not edible"));
    assert_eq!(dead.messages[0].data, json!("poison"));
    assert_eq!(claim(&fixture, "alerts").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn messages_of_many_partitions_and_queues_are_acked_at_once() -> Result<()> {
    let fixture = Fixture::start().await?;
    for (queue, lane) in [("a", "p"), ("a", "q"), ("b", "p")] {
        fixture.queen.queue(queue).partition(lane).push_many(0..2).await?;
    }
    let messages = [claim(&fixture, "a").await?, claim(&fixture, "b").await?].concat();
    assert_eq!(messages.len(), 6);
    let bundle = fixture.queen.transaction().ack_all(&messages).push("done", 6)?;
    assert_eq!((bundle.len(), bundle.is_empty()), (7, false));
    assert!(bundle.commit().await?.success);
    assert_eq!(fixture.pending("a", None).await? + fixture.pending("b", None).await?, 0);
    Ok(())
}
