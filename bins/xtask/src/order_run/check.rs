//! What must hold of the deliveries, without a broker.

use std::collections::HashSet;

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
    /// Deliveries beyond the first of a message, each after an ack that failed.
    pub(super) redelivered: usize,
    /// Deliveries whose ack did not take effect.
    pub(super) failed_acks: usize,
}

/// Checks that every partition delivered `0..expected[partition]`, in order, each once with a successful ack.
///
/// A message may come again only after a failed ack, and the partition then resumes at the first message that is
/// not acked yet.
pub(super) fn check(mut deliveries: Vec<Delivery>, expected: &[u64]) -> Result<Verdict, Vec<String>> {
    // Batches of one partition never overlap in time: the next is claimed after the ack of the one before. Inside a
    // batch the order of arrival is the order of the records, which a stable sort keeps.
    deliveries.sort_by_key(|d| d.at);
    let mut violations = Vec::new();
    let mut partitions: Vec<Partition> = expected.iter().map(|_| Partition::default()).collect();
    let mut failed_acks = 0;
    for d in &deliveries {
        failed_acks += usize::from(!d.acked);
        match partitions.get_mut(d.partition) {
            Some(partition) if d.number < expected[d.partition] => violations.extend(partition.take(d)),
            _ => violations.push(format!("partition {}: {} was never pushed", d.partition, d.number)),
        }
    }
    for (number, (partition, expected)) in partitions.iter().zip(expected).enumerate() {
        let handled = partition.acked.len() as u64;
        if handled != *expected {
            violations.push(format!("partition {number}: {handled} of {expected} messages were handled"));
        }
    }
    let seen: usize = partitions.iter().map(|p| p.seen.len()).sum();
    if violations.is_empty() {
        Ok(Verdict { delivered: deliveries.len(), redelivered: deliveries.len() - seen, failed_acks })
    } else {
        Err(violations)
    }
}

/// What one partition has delivered so far.
#[derive(Default)]
struct Partition {
    seen: HashSet<u64>,
    acked: HashSet<u64>,
    /// Every number below it is acked.
    floor: u64,
    /// Arrival and number of the last delivery.
    last: Option<(u128, u64)>,
}

impl Partition {
    /// Takes the next delivery in the order of time and tells what is wrong with it.
    fn take(&mut self, d: &Delivery) -> Option<String> {
        // A new batch starts at the first message that is not acked; inside a batch the next one follows.
        let mut due = match self.last {
            Some((at, number)) if at == d.at => number + 1,
            _ => self.floor,
        };
        while self.acked.contains(&due) {
            due += 1;
        }
        let violation = if self.acked.contains(&d.number) {
            Some(format!("partition {}: {} came again after its ack", d.partition, d.number))
        } else if d.number != due {
            Some(format!("partition {}: {} came when {due} was due", d.partition, d.number))
        } else {
            None
        };
        self.last = Some((d.at, d.number));
        self.seen.insert(d.number);
        if d.acked {
            self.acked.insert(d.number);
        }
        while self.acked.contains(&self.floor) {
            self.floor += 1;
        }
        violation
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
        assert_eq!(
            check(deliveries, &expected),
            Ok(Verdict { delivered: 40, redelivered: 0, failed_acks: 0 })
        );
    }

    /// Deliveries in partition 0, given as (arrival, number, acked).
    fn partition(deliveries: &[(u128, u64, bool)]) -> Vec<Delivery> {
        deliveries.iter().map(|&(at, number, acked)| Delivery { at, partition: 0, number, acked }).collect()
    }

    #[test]
    fn a_failed_ack_explains_the_redelivery_of_its_batch() {
        let deliveries = partition(&[
            (1, 0, false),
            (1, 1, false),
            (1, 2, false),
            (2, 0, true),
            (2, 1, true),
            (2, 2, true),
        ]);
        assert_eq!(check(deliveries, &[3]), Ok(Verdict { delivered: 6, redelivered: 3, failed_acks: 3 }));
        // Only one ack of the batch failed: that message alone comes again.
        let deliveries = partition(&[(1, 0, true), (1, 1, false), (1, 2, true), (2, 1, true), (2, 3, true)]);
        assert_eq!(check(deliveries, &[4]), Ok(Verdict { delivered: 5, redelivered: 1, failed_acks: 1 }));
    }

    #[test]
    fn a_batch_that_leaves_out_a_failed_message_is_seen() {
        let deliveries = partition(&[(1, 0, false), (2, 1, true), (3, 0, true)]);
        assert_eq!(check(deliveries, &[2]).unwrap_err(), ["partition 0: 1 came when 0 was due"]);
    }

    #[test]
    fn a_redelivery_after_a_successful_ack_is_seen() {
        let deliveries = partition(&[(1, 0, true), (2, 0, true), (2, 1, true)]);
        assert_eq!(check(deliveries, &[2]).unwrap_err(), ["partition 0: 0 came again after its ack"]);
    }

    #[test]
    fn the_order_is_that_of_the_arrivals() {
        assert!(check(partition(&[(2, 1, true), (1, 0, true)]), &[2]).is_ok());
        assert!(check(partition(&[(1, 1, true), (2, 0, true)]), &[2]).is_err());
    }

    #[test]
    fn what_nobody_pushed_is_seen() {
        let (mut deliveries, expected) = run();
        deliveries.push(Delivery { at: 99, partition: 2, number: 0, acked: true });
        assert_eq!(check(deliveries, &expected).unwrap_err(), ["partition 2: 0 was never pushed"]);
        let (deliveries, _) = run();
        assert_eq!(check(deliveries, &[20, 19]).unwrap_err(), ["partition 1: 19 was never pushed"]);
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
