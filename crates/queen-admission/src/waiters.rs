//! Who waits for a slot of one lane, and who is next.
//!
//! Every request asks for one slot, so a deficit round over tenants with a quantum of one slot is a rotation: the next
//! slot goes to the tenant whose turn it is, to its oldest request. With one tenant that is plain first come, first
//! served; with many, no backlog of one delays the others by more than one slot each.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use queen_types::TenantId;

/// Names one waiting request. Never used twice by one arbiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub(crate) u64);

/// A request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) since: Duration,
    /// When it is refused at the latest.
    pub(crate) deadline: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// The requests of each tenant in the order of their ids, which is that of their arrival. No entry is empty.
    tenants: BTreeMap<TenantId, BTreeMap<WaiterId, Waiter>>,
    /// The tenants of `tenants`, each once, the next to be served first.
    turns: VecDeque<TenantId>,
    len: usize,
    /// No request is due before this.
    due: Option<Duration>,
}

impl Waiters {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn add(&mut self, tenant: TenantId, id: WaiterId, waiter: Waiter) {
        let queue = self.tenants.entry(tenant).or_insert_with(|| {
            self.turns.push_back(tenant);
            BTreeMap::new()
        });
        queue.insert(id, waiter);
        self.len += 1;
        self.due = Some(self.due.map_or(waiter.deadline, |due| due.min(waiter.deadline)));
    }

    /// Takes the request whose turn it is; its tenant goes to the end of the rotation.
    pub(crate) fn take(&mut self) -> Option<(WaiterId, Waiter)> {
        let tenant = self.turns.pop_front()?;
        let queue = self.tenants.get_mut(&tenant)?;
        let first = queue.pop_first()?;
        if queue.is_empty() {
            self.tenants.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        self.len -= 1;
        Some(first)
    }

    /// Forgets a request. False if it does not wait here.
    pub(crate) fn remove(&mut self, tenant: TenantId, id: WaiterId) -> bool {
        let Some(queue) = self.tenants.get_mut(&tenant) else { return false };
        if queue.remove(&id).is_none() {
            return false;
        }
        if queue.is_empty() {
            self.tenants.remove(&tenant);
            self.turns.retain(|other| *other != tenant);
        }
        self.len -= 1;
        true
    }

    /// Takes every request whose deadline is reached, oldest first.
    pub(crate) fn take_due(&mut self, now: Duration) -> Vec<(WaiterId, Waiter)> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        let mut taken = Vec::new();
        for queue in self.tenants.values_mut() {
            queue.retain(|id, waiter| {
                let is_due = waiter.deadline <= now;
                if is_due {
                    taken.push((*id, *waiter));
                }
                !is_due
            });
        }
        self.tenants.retain(|_, queue| !queue.is_empty());
        self.turns.retain(|tenant| self.tenants.contains_key(tenant));
        self.len -= taken.len();
        self.due = self.tenants.values().flat_map(BTreeMap::values).map(|waiter| waiter.deadline).min();
        taken.sort_by_key(|(id, _)| *id);
        taken
    }

    /// Takes everybody.
    pub(crate) fn take_all(&mut self) -> Vec<(WaiterId, Waiter)> {
        let all = std::mem::take(self);
        all.tenants.into_values().flatten().collect()
    }

    /// Since when the oldest request waits.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        self.tenants
            .values()
            .filter_map(|queue| queue.first_key_value())
            .map(|(_, waiter)| waiter.since)
            .min()
    }
}

#[cfg(test)]
mod tests {
    use queen_types::Uuid;

    use super::*;

    fn tenant(number: u128) -> TenantId {
        TenantId(Uuid::from_u128(number))
    }

    fn waiter(since: u64, deadline: u64) -> Waiter {
        Waiter { since: Duration::from_millis(since), deadline: Duration::from_millis(deadline) }
    }

    fn waiting(entries: &[(u128, u64)]) -> Waiters {
        let mut waiters = Waiters::default();
        for (tenant_number, id) in entries {
            waiters.add(tenant(*tenant_number), WaiterId(*id), waiter(*id, 1000 + id));
        }
        waiters
    }

    fn order(mut waiters: Waiters) -> Vec<u64> {
        std::iter::from_fn(|| waiters.take()).map(|(id, _)| id.0).collect()
    }

    #[test]
    fn one_tenant_is_served_in_the_order_of_arrival() {
        assert_eq!(order(waiting(&[(1, 1), (1, 2), (1, 3)])), [1, 2, 3]);
    }

    #[test]
    fn a_backlog_of_one_tenant_does_not_delay_another() {
        assert_eq!(
            order(waiting(&[(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (3, 6), (2, 7)])),
            [1, 5, 6, 2, 7, 3, 4]
        );
    }

    #[test]
    fn a_tenant_that_left_the_rotation_comes_back_once() {
        let mut waiters = waiting(&[(1, 1), (2, 2), (2, 3)]);
        assert!(waiters.remove(tenant(1), WaiterId(1)));
        assert!(!waiters.remove(tenant(1), WaiterId(1)));
        waiters.add(tenant(1), WaiterId(4), waiter(4, 1004));
        waiters.add(tenant(1), WaiterId(5), waiter(5, 1005));
        assert_eq!(waiters.len(), 4);
        assert_eq!(order(waiters), [2, 4, 3, 5]);
    }

    #[test]
    fn who_is_due_goes_whatever_the_tenant() {
        let mut waiters = waiting(&[(1, 1), (2, 2), (1, 3), (2, 4)]);
        assert_eq!(waiters.take_due(Duration::from_millis(1000)), []);
        let due: Vec<u64> =
            waiters.take_due(Duration::from_millis(1002)).into_iter().map(|(id, _)| id.0).collect();
        assert_eq!(due, [1, 2]);
        assert_eq!((waiters.len(), waiters.oldest()), (2, Some(Duration::from_millis(3))));
        assert_eq!(order(waiters), [3, 4]);
    }
}
