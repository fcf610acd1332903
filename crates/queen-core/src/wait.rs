//! Parked pops and what wakes them.
//!
//! A pop arms its ticket, then looks for work, then waits: a wake between the look and the wait is not lost. Tickets are
//! served in the order in which their pops first came; a pop that wakes and finds nothing keeps its place. A ticket
//! that was woken and goes away without having looked passes the wake on.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use queen_types::{Group, PartitionName, QueueId, QueueName, TenantId};
use tokio::sync::Notify;

type QueueKey = (TenantId, QueueName);

/// What a parked pop waits for.
#[derive(Debug, Clone)]
pub(crate) enum Interest {
    /// Any partition of a queue.
    Queue,
    /// One partition.
    Partition(PartitionName),
}

/// A parked pop.
struct Waiter {
    notify: Arc<Notify>,
    woken: bool,
    interest: Interest,
}

#[derive(Default)]
struct Line {
    queue: Option<QueueId>,
    waiters: BTreeMap<u64, Waiter>,
}

#[derive(Default)]
struct State {
    /// Lines by queue, then group.
    lines: HashMap<QueueKey, HashMap<Group, Line>>,
    /// Discovery pops by tenant: what they match is known only to the database.
    discovery: HashMap<TenantId, BTreeMap<u64, Waiter>>,
}

#[derive(Default)]
pub(crate) struct Gates {
    state: Mutex<State>,
    tickets: AtomicU64,
    /// Something parked: the floor may have to run.
    pub(crate) busy: Notify,
}

/// Where a ticket stands in line.
#[derive(Debug, Clone)]
enum Place {
    Line(QueueKey, Group),
    Discovery(TenantId),
}

/// A pop's place in line. Dropping it leaves the line.
pub(crate) struct Ticket<'g> {
    gates: &'g Gates,
    number: u64,
    place: Place,
    notify: Arc<Notify>,
    /// The pop looked for work after its last wake.
    looked: bool,
}

/// A pair that somebody waits for.
pub(crate) struct Waiting {
    pub(crate) tenant: TenantId,
    pub(crate) queue_name: QueueName,
    pub(crate) queue: QueueId,
    pub(crate) group: Group,
}

