//! Invariants of dead letters.

use std::sync::Arc;

use bytes::Bytes;
use queen_core::api::{AckItem, ConfigureRequest, DlqFilter, PopRequest, PushItem};
use queen_tests::build::{acks, group, item, pop_partition, queue};
use queen_tests::scene::{TENANT, World};
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, Group, OptionsEdit, PushStatus, TransactionId};

const RETRIES: i32 = 2;

/// Payloads that JSON text can hold and that something on the way may not.
fn nasty() -> Vec<Vec<u8>> {
    let deep = [b"[".repeat(2000), b"]".repeat(2000)].concat();
    let big = [&b"\""[..], &b"x\\\\".repeat(350_000), b"\""].concat();
    let quotes = [&b"["[..], &b"\"\\\"\",".repeat(3000), b"0]"].concat();
    let texts = [
        r#""a\u0000b""#,
        r#"{"\u0000":"\u0000"}"#,
        r#""\ud800""#,
        r#""\udc00\ud800""#,
        "1e999999",
        "-0.0e-999999",
        "[1E+400,1e-400]",
        r#"{"a":1,"a":2,"b" :  [ ] }"#,
        "\"\u{7f}\u{fffd}\u{10ffff}\"",
        " \t\r\n null \n",
        "",
        r#"{"encrypted":"x","iv":"y","authTag":"z"}"#,
    ];
    let digits = [&b"0."[..], &b"3".repeat(200_000)].concat();
    texts.into_iter().map(|text| text.as_bytes().to_vec()).chain([deep, big, quotes, digits]).collect()
}

/// Broken by a payload that the dead-letter table cannot take, so that its message blocks the partition for ever; by one
/// that comes out changed; by a message filed twice, or not for every group that gave it up.
#[tokio::test]
async fn i27_what_exhausts_its_budget_is_filed_once_a_group_byte_for_byte() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    let edit = OptionsEdit { retry_limit: Some(RETRIES), ..OptionsEdit::default() };
    broker.configure(TENANT, ConfigureRequest { queue: queue("q"), replace: false, edit }).await?;
    let payloads = nasty();
    let pushed: Vec<PushItem> = payloads
        .iter()
        .enumerate()
        .map(|(i, payload)| PushItem {
            payload: Bytes::from(payload.clone()),
            ..item("q", "p", &format!("k{i}"))
        })
        .collect();
    let results = broker.push(TENANT, pushed.clone(), Some(Arc::from("some\u{1f600}body"))).await;
    assert!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");

    let groups = [Group::queue_mode(), group("g")];
    for group in &groups {
        for (i, payload) in payloads.iter().enumerate() {
            for used in 0..=RETRIES {
                let request = PopRequest { group: group.clone(), ..pop_partition("q", "p", 1) };
                let answer = world.brokers[used as usize % 2].pop(TENANT, request).await?;
                let (_, message) = &answer.partitions[0].messages[0];
                assert_eq!(*message.transaction_id, *format!("k{i}"), "{group} after {used} failures");
                assert!(message.payload == payload[..], "payload {i} was delivered changed");
                let failed = acks(&answer, AckStatus::Failed);
                let failed =
                    failed.into_iter().map(|a| AckItem { error: Some(format!("why\0 {used}")), ..a });
                let answers = broker.ack(TENANT, group.clone(), failed.collect()).await;
                assert!(answers[0].success && answers[0].lease_released, "{answers:?}");
                assert_eq!(answers[0].dlq, used == RETRIES, "payload {i}: {answers:?}");
            }
        }
        let rest = PopRequest { group: group.clone(), ..pop_partition("q", "p", 100) };
        assert!(broker.pop(TENANT, rest).await?.is_empty());
    }

    let filter = DlqFilter {
        queue: Some(queue("q")),
        partition: None,
        group: None,
        from: None,
        to: None,
        limit: 1000,
        offset: 0,
    };
    let letters = broker.dead_letters(TENANT, filter).await?.records;
    assert_eq!(letters.len(), groups.len() * payloads.len());
    for group in &groups {
        for (i, payload) in payloads.iter().enumerate() {
            let key = TransactionId::new(format!("k{i}"))?;
            let mine =
                letters.iter().filter(|l| l.group == group.as_str() && l.transaction_id == key.as_str());
            let [letter] = mine.collect::<Vec<_>>()[..] else {
                panic!("{group} filed {key:?} otherwise than once")
            };
            assert_eq!(letter.payload.as_deref(), Some(&payload[..]), "payload {i}");
            assert_eq!(letter.message_id, Some(results[i].message_id));
            assert_eq!(letter.producer_sub.as_deref(), Some("some\u{1f600}body"));
            assert_eq!(letter.retry_count, RETRIES);
            assert_eq!(letter.error.as_deref(), Some(&*format!("why\u{fffd} {RETRIES}")));
        }
    }
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}
