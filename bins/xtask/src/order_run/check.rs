//! What must hold of the deliveries, without a broker.

use std::collections::HashMap;

/// One delivery of one message to the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delivery {
    /// When its batch arrived, nanoseconds of the clock that all processes of the machine share.
    pub(super) at: u128,
    pub(super) partition: usize,
    /// Its number inside the partition, from 0.
    pub(super) number: u64,
    /// Its ack took effect.
    pub(super) acked: bool,
}

/// What a run without violations showed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) delivered: usize,
    /// Deliveries beyond the first of a message whose ack had failed.
    pub(super) redelivered: usize,
}

/// Checks that every partition delivered `0..expected[partition]`, in order, each once with a successful ack.
pub(super) fn check(mut deliveries: Vec<Delivery>, expected: &[u64]) -> Result<Verdict, Vec<String>> {
    // Batches of one partition never overlap in time: the next is claimed after the ack of the one before. Inside a
    // batch the order of arrival is the order of the records, which a stable sort keeps.
    deliveries.sort_by_key(|d| d.at);
    let mut violations = Vec::new();
    let mut next: HashMap<usize, u64> = HashMap::new();
    let mut redelivered = 0;
    for d in &deliveries {
        let next = next.entry(d.partition).or_default();
        if d.number > *next {
            violations.push(format!("partition {}: {} came before {}", d.partition, d.number, *next));
        }
        if d.number < *next {
            violations.push(format!("partition {}: {} came again after its ack", d.partition, d.number));
        }
        if d.acked {
            *next = (*next).max(d.number + 1);
        } else {
            redelivered += 1;
        }
    }
    for (partition, expected) in expected.iter().enumerate() {
        let reached = next.get(&partition).copied().unwrap_or(0);
        if reached != *expected {
            violations.push(format!("partition {partition}: {reached} of {expected} messages were handled"));
        }
    }
    if violations.is_empty() {
        Ok(Verdict { delivered: deliveries.len(), redelivered })
    } else {
        Err(violations)
    }
}

/// Damages a record of deliveries in a way that [`check`] must see.
pub(super) fn sabotage(deliveries: &mut Vec<Delivery>, kind: &str) -> anyhow::Result<()> {
    anyhow::ensure!(deliveries.len() > 10, "too few deliveries to sabotage");
    let middle = deliveries.len() / 2;
    match kind {
        "lost" => drop(deliveries.remove(middle)),
        "duplicate" => {
            let late = deliveries.iter().map(|d| d.at).max().unwrap_or(0) + 1;
            let copy = Delivery { at: late, ..deliveries[middle].clone() };
            deliveries.push(copy);
        }
        "swap" => {
            let partition = deliveries[middle].partition;
            let mut of: Vec<usize> =
                (0..deliveries.len()).filter(|i| deliveries[*i].partition == partition).collect();
            of.sort_by_key(|i| deliveries[*i].number);
            anyhow::ensure!(of.len() > 1, "a partition with one message has no order");
            let (a, b) = (deliveries[of[0]].number, deliveries[of[1]].number);
            deliveries[of[0]].number = b;
            deliveries[of[1]].number = a;
        }
        other => anyhow::bail!("--sabotage {other}: it can be lost, duplicate or swap"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> (Vec<Delivery>, Vec<u64>) {
        let deliveries = (0..40).map(|i| Delivery {
            at: u128::from(i) / 4,
            partition: (i % 2) as usize,
            number: i / 2,
            acked: true,
        });
        (deliveries.collect(), vec![20, 20])
    }

    #[test]
    fn a_faithful_run_passes() {
        let (deliveries, expected) = run();
        assert_eq!(check(deliveries, &expected), Ok(Verdict { delivered: 40, redelivered: 0 }));
    }

    #[test]
    fn a_failed_ack_explains_a_redelivery() {
        let (mut deliveries, expected) = run();
        let first = Delivery { acked: false, ..deliveries[0].clone() };
        deliveries.insert(0, first);
        assert_eq!(check(deliveries, &expected), Ok(Verdict { delivered: 41, redelivered: 1 }));
    }

    #[test]
    fn every_kind_of_sabotage_is_seen() {
        for kind in ["lost", "duplicate", "swap"] {
            let (mut deliveries, expected) = run();
            sabotage(&mut deliveries, kind).unwrap();
            assert!(check(deliveries, &expected).is_err(), "{kind}");
        }
    }

    #[test]
    fn a_message_that_was_pushed_and_never_came_is_seen() {
        let (deliveries, _) = run();
        assert!(check(deliveries, &[20, 21]).is_err());
    }
}