impl Gates {
    /// A place in the line of (queue, group).
    pub(crate) fn stand(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        id: Option<QueueId>,
        group: &Group,
        interest: Interest,
    ) -> Ticket<'_> {
        let place = Place::Line((tenant, queue.clone()), group.clone());
        let ticket = self.ticket(place);
        let mut state = self.state.lock();
        let line = state.lines.entry((tenant, queue.clone())).or_default().entry(group.clone()).or_default();
        line.queue = id.or(line.queue);
        line.waiters.insert(ticket.number, Waiter { notify: ticket.notify.clone(), woken: false, interest });
        drop(state);
        self.busy.notify_one();
        ticket
    }

    /// A place among the tenant's discovery pops.
    pub(crate) fn stand_for_discovery(&self, tenant: TenantId) -> Ticket<'_> {
        let ticket = self.ticket(Place::Discovery(tenant));
        let waiter = Waiter { notify: ticket.notify.clone(), woken: false, interest: Interest::Queue };
        self.state.lock().discovery.entry(tenant).or_default().insert(ticket.number, waiter);
        self.busy.notify_one();
        ticket
    }

    fn ticket(&self, place: Place) -> Ticket<'_> {
        let number = self.tickets.fetch_add(1, Ordering::Relaxed);
        Ticket { gates: self, number, place, notify: Arc::new(Notify::new()), looked: true }
    }

    /// Messages landed in partitions of a queue: every group gets `count` of its longest parked pops woken; pops of
    /// partitions that `matches`, and discovery pops, all wake.
    pub(crate) fn landed(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        count: usize,
        matches: impl Fn(&PartitionName) -> bool,
    ) {
        let mut state = self.state.lock();
        if state.lines.is_empty() && state.discovery.is_empty() {
            return;
        }
        if let Some(groups) = state.lines.get_mut(&(tenant, queue.clone())) {
            for line in groups.values_mut() {
                wake_line(line, count, &matches);
            }
        }
        wake_all(state.discovery.get_mut(&tenant));
    }

    /// A lease of a group went: wakes its pops of single partitions, and discovery pops.
    pub(crate) fn claimable_to_others(&self, tenant: TenantId, queue: &QueueName, group: &Group) {
        let mut state = self.state.lock();
        if state.lines.is_empty() && state.discovery.is_empty() {
            return;
        }
        if let Some(line) =
            state.lines.get_mut(&(tenant, queue.clone())).and_then(|groups| groups.get_mut(group))
        {
            wake_line(line, 0, |_| true);
        }
        wake_all(state.discovery.get_mut(&tenant));
    }

    /// Whether pops of a group are parked on a queue.
    pub(crate) fn is_waited_for(&self, tenant: TenantId, queue: &QueueName, group: &Group) -> bool {
        let state = self.state.lock();
        state.lines.get(&(tenant, queue.clone())).is_some_and(|groups| groups.contains_key(group))
    }

    /// Whether pops are parked on a queue.
    pub(crate) fn is_waited_for_at_all(&self, tenant: TenantId, queue: &QueueName) -> bool {
        self.state.lock().lines.contains_key(&(tenant, queue.clone()))
    }

    /// A group can claim partitions of a queue again: a lease went, a cursor moved, or the floor saw work.
    pub(crate) fn claimable(&self, tenant: TenantId, queue: &QueueName, group: &Group, partitions: usize) {
        let mut state = self.state.lock();
        if let Some(line) =
            state.lines.get_mut(&(tenant, queue.clone())).and_then(|groups| groups.get_mut(group))
        {
            wake_line(line, partitions, |_| true);
        }
    }

    /// Wakes every pop.
    pub(crate) fn wake_everybody(&self) {
        let mut state = self.state.lock();
        for line in state.lines.values_mut().flat_map(HashMap::values_mut) {
            wake_line(line, usize::MAX, |_| true);
        }
        for waiters in state.discovery.values_mut() {
            wake_all(Some(waiters));
        }
    }

    /// Wakes every pop of a queue, and the tenant's discovery pops: its options changed.
    pub(crate) fn wake_everybody_of(&self, tenant: TenantId, queue: &QueueName) {
        let mut state = self.state.lock();
        for line in state.lines.get_mut(&(tenant, queue.clone())).into_iter().flat_map(HashMap::values_mut) {
            wake_line(line, usize::MAX, |_| true);
        }
        wake_all(state.discovery.get_mut(&tenant));
    }

    /// Wakes the discovery pops of every tenant; the floor's part for them.
    pub(crate) fn wake_discovery(&self) {
        for waiters in self.state.lock().discovery.values_mut() {
            wake_all(Some(waiters));
        }
    }

    /// Whether nothing is parked.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.lines.is_empty() && state.discovery.is_empty()
    }

    /// The (queue, group) pairs that pops are parked for.
    pub(crate) fn waiting(&self) -> Vec<Waiting> {
        let state = self.state.lock();
        let pairs = state
            .lines
            .iter()
            .flat_map(|(key, groups)| groups.iter().map(move |(group, line)| (key, group, line)));
        pairs
            .filter_map(|((tenant, queue), group, line)| {
                Some(Waiting {
                    tenant: *tenant,
                    queue_name: queue.clone(),
                    queue: line.queue?,
                    group: group.clone(),
                })
            })
            .collect()
    }

    /// Parked pops by tenant and queue; discovery pops stand under the empty name.
    pub(crate) fn parked_by_tenant(&self) -> Vec<(TenantId, String, usize)> {
        let state = self.state.lock();
        let lines = state.lines.iter().map(|((tenant, queue), groups)| {
            (*tenant, queue.as_str().to_owned(), groups.values().map(|line| line.waiters.len()).sum())
        });
        let discovery = state.discovery.iter().map(|(tenant, line)| (*tenant, String::new(), line.len()));
        lines.chain(discovery).filter(|(_, _, parked)| *parked > 0).collect()
    }

    /// Parked pops of a tenant.
    pub(crate) fn parked_of(&self, tenant: TenantId) -> usize {
        self.parked_by_tenant().iter().filter(|(of, ..)| *of == tenant).map(|(_, _, parked)| parked).sum()
    }

    pub(crate) fn parked(&self) -> Vec<(String, usize)> {
        let state = self.state.lock();
        let mut parked: Vec<(String, usize)> = state
            .lines
            .iter()
            .map(|((_, queue), groups)| {
                (queue.as_str().to_owned(), groups.values().map(|line| line.waiters.len()).sum())
            })
            .collect();
        let discovery: usize = state.discovery.values().map(BTreeMap::len).sum();
        if discovery > 0 {
            parked.push((String::new(), discovery));
        }
        parked
    }
}

/// Wakes up to `count` pops of any partition, longest parked first, and all that wait for a partition that `matches`.
fn wake_line(line: &mut Line, count: usize, matches: impl Fn(&PartitionName) -> bool) {
    let mut left = count;
    for waiter in line.waiters.values_mut().filter(|w| !w.woken) {
        let wake = match &waiter.interest {
            Interest::Partition(name) => matches(name),
            Interest::Queue => {
                let wake = left > 0;
                left = left.saturating_sub(1);
                wake
            }
        };
        if wake {
            waiter.woken = true;
            waiter.notify.notify_one();
        }
    }
}

fn wake_all(waiters: Option<&mut BTreeMap<u64, Waiter>>) {
    for waiter in waiters.into_iter().flat_map(BTreeMap::values_mut).filter(|w| !w.woken) {
        waiter.woken = true;
        waiter.notify.notify_one();
    }
}

