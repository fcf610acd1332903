//! What can be set, within which ranges, and what follows from it for a pool of a given size.

use std::fmt;
use std::time::Duration;

use crate::lane::{Lane, PerLane};

/// Settings of the arbiter. The defaults let it begin with few transactions and find out how many are best.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Connections of the pool (`DB_POOL_SIZE`), at least 1. Below 4 the limits count on 4.
    pub pool_size: usize,
    /// Connections that the budget leaves alone, for reads and unmetered writes (`QUEEN_ADMISSION_POOL_RESERVE`).
    /// Unset: 16, and at most a quarter of the pool.
    pub pool_reserve: Option<usize>,
    /// The budget never falls below this (`QUEEN_ADMISSION_MIN`), at least 1. Unset: 4. It bounds the sum of the
    /// lanes; how many of these a lane uses is found by its own probes.
    pub min: Option<usize>,
    /// The budget at the start (`QUEEN_ADMISSION_INIT`), at least 1. Unset: 8.
    pub init: Option<usize>,
    /// The budget never rises above this (`QUEEN_ADMISSION_MAX`), at least 1, nor above what the pool has beside its
    /// reserve.
    pub max: usize,
    /// Completions that are closer than this belong to one commit train (`QUEEN_ADMISSION_TRAIN_GAP_US`), at least
    /// 50 µs.
    pub train_gap: Duration,
    /// How often the owner should tick while something is pending (`QUEEN_ADMISSION_TICK_MS`), at least 100 ms.
    pub tick: Duration,
    /// Part of the budget that a lane is served up to before the wake order counts, each from 0 to 1
    /// (`QUEEN_ADMISSION_SHARE_PUSH`, `_POP`, `_ACK`, `_MAINT`).
    pub shares: PerLane<f64>,
    /// The budget while commits look as if nothing were synced (`QUEEN_ADMISSION_NOSYNC_BUDGET`), at least 1.
    pub nosync_budget: usize,
    /// Workers of retention (`RETENTION_PARALLELISM`), 1 to 16: one more than these may hold slots of the
    /// maintenance lane at the start.
    pub retention_parallelism: usize,
    /// The longest wait for a slot (`QUEEN_ADMISSION_WAIT_MS`), unless the caller of the gate names another.
    pub wait: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            pool_size: 160,
            pool_reserve: None,
            min: None,
            init: None,
            max: 128,
            train_gap: Duration::from_micros(300),
            tick: Duration::from_millis(500),
            shares: PerLane { push: 0.25, pop: 0.40, ack: 0.30, maint: 0.05 },
            nosync_budget: 64,
            retention_parallelism: 1,
            wait: Duration::from_secs(30),
        }
    }
}

/// The smallest pool that the limits count on: the leader of a retention cycle and its worker need two connections at
/// once, and something has to be left for everybody else.
const POOL_MIN: usize = 4;
const RESERVE_DEFAULT_MAX: usize = 16;
const MIN_DEFAULT: usize = 4;
const INIT_DEFAULT: usize = 8;
const PARALLELISM_MAX: usize = 16;

/// What is in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Connections that the pool has to have: [`Options::pool_size`], but at least 4.
    pub pool_size: usize,
    /// Connections that the budget leaves alone.
    pub pool_reserve: usize,
    /// The budget's floor, from 1 to the ceiling.
    pub min: usize,
    /// The budget at the start, from the floor to the ceiling.
    pub init: usize,
    /// The budget's ceiling, at most the pool without its reserve.
    pub ceiling: usize,
    /// The budget while nothing is synced, from the floor to the ceiling.
    pub nosync_budget: usize,
    /// No cap of a lane falls below this; at most the ceiling.
    pub lane_floor: PerLane<usize>,
    /// Cap of each lane at the start, from its floor to the ceiling.
    pub lane_init: PerLane<usize>,
    /// Part of the budget that a lane is served up to first, from 0 to 1.
    pub shares: PerLane<f64>,
    /// Workers of retention, 1 to 16.
    pub retention_parallelism: usize,
    /// As [`Options::train_gap`], at least 50 µs.
    pub train_gap: Duration,
}

