//! Invariants of the decision about acks.

use std::time::Duration;

use proptest::prelude::*;
use queen_core::api::AckResult;
use queen_storage::ack::{Answer, Cursor, Decision, Item, Policy, Resolved, decide};
use queen_tests::build::{ack, item, keys, pop_partition};
use queen_tests::model::ack::{GivenUp, Place, Placed, settle};
use queen_tests::model::{self, Rules};
use queen_tests::scene::{TENANT, World};
use queen_tests::seed::{Runs, SECONDS};
use queen_types::{AckStatus, Group, LeaseId, Offset, OptionsEdit, RetryBackoff};
use rand::Rng;
use rand::seq::SliceRandom;

const CASES_A_SECOND: u32 = 20_000;
const WORKER: &str = "worker";

/// A situation: a row, its queue's rules, and what somebody says.
#[derive(Debug, Clone)]
struct Situation {
    cursor: Cursor,
    policy: Policy,
    lease: Option<&'static str>,
    items: Vec<(AckStatus, Resolved, Option<&'static str>)>,
    random: f32,
}

fn rows() -> impl Strategy<Value = Cursor> {
    let lease = prop_oneof![2 => Just(None), 6 => (1..9i64, any::<bool>()).prop_map(Some)];
    (-1..5i64, lease, prop::option::of((1..4i32, 0..14i64))).prop_map(|(committed, lease, used)| Cursor {
        committed,
        batch_end: lease.map(|(length, _)| committed + length),
        worker: lease.map(|_| WORKER.to_owned()),
        live: lease.is_some_and(|(_, live)| live),
        retries: used.map_or(0, |(count, _)| count),
        retry_offset: used.map(|(_, at)| at),
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    let backoff =
        prop_oneof![Just(RetryBackoff::None), Just(RetryBackoff::Fixed), Just(RetryBackoff::Exponential)];
    (0..4i32, any::<bool>(), backoff, 0..3000i32, 0..9000i32, any::<bool>()).prop_map(
        |(retry_limit, dead_letters, backoff, delay_ms, delay_max_ms, redeliver_skipped)| Policy {
            retry_limit,
            dead_letters,
            backoff,
            delay_ms,
            delay_max_ms,
            jitter: 0.5,
            redeliver_skipped,
        },
    )
}

fn situations() -> impl Strategy<Value = Situation> {
    let lease = prop_oneof![6 => Just(Some(WORKER)), 2 => Just(None), 1 => Just(Some("other"))];
    (rows(), policies(), lease, 0.0..1.0f32).prop_flat_map(|(cursor, policy, lease, random)| {
        let last = cursor.batch_end.unwrap_or(cursor.committed + 9);
        let place = prop_oneof![
            8 => (cursor.committed + 1..=last).prop_map(Resolved::Above),
            1 => Just(Resolved::Below),
            1 => Just(Resolved::Nowhere),
        ];
        let status = prop_oneof![
            6 => Just(AckStatus::Completed),
            2 => Just(AckStatus::Failed),
            1 => Just(AckStatus::Retry),
            1 => Just(AckStatus::Dlq),
        ];
        let error = prop_oneof![3 => Just(None), 1 => Just(Some("first")), 1 => Just(Some("second"))];
        prop::collection::vec((status, place, error), 0..9).prop_map(move |items| Situation {
            cursor: cursor.clone(),
            policy: policy.clone(),
            lease,
            items,
            random,
        })
    })
}

fn decided(s: &Situation) -> Decision {
    let items: Vec<Item<'_>> = s
        .items
        .iter()
        .map(|(status, resolved, error)| Item { status: *status, resolved: *resolved, error: *error })
        .collect();
    decide(&s.cursor, &s.policy, s.lease, &items, s.random)
}

/// The same by the model; its cursor has an attempt, so that a reset shows.
fn modelled(s: &Situation) -> (model::Cursor, Vec<AckResult>, Option<GivenUp>) {
    let mut cursor = model::Cursor {
        committed: s.cursor.committed,
        lease: s.cursor.batch_end.map(|end| model::Lease {
            id: LeaseId::from_client(WORKER),
            end,
            live: s.cursor.live,
        }),
        retries: s.cursor.retries,
        retry_offset: s.cursor.retry_offset,
        waiting: false,
        attempt: Some((0, 1)),
        consumed: 0,
    };
    let rules = Rules {
        retry_limit: s.policy.retry_limit,
        dead_letters: s.policy.dead_letters,
        dedup: true,
        backoff: s.policy.backoff != RetryBackoff::None,
        redeliver_skipped: s.policy.redeliver_skipped,
    };
    let place = |resolved| match resolved {
        Resolved::Above(at) => Place::At(at),
        Resolved::Below => Place::Done,
        Resolved::Nowhere => Place::Unknown,
    };
    let items: Vec<Placed<'_>> = s
        .items
        .iter()
        .map(|(status, r, error)| Placed { status: *status, place: place(*r), error: *error })
        .collect();
    let lease = s.lease.map(LeaseId::from_client);
    let (answers, given_up) = settle(&mut cursor, &rules, lease.as_ref(), &items);
    (cursor, answers, given_up)
}

/// `engine.md` 5.5 for the n-th retry.
fn delay_ms(policy: &Policy, n: i32, random: f32) -> Option<i64> {
    let mut delay = f64::from(policy.delay_ms);
    match policy.backoff {
        RetryBackoff::None => return None,
        RetryBackoff::Fixed => {}
        RetryBackoff::Exponential => (1..n).for_each(|_| delay *= 2.0),
    }
    delay += delay * f64::from(policy.jitter) * f64::from(random);
    Some(delay.min(f64::from(policy.delay_max_ms)) as i64)
}

fn as_result(answer: Answer) -> AckResult {
    AckResult {
        success: answer.success,
        error: answer.error,
        lease_released: answer.lease_released,
        dlq: answer.dlq,
        noop: answer.noop,
        redelivers: answer.redelivers,
        dropped: answer.dropped,
        overloaded: false,
    }
}

fn config() -> ProptestConfig {
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok()).unwrap_or(1u32);
    ProptestConfig {
        cases: CASES_A_SECOND.saturating_mul(seconds.max(1)),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Broken by any cell of table 5.2 that the broker fills in differently from the model: cursor, lease, budget, dead
    /// letter, delay, or the answer to an item.
    #[test]
    fn i22_a_decision_is_the_one_of_the_table(s in situations()) {
        let decision = decided(&s);
        let (cursor, answers, given_up) = modelled(&s);
        prop_assert_eq!(decision.answers.iter().cloned().map(as_result).collect::<Vec<_>>(), answers);
        prop_assert_eq!(decision.cursor.committed, cursor.committed);
        prop_assert_eq!(decision.cursor.batch_end, cursor.lease.as_ref().map(|l| l.end));
        prop_assert_eq!(decision.cursor.worker.is_some(), cursor.lease.is_some());
        prop_assert_eq!(decision.cursor.live, cursor.is_held());
        prop_assert_eq!(decision.release, decision.cursor.batch_end.is_none() && changed(&s, &decision));
        prop_assert_eq!((decision.cursor.retries, decision.cursor.retry_offset), (cursor.retries, cursor.retry_offset));
        prop_assert_eq!(decision.reset_attempt, cursor.attempt.is_none());
        let charged = cursor.waiting.then(|| delay_ms(&s.policy, cursor.retries, s.random)).flatten();
        prop_assert_eq!(decision.delay_ms, charged);
        let filed = given_up.as_ref().filter(|g| g.filed);
        prop_assert_eq!(
            decision.dead_letter.as_ref().map(|d| (d.offset, d.retries, d.error.as_str())),
            filed.map(|g| (g.offset, g.retries, g.error.as_str()))
        );
        prop_assert_eq!(decision.dropped, given_up.as_ref().is_some_and(|g| !g.filed));
        prop_assert_eq!(decision.skipped as i64, given_up.as_ref().map_or(0, |g| g.passed));
    }

    /// Broken by a decision that passes a message of which somebody says that it failed, without filing or dropping it;
    /// or that sets a cursor back.
    #[test]
    fn i23_a_signal_is_never_passed(s in situations()) {
        let decision = decided(&s);
        prop_assert!(decision.cursor.committed >= s.cursor.committed);
        let signals = s.items.iter().filter(|(status, ..)| *status != AckStatus::Completed);
        let lowest: Option<Offset> =
            signals.filter_map(|(_, place, _)| if let Resolved::Above(at) = place { Some(*at) } else { None }).min();
        // On a row that nobody holds signals are refused, every one of them.
        if let (Some(lowest), true) = (lowest, s.cursor.live && s.lease != Some("other")) {
            let given_up = decision.dead_letter.is_some() || decision.dropped;
            let most = if given_up { lowest } else { lowest - 1 };
            prop_assert!(decision.cursor.committed <= most, "{decision:?}");
        }
    }
}

fn changed(s: &Situation, decision: &Decision) -> bool {
    s.cursor.batch_end != decision.cursor.batch_end || decision.release
}

/// Broken by a call through the broker after which the lowest message that was said to have failed is neither ahead of
/// the cursor nor in the dead letters, whatever else the call says and in whatever order.
#[tokio::test]
async fn i23_a_failed_message_is_ahead_of_the_cursor_or_filed() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    let mut runs = Runs::of(Duration::from_secs(1))?;
    while let Some(mut run) = runs.next_run() {
        let queue = format!("q{}n{}", run.seed, run.number);
        let edit = OptionsEdit { retry_limit: Some(run.rng.random_range(0..2)), ..OptionsEdit::default() };
        let name = queen_tests::build::queue(&queue);
        let request = queen_core::api::ConfigureRequest { queue: name, replace: false, edit };
        broker.configure(TENANT, request).await?;
        for chunk in 0..3 {
            let items = (0..4).map(|i| item(&queue, "p", &format!("k{}", chunk * 4 + i))).collect();
            broker.push(TENANT, items, None).await;
        }
        loop {
            let answer = broker.pop(TENANT, pop_partition(&queue, "p", run.rng.random_range(1..9))).await?;
            let Some(batch) = answer.partitions.first() else { break };
            let statuses = [
                AckStatus::Completed,
                AckStatus::Completed,
                AckStatus::Failed,
                AckStatus::Retry,
                AckStatus::Dlq,
            ];
            let mut items: Vec<_> = keys(&answer)
                .iter()
                .map(|key| {
                    ack(batch.partition_id, answer.lease.as_ref(), key, statuses[run.rng.random_range(0..5)])
                })
                .collect();
            items.shuffle(&mut run.rng);
            items.truncate(run.rng.random_range(1..=items.len()));
            let offset = |key: &str| key[1..].parse::<i64>().unwrap_or(-1);
            let signals = items.iter().filter(|i| i.status != AckStatus::Completed);
            let lowest = signals.map(|i| offset(&i.transaction_id)).min();
            let said = format!("{items:?}");
            broker.ack(TENANT, Group::queue_mode(), items).await;
            let sql = "SELECT c.committed, EXISTS (SELECT 1 FROM queen.log_dlq d
                       WHERE d.partition_id = c.partition_id AND d.\"offset\" = $2)
                       FROM queen.log_consumers c WHERE c.partition_id = $1";
            let row = world.client.query_one(sql, &[&batch.partition_id.0, &lowest.unwrap_or(-1)]).await?;
            if let Some(lowest) = lowest {
                let (committed, filed): (i64, bool) = (row.get(0), row.get(1));
                assert!(
                    committed < lowest || (filed && committed == lowest),
                    "{committed}: {said}, seed {}",
                    run.seed
                );
            }
            // Whatever was neither said nor passed comes again at once.
            let sql = "UPDATE queen.log_consumers SET lease_expires_at = clock_timestamp() - interval '1 s'
                       WHERE worker_id IS NOT NULL";
            world.client.execute(sql, &[]).await?;
        }
    }
    world.stop().await;
    Ok(())
}