impl Ticket<'_> {
    /// Says that the pop is about to look: a wake from here on is for its next look.
    pub(crate) fn arm(&mut self) {
        self.looked = true;
        self.with(|waiter| waiter.woken = false);
    }

    /// Waits for a wake.
    pub(crate) async fn woken(&mut self) {
        self.notify.notified().await;
        self.looked = false;
    }

    fn with(&self, change: impl FnOnce(&mut Waiter)) {
        let mut state = self.gates.state.lock();
        let waiter = match &self.place {
            Place::Line(key, group) => state
                .lines
                .get_mut(key)
                .and_then(|g| g.get_mut(group))
                .and_then(|l| l.waiters.get_mut(&self.number)),
            Place::Discovery(tenant) => state.discovery.get_mut(tenant).and_then(|w| w.get_mut(&self.number)),
        };
        if let Some(waiter) = waiter {
            change(waiter);
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.gates.state.lock();
        match &self.place {
            Place::Line(key, group) => {
                let Some(groups) = state.lines.get_mut(key) else { return };
                let Some(line) = groups.get_mut(group) else { return };
                let left = line.waiters.remove(&self.number);
                if left.is_some_and(|w| w.woken && matches!(w.interest, Interest::Queue)) || !self.looked {
                    wake_line(line, 1, |_| false);
                }
                if line.waiters.is_empty() {
                    groups.remove(group);
                }
                if groups.is_empty() {
                    state.lines.remove(key);
                }
            }
            Place::Discovery(tenant) => {
                if let Some(waiters) = state.discovery.get_mut(tenant) {
                    waiters.remove(&self.number);
                    if waiters.is_empty() {
                        state.discovery.remove(tenant);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use queen_types::Uuid;

    const T: TenantId = TenantId::DEFAULT;

    fn q() -> QueueName {
        QueueName::new("q").unwrap()
    }

    fn p(name: &str) -> PartitionName {
        PartitionName::new(name).unwrap()
    }

    fn stand(gates: &Gates) -> Ticket<'_> {
        gates.stand(T, &q(), Some(QueueId(Uuid::nil())), &Group::queue_mode(), Interest::Queue)
    }

    fn landed(gates: &Gates, names: &[&str]) {
        gates.landed(T, &q(), names.len(), |name| names.contains(&name.as_str()));
    }

    fn is_woken(ticket: &mut Ticket<'_>) -> bool {
        ticket.woken().now_or_never().is_some()
    }

    #[test]
    fn the_longest_parked_wakes_first_and_only_as_many_as_partitions() {
        let gates = Gates::default();
        let (mut a, mut b, mut c) = (stand(&gates), stand(&gates), stand(&gates));
        landed(&gates, &["1", "2"]);
        assert!(is_woken(&mut a) && is_woken(&mut b) && !is_woken(&mut c));
        landed(&gates, &["1"]);
        assert!(is_woken(&mut c), "those already woken do not swallow a second wake");
    }

    #[test]
    fn a_wake_between_arming_and_waiting_is_kept() {
        let gates = Gates::default();
        let mut a = stand(&gates);
        a.arm();
        landed(&gates, &["1"]);
        assert!(is_woken(&mut a));
        a.arm();
        assert!(!is_woken(&mut a));
    }

    #[test]
    fn a_woken_pop_that_goes_away_passes_the_wake_on() {
        let gates = Gates::default();
        let (a, mut b) = (stand(&gates), stand(&gates));
        landed(&gates, &["1"]);
        drop(a);
        assert!(is_woken(&mut b));
    }

    #[test]
    fn a_pop_that_looked_again_keeps_its_place() {
        let gates = Gates::default();
        let (mut a, mut b) = (stand(&gates), stand(&gates));
        landed(&gates, &["1"]);
        assert!(is_woken(&mut a));
        a.arm();
        landed(&gates, &["1"]);
        assert!(is_woken(&mut a) && !is_woken(&mut b));
    }

    #[test]
    fn groups_and_partitions_are_told_apart() {
        let gates = Gates::default();
        let other = Group::new("other").unwrap();
        let mut mine = stand(&gates);
        let mut theirs = gates.stand(T, &q(), None, &other, Interest::Queue);
        let mut pinned = gates.stand(T, &q(), None, &other, Interest::Partition(p("x")));
        gates.claimable(T, &q(), &Group::queue_mode(), 1);
        assert!(is_woken(&mut mine) && !is_woken(&mut theirs) && !is_woken(&mut pinned));
        landed(&gates, &["y"]);
        assert!(is_woken(&mut theirs) && !is_woken(&mut pinned));
        landed(&gates, &["x"]);
        assert!(is_woken(&mut pinned));
    }

    #[test]
    fn nothing_is_left_behind() {
        let gates = Gates::default();
        drop((stand(&gates), gates.stand_for_discovery(T)));
        let state = gates.state.lock();
        assert!(state.lines.is_empty() && state.discovery.is_empty());
    }
}