/// A value that cannot be as it was set, and what is in force in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// The pool is too small to work at all.
    PoolRaised {
        /// As set.
        set: usize,
        /// In force.
        in_force: usize,
    },
    /// The reserve would leave nothing to admit.
    ReserveLowered {
        /// As set.
        set: usize,
        /// In force.
        in_force: usize,
    },
    /// The floor of the budget is above its ceiling.
    MinLowered {
        /// As set.
        set: usize,
        /// In force.
        in_force: usize,
    },
    /// The budget at the start is outside its floor and ceiling.
    InitMoved {
        /// As set.
        set: usize,
        /// In force.
        in_force: usize,
    },
    /// More workers of retention than anybody may have.
    ParallelismLowered {
        /// As set.
        set: usize,
        /// In force.
        in_force: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, set, in_force, why) = match self {
            Warning::PoolRaised { set, in_force } => {
                ("DB_POOL_SIZE", set, in_force, "a cycle of retention needs two connections at once")
            }
            Warning::ReserveLowered { set, in_force } => (
                "QUEEN_ADMISSION_POOL_RESERVE",
                set,
                in_force,
                "the pool must keep two connections for what is admitted",
            ),
            Warning::MinLowered { set, in_force } => (
                "QUEEN_ADMISSION_MIN",
                set,
                in_force,
                "it cannot exceed QUEEN_ADMISSION_MAX, nor the pool without its reserve",
            ),
            Warning::InitMoved { set, in_force } => (
                "QUEEN_ADMISSION_INIT",
                set,
                in_force,
                "it has to lie between QUEEN_ADMISSION_MIN and the ceiling",
            ),
            Warning::ParallelismLowered { set, in_force } => {
                ("RETENTION_PARALLELISM", set, in_force, "16 is the most")
            }
        };
        write!(f, "{name} is {set}, {in_force} is in force: {why}")
    }
}

/// A value outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{field} is {value}: allowed {allowed}")]
pub struct RangeError {
    /// The field of [`Options`].
    pub field: &'static str,
    /// What it was.
    pub value: String,
    /// What it may be.
    pub allowed: &'static str,
}

impl Options {
    /// Every value outside its range. [`Options::limits`] moves them to the nearest that is allowed, so that a caller
    /// who checked elsewhere need not ask.
    pub fn check(&self) -> Vec<RangeError> {
        let mut errors = Vec::new();
        let mut check = |is_allowed: bool, field, value: String, allowed| {
            if !is_allowed {
                errors.push(RangeError { field, value, allowed });
            }
        };
        let counts = [
            ("pool_size", Some(self.pool_size)),
            ("min", self.min),
            ("init", self.init),
            ("max", Some(self.max)),
            ("nosync_budget", Some(self.nosync_budget)),
            ("retention_parallelism", Some(self.retention_parallelism)),
        ];
        for (field, count) in counts {
            check(count != Some(0), field, "0".to_owned(), "1 or more");
        }
        check(
            self.train_gap >= Duration::from_micros(50),
            "train_gap",
            format!("{:?}", self.train_gap),
            "50 µs or more",
        );
        check(self.tick >= Duration::from_millis(100), "tick", format!("{:?}", self.tick), "100 ms or more");
        for (lane, share) in self.shares.iter() {
            let field = match lane {
                Lane::Push => "shares.push",
                Lane::Pop => "shares.pop",
                Lane::Ack => "shares.ack",
                Lane::Maint => "shares.maint",
            };
            check((0.0..=1.0).contains(share), field, share.to_string(), "0 to 1");
        }
        errors
    }

