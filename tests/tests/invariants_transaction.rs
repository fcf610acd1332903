//! Invariants of transactions.

use queen_core::api::{PopAnswer, TxnOperation, TxnOutcome, TxnReason, TxnRequest};
use queen_tests::build::{item, keys, pop, pop_partition};
use queen_tests::scene::{TENANT, World};
use queen_tests::tables::{check_tables, row_versions};
use queen_types::{AckStatus, Group};

/// A hand-off: what was popped is completed, and its results are pushed under ids that follow from it.
fn hand_off(answer: &PopAnswer, named: bool) -> TxnRequest {
    let batch = &answer.partitions[0];
    let mut operations = Vec::new();
    for (_, message) in &batch.messages {
        operations.push(TxnOperation::Ack {
            group: Group::queue_mode(),
            partition: batch.partition_id,
            transaction_id: message.transaction_id.to_string(),
            status: AckStatus::Completed,
            lease: answer.lease.clone().filter(|_| named),
            error: None,
        });
        operations.push(TxnOperation::Push(item("out", "p", &format!("of-{}", message.transaction_id))));
    }
    let required_leases = if named { Vec::new() } else { answer.lease.iter().cloned().collect() };
    TxnRequest { operations, required_leases }
}

/// Broken by a repeated hand-off that is not recognised: one that pushes its results twice, moves a cursor, or is told
/// anything but `duplicate`, on either broker, with its lease named or required.
#[tokio::test]
async fn i30_a_transaction_that_is_replayed_writes_nothing_and_says_duplicate() -> anyhow::Result<()> {
    let world = World::start().await?;
    for (queue, named) in [("in1", true), ("in2", false)] {
        let items = (0..4).map(|i| item(queue, "p", &format!("{queue}-{i}"))).collect();
        world.brokers[0].push(TENANT, items, None).await;
        let answer = world.brokers[0].pop(TENANT, pop(queue, 3)).await?;
        let request = hand_off(&answer, named);
        let outcome = world.brokers[0].transaction(TENANT, request.clone(), None).await?;
        let TxnOutcome::Committed(results) = &outcome else { panic!("{outcome:?}") };
        assert_eq!(results.len(), 6);
        let before = row_versions(&world.client).await?;
        for broker in [&world.brokers[0], &world.brokers[1], &world.brokers[0]] {
            let again = broker.transaction(TENANT, request.clone(), None).await?;
            let TxnOutcome::RolledBack { reason: TxnReason::Duplicate, duplicates, .. } = &again else {
                panic!("{again:?}")
            };
            let places: Vec<usize> = duplicates.iter().map(|(place, _)| *place).collect();
            assert_eq!(places, [1, 3, 5], "{again:?}");
            assert_eq!(row_versions(&world.client).await?, before, "{again:?}");
        }
        let rest = world.brokers[1].pop(TENANT, pop_partition(queue, "p", 10)).await?;
        assert_eq!(keys(&rest), [format!("{queue}-3")], "the acks took effect once");
    }
    let out = world.brokers[0].pop(TENANT, pop("out", 100)).await?;
    assert_eq!(keys(&out), ["of-in1-0", "of-in1-1", "of-in1-2", "of-in2-0", "of-in2-1", "of-in2-2"]);
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}
