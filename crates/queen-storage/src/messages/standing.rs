//! Where groups stand on partitions, and what that makes of a message.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use queen_pg::{Conn, PgTimestamp};
use queen_types::{Group, MessageStatus, Offset, PartitionId, Timestamp, Uuid};

use crate::admin::row::column;
use crate::{StorageError, sql};

/// One group on one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStanding {
    /// The group.
    pub group: String,
    /// Everything at or below is done.
    pub committed: Offset,
    /// End of the live lease, and when it expires.
    pub leased: Option<(Offset, Timestamp)>,
}

impl GroupStanding {
    fn is_queue_mode(&self) -> bool {
        self.group == Group::QUEUE_MODE
    }

    fn has_done(&self, at: Offset) -> bool {
        at <= self.committed
    }

    /// When the live lease that covers a message ends.
    fn holds(&self, at: Offset) -> Option<Timestamp> {
        self.leased.filter(|(end, _)| at > self.committed && at <= *end).map(|(_, until)| until)
    }
}

/// Which kinds of consumers partitions have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    /// Somebody consumes without a group.
    pub queue_mode: bool,
    /// Number of named groups.
    pub groups: usize,
}

/// What a message is to its consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) status: MessageStatus,
    /// To those who consume without a group.
    pub(super) queue_status: MessageStatus,
    /// Named groups that are done with it, of how many.
    pub(super) consumed_by: usize,
    pub(super) groups: usize,
    pub(super) leased_until: Option<Timestamp>,
}

/// The groups of some partitions, and their dead letters.
#[derive(Debug, Default)]
pub(super) struct Standing {
    groups: BTreeMap<PartitionId, Vec<GroupStanding>>,
    dead: HashSet<(PartitionId, Offset)>,
}

impl Standing {
    /// Reads them; `ranges` says of which offsets dead letters matter.
    pub(super) async fn read(
        conn: &mut Conn,
        ranges: &BTreeMap<PartitionId, (Offset, Offset)>,
    ) -> Result<Standing, StorageError> {
        let partitions: Vec<Uuid> = ranges.keys().map(|partition| partition.0).collect();
        let low: Vec<Offset> = ranges.values().map(|(low, _)| *low).collect();
        let high: Vec<Offset> = ranges.values().map(|(_, high)| *high).collect();
        let mut standing = Standing::default();
        for row in conn.query(sql::MESSAGES_STANDING, &[&partitions]).await? {
            let until: Option<PgTimestamp> = column(&row, "leased_until")?;
            let end: Option<Offset> = column(&row, "leased_to")?;
            let partition = PartitionId(column(&row, "partition_id")?);
            standing.groups.entry(partition).or_default().push(GroupStanding {
                group: column(&row, "consumer_group")?,
                committed: column(&row, "committed")?,
                leased: end.zip(until.map(|until| until.0)),
            });
        }
        for row in conn.query(sql::MESSAGES_DEAD, &[&partitions, &low, &high]).await? {
            standing.dead.insert((PartitionId(column(&row, "partition_id")?), column(&row, "at")?));
        }
        Ok(standing)
    }

    /// The groups of a partition, by name.
    pub(super) fn of(&self, partition: PartitionId) -> &[GroupStanding] {
        self.groups.get(&partition).map_or(&[], Vec::as_slice)
    }

    /// The kinds of consumers over some partitions.
    pub(super) fn mode(&self, partitions: impl Iterator<Item = PartitionId>) -> Mode {
        let mut names = BTreeSet::new();
        for partition in partitions {
            names.extend(self.of(partition).iter().map(|group| group.group.as_str()));
        }
        let queue_mode = names.remove(Group::QUEUE_MODE);
        Mode { queue_mode, groups: names.len() }
    }

    pub(super) fn judge(&self, partition: PartitionId, at: Offset) -> Judged {
        let (queue, named): (Vec<_>, Vec<_>) =
            self.of(partition).iter().partition(|group| group.is_queue_mode());
        let status = |groups: &[&GroupStanding]| {
            if !groups.is_empty() && groups.iter().all(|group| group.has_done(at)) {
                MessageStatus::Completed
            } else if groups.iter().any(|group| group.holds(at).is_some()) {
                MessageStatus::Processing
            } else {
                MessageStatus::Pending
            }
        };
        let queue_status = status(&queue);
        // Named groups decide; those without a group only where there is none.
        let alive = match (named.is_empty(), status(&named)) {
            (true, _) => queue_status,
            (false, MessageStatus::Pending) if queue_status == MessageStatus::Processing => queue_status,
            (false, status) => status,
        };
        Judged {
            status: if self.dead.contains(&(partition, at)) { MessageStatus::DeadLetter } else { alive },
            queue_status,
            consumed_by: named.iter().filter(|group| group.has_done(at)).count(),
            groups: named.len(),
            leased_until: self.of(partition).iter().filter_map(|group| group.holds(at)).max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, committed: Offset, leased: Option<Offset>) -> GroupStanding {
        let leased = leased.map(|end| (end, Timestamp(7)));
        GroupStanding { group: name.to_owned(), committed, leased }
    }

    #[test]
    fn what_a_message_is() {
        use MessageStatus::{Completed, DeadLetter, Pending, Processing};
        let partition = PartitionId(Uuid::from_u128(1));
        let judge = |groups: Vec<GroupStanding>, dead: bool| {
            let mut standing = Standing::default();
            standing.groups.insert(partition, groups);
            if dead {
                standing.dead.insert((partition, 5));
            }
            standing.judge(partition, 5)
        };
        let queue = Group::QUEUE_MODE;
        for (groups, dead, status, queue_status) in [
            (vec![], false, Pending, Pending),
            (vec![group(queue, 5, None)], false, Completed, Completed),
            (vec![group(queue, 4, Some(5))], false, Processing, Processing),
            (vec![group("a", 5, None), group("b", 4, None)], false, Pending, Pending),
            (vec![group("a", 5, None), group("b", 4, Some(6))], false, Processing, Pending),
            (vec![group("a", 5, None), group(queue, -1, None)], false, Completed, Pending),
            (vec![group("a", 3, None), group(queue, 9, None)], false, Pending, Completed),
            (vec![group("a", 4, Some(4))], false, Pending, Pending),
            (vec![group("a", 5, None)], true, DeadLetter, Pending),
        ] {
            let judged = judge(groups.clone(), dead);
            assert_eq!((judged.status, judged.queue_status), (status, queue_status), "{groups:?}");
        }
        let judged = judge(vec![group("a", 5, None), group("b", 1, Some(5))], false);
        assert_eq!((judged.consumed_by, judged.groups, judged.leased_until), (1, 2, Some(Timestamp(7))));
    }
}
