//! The door to write transactions: a slot of the arbiter first, a connection then.
//!
//! What takes a slot: flights of pushes, of claims and of acks, each in its own task, and the calls that write for
//! themselves: transactions, acks that are decided item by item, lease extensions. Reads, look-ups, walks, waits and
//! administration take none.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use queen_admission::{Clock, Gate, Lane, Limits, Options, PerLane, Refused, Slot, Snapshot, Warning};
use queen_storage::StorageError;
use queen_types::TenantId;

use crate::Broker;
use crate::supervise::Beat;

/// Unless the options say otherwise the budget never falls below this part of what the pool has beside its reserve.
const FLOOR_PART: (usize, usize) = (2, 3);
/// Nor below this, if the pool has as much.
const FLOOR_MIN: usize = 8;
/// A slot may wait so much longer than its bound: waits end at a tick.
const TICK_MIN: Duration = Duration::from_millis(100);

/// The gate of one broker, and when it ticks.
pub(crate) struct Admission {
    gate: Gate,
    clock: Clock,
    tick: Duration,
    trace: bool,
}

impl Admission {
    pub(crate) fn new(options: &Options, limits: Limits, trace: bool) -> Admission {
        let start = Instant::now();
        let clock: Clock = Arc::new(move || start.elapsed());
        Admission {
            gate: Gate::with_limits(limits, options.wait, clock.clone()),
            clock,
            tick: options.tick.max(TICK_MIN),
            trace,
        }
    }

    /// Waits for a slot, at most as long as the options say. A flight, which serves many tenants, asks for the default
    /// tenant.
    ///
    /// Dropping the future leaves the line.
    pub(crate) async fn enter(&self, lane: Lane, tenant: TenantId) -> Result<Slot, StorageError> {
        let slot = self.gate.acquire(lane, tenant).await.map_err(not_admitted)?;
        metrics::histogram!("queen_admission_wait_seconds", "lane" => lane.as_str()).record(slot.waited());
        Ok(slot)
    }

    /// What the arbiter shows of itself.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.gate.snapshot()
    }

    /// From now on nobody gets a slot, and nobody waits for one.
    pub(crate) fn close(&self) {
        self.gate.close();
    }

    /// Makes the task that ticks. It sleeps while no transaction is open and nobody waits for one.
    pub(crate) fn ticks(&self) -> impl FnMut(Beat) -> Ticking + Send + use<> {
        let (gate, clock, every, trace) = (self.gate.clone(), self.clock.clone(), self.tick, self.trace);
        move |beat| {
            let (gate, clock) = (gate.clone(), clock.clone());
            Box::pin(async move {
                loop {
                    beat.idle();
                    gate.busy().await;
                    beat.within(every);
                    tokio::time::sleep(every).await;
                    tick(&gate, clock(), trace);
                }
            })
        }
    }
}

/// One run of the task that ticks; it does not end.
type Ticking = Pin<Box<dyn Future<Output = ()> + Send>>;

fn tick(gate: &Gate, now: Duration, trace: bool) {
    let ticked = gate.tick(now, None);
    if !ticked.expired.is_empty() {
        tracing::warn!(target: "admission", refused = ticked.expired.len(), "no slot in time");
    }
    if trace {
        let snapshot = gate.snapshot();
        tracing::info!(
            target: "admission", budget = snapshot.budget, mode = %snapshot.mode, last = %snapshot.last,
            lanes = snapshot.lanes_text(), caps = ?ticked.caps, cycle = ?snapshot.trains.cycle, "tick"
        );
    }
}

fn not_admitted(refused: Refused) -> StorageError {
    StorageError::NotAdmitted(refused.to_string())
}

/// What is in force for a pool. Unless the options set the budget's floor, it is high: the budget then only bounds what a
/// pool could not bear, and ordinary load never waits. No cap of a lane falls below its share of that floor. A low floor
/// leaves both to the law of the arbiter.
pub(crate) fn limits(options: &Options) -> (Limits, Vec<Warning>) {
    let (derived, warnings) = options.limits();
    let open = derived.pool_size - derived.pool_reserve;
    let floor = (open * FLOOR_PART.0 / FLOOR_PART.1).max(FLOOR_MIN).min(derived.ceiling);
    let min = options.min.map_or(floor, |_| derived.min);
    let init = options.init.map_or(min, |set| set.clamp(min, derived.ceiling));
    let warnings = warnings
        .into_iter()
        .filter(|warning| !matches!(warning, Warning::InitMoved { .. }))
        .chain(options.init.filter(|set| *set != init).map(|set| Warning::InitMoved { set, in_force: init }))
        .collect();
    let share = |of: usize, lane| (of as f64 * derived.shares[lane]).ceil() as usize;
    let lane_floor =
        PerLane::from_fn(|lane| derived.lane_floor[lane].max(share(min, lane)).min(derived.ceiling));
    let lane_init = PerLane::from_fn(|lane| {
        derived.lane_init[lane].max(share(init, lane)).clamp(lane_floor[lane], derived.ceiling)
    });
    let nosync_budget = options.nosync_budget.clamp(min, derived.ceiling);
    (Limits { min, init, nosync_budget, lane_floor, lane_init, ..derived }, warnings)
}

impl Broker {
    /// What the arbiter of write transactions shows of itself.
    pub fn admission(&self) -> Snapshot {
        self.inner.admission.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_settings_the_budget_is_high_and_no_cap_falls_below_its_share() {
        for (pool_size, min, ceiling) in [(160, 96, 128), (60, 30, 45), (16, 8, 12), (4, 3, 3)] {
            let (limits, warnings) = limits(&Options { pool_size, ..Options::default() });
            assert_eq!((limits.min, limits.init, limits.ceiling), (min, min, ceiling), "{pool_size}");
            assert_eq!(warnings, []);
            for lane in Lane::ALL {
                assert!(limits.lane_floor[lane] <= limits.lane_init[lane]);
                assert!(limits.lane_init[lane] <= ceiling);
            }
        }
        let (limits, _) = limits(&Options::default());
        assert_eq!(limits.lane_floor, PerLane { push: 24, pop: 39, ack: 29, maint: 5 });
    }

    #[test]
    fn a_low_floor_leaves_the_law_its_range() {
        let (limits, warnings) = limits(&Options { min: Some(4), init: Some(8), ..Options::default() });
        assert_eq!((limits.min, limits.init, limits.ceiling, warnings), (4, 8, 128, vec![]));
        assert_eq!(limits.lane_floor, PerLane { push: 1, pop: 2, ack: 2, maint: 2 });
    }

    #[test]
    fn a_value_that_is_not_in_force_is_named() {
        let options = Options { pool_size: 20, min: Some(500), init: Some(1), ..Options::default() };
        let (limits, warnings) = limits(&options);
        assert_eq!((limits.min, limits.init), (15, 15));
        assert_eq!(
            warnings,
            [Warning::MinLowered { set: 500, in_force: 15 }, Warning::InitMoved { set: 1, in_force: 15 }]
        );
    }
}