    /// What is in force, and what had to be changed to get there.
    pub fn limits(&self) -> (Limits, Vec<Warning>) {
        let mut warnings = Vec::new();
        let pool_size = self.pool_size.max(POOL_MIN);
        if pool_size != self.pool_size {
            warnings.push(Warning::PoolRaised { set: self.pool_size, in_force: pool_size });
        }
        let pool_reserve = match self.pool_reserve {
            None => RESERVE_DEFAULT_MAX.min(pool_size / 4),
            Some(set) => {
                let in_force = set.min(pool_size - 2);
                warnings.extend((in_force != set).then_some(Warning::ReserveLowered { set, in_force }));
                in_force
            }
        };
        let ceiling = self.max.clamp(1, pool_size - pool_reserve);
        let min = self.min.unwrap_or(MIN_DEFAULT).clamp(1, ceiling);
        warnings.extend(
            self.min.filter(|set| *set > ceiling).map(|set| Warning::MinLowered { set, in_force: min }),
        );
        let init = self.init.unwrap_or(INIT_DEFAULT).clamp(min, ceiling);
        warnings.extend(
            self.init.filter(|set| *set != init).map(|set| Warning::InitMoved { set, in_force: init }),
        );
        let retention_parallelism = self.retention_parallelism.clamp(1, PARALLELISM_MAX);
        if self.retention_parallelism > PARALLELISM_MAX {
            let set = self.retention_parallelism;
            warnings.push(Warning::ParallelismLowered { set, in_force: retention_parallelism });
        }
        let floors = PerLane { push: 1, pop: 1, ack: 1, maint: 2 };
        let inits = PerLane { push: 2, pop: 4, ack: 2, maint: retention_parallelism + 1 };
        let lane_floor = PerLane::from_fn(|lane| floors[lane].min(ceiling));
        let limits = Limits {
            pool_size,
            pool_reserve,
            min,
            init,
            ceiling,
            nosync_budget: self.nosync_budget.clamp(min, ceiling),
            lane_floor,
            lane_init: PerLane::from_fn(|lane| inits[lane].clamp(lane_floor[lane], ceiling)),
            shares: PerLane::from_fn(|lane| self.shares[lane].clamp(0.0, 1.0)),
            retention_parallelism,
            train_gap: self.train_gap.max(Duration::from_micros(50)),
        };
        (limits, warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(change: impl FnOnce(&mut Options)) -> (Limits, Vec<Warning>) {
        let mut options = Options::default();
        change(&mut options);
        options.limits()
    }

    #[test]
    fn the_defaults_begin_low_and_reach_the_maximum() {
        let (limits, warnings) = limits(|_| ());
        assert_eq!((limits.min, limits.init, limits.ceiling, limits.pool_reserve), (4, 8, 128, 16));
        assert_eq!(limits.lane_init, PerLane { push: 2, pop: 4, ack: 2, maint: 2 });
        assert_eq!(limits.lane_floor, PerLane { push: 1, pop: 1, ack: 1, maint: 2 });
        assert_eq!((limits.nosync_budget, warnings), (64, vec![]));
    }

    #[test]
    fn every_pool_keeps_its_reserve_and_admits_something() {
        for pool_size in 0..200 {
            for pool_reserve in [None, Some(0), Some(3), Some(16), Some(500)] {
                let (limits, warnings) = limits(|options| {
                    options.pool_size = pool_size;
                    options.pool_reserve = pool_reserve;
                    options.min = Some(96);
                    options.retention_parallelism = 200;
                });
                assert!(limits.ceiling + limits.pool_reserve <= limits.pool_size, "{limits:?}");
                assert!(1 <= limits.min && limits.min <= limits.init && limits.init <= limits.ceiling);
                assert!(limits.ceiling >= 2, "a leader and its worker hold two: {limits:?}");
                for lane in Lane::ALL {
                    let (floor, init) = (limits.lane_floor[lane], limits.lane_init[lane]);
                    assert!(1 <= floor && floor <= init && init <= limits.ceiling, "{limits:?}");
                }
                assert_eq!(warnings.iter().any(|w| matches!(w, Warning::PoolRaised { .. })), pool_size < 4);
                assert_eq!(
                    warnings.iter().any(|w| matches!(w, Warning::MinLowered { .. })),
                    limits.ceiling < 96
                );
            }
        }
    }

    ///
    #[test]
    fn too_many_workers_of_retention_do_not_invert_a_clamp() {
        let (limits, warnings) = limits(|options| {
            options.pool_size = 24;
            options.retention_parallelism = 200;
        });
        assert_eq!((limits.ceiling, limits.lane_init.maint, limits.lane_floor.maint), (18, 17, 2));
        assert_eq!(warnings, [Warning::ParallelismLowered { set: 200, in_force: 16 }]);
        assert_eq!(warnings[0].to_string(), "RETENTION_PARALLELISM is 200, 16 is in force: 16 is the most");
    }

    #[test]
    fn a_value_that_was_set_and_is_not_in_force_is_named() {
        let (limits, warnings) = limits(|options| {
            options.pool_size = 10;
            options.pool_reserve = Some(16);
            options.init = Some(1);
        });
        assert_eq!((limits.pool_reserve, limits.ceiling, limits.min, limits.init), (8, 2, 2, 2));
        assert_eq!(
            warnings,
            [Warning::ReserveLowered { set: 16, in_force: 8 }, Warning::InitMoved { set: 1, in_force: 2 },]
        );
    }

    #[test]
    fn values_outside_their_range_are_all_named() {
        let options = Options {
            max: 0,
            tick: Duration::from_millis(99),
            train_gap: Duration::from_micros(49),
            shares: PerLane { push: 1.4, ..Options::default().shares },
            ..Options::default()
        };
        let fields: Vec<&str> = options.check().iter().map(|error| error.field).collect();
        assert_eq!(fields, ["max", "train_gap", "tick", "shares.push"]);
        assert_eq!(options.check()[3].to_string(), "shares.push is 1.4: allowed 0 to 1");
        assert_eq!(Options::default().check(), []);
    }
}
