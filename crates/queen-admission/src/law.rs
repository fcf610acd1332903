//! How the budget moves: up by a part while it is what holds requests back, down by a little when slots grow old.
//!
//! The age of a slot mixes execution with the wait for a flush, so a long and healthy statement looks like queueing.
//! Therefore age takes back only what the budget has beyond the caps of the lanes, which their probes have found.

use std::fmt;
use std::time::Duration;

use crate::options::Limits;

/// Slots younger than this are no sign of queueing, however short the flush cycle is.
const OLDEST_MIN: Duration = Duration::from_millis(20);
/// A slot that outlives this many flush cycles waits for something other than its flush.
const CYCLES_MAX: u32 = 4;
/// Ticks of evidence before the budget is pinned.
const NOSYNC_TICKS: u32 = 3;

/// How many write transactions may be open at once, over all lanes.
#[derive(Debug)]
pub struct Budget {
    value: f64,
    min: f64,
    ceiling: f64,
    nosync: f64,
    mode: Mode,
    unsynced_ticks: u32,
    /// What the budget was before it was pinned.
    before_pin: f64,
    last: Reason,
}

/// Whether commits wait for a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They do; the law decides.
    Normal,
    /// They do not; there are no trains to measure, and the budget is pinned.
    Nosync,
}

impl Mode {
    /// The value of the field `adm_mode` of the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Normal => "normal",
            Mode::Nosync => "nosync",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why the budget last moved by a whole slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It has not.
    Init,
    /// Requests were held back by it alone.
    Saturated,
    /// A slot was older than its share of flush cycles explains.
    OldestAge,
    /// Commits look unsynced.
    NosyncDetected,
    /// Commits are synced again.
    SignalRestored,
}

impl Reason {
    /// The value of the field `adm_last` of the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Init => "init",
            Reason::Saturated => "saturated",
            Reason::OldestAge => "oldest-age",
            Reason::NosyncDetected => "nosync-detected",
            Reason::SignalRestored => "signal-restored",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What was seen since the last tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The flush cycle of the moment, if there are enough trains to tell.
    pub cycle: Option<Duration>,
    /// Age of the oldest slot outside [`Lane::Maint`](crate::Lane::Maint), whose statements may be long; 0 without one.
    pub oldest: Duration,
    /// Sum of the caps of the lanes.
    pub caps: usize,
    /// A request was refused by the budget while its lane was under its own cap.
    pub saturated: bool,
    /// Whether commits look unsynced; None without commits.
    pub unsynced: Option<bool>,
}

/// A tick that moved the budget by a slot or more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    /// Before the tick.
    pub from: f64,
    /// After it.
    pub to: f64,
    /// Why.
    pub reason: Reason,
}

impl Budget {
    /// The budget at the start.
    pub fn new(limits: &Limits) -> Budget {
        let value = limits.init as f64;
        Budget {
            value,
            min: limits.min as f64,
            ceiling: limits.ceiling as f64,
            nosync: limits.nosync_budget as f64,
            mode: Mode::Normal,
            unsynced_ticks: 0,
            before_pin: value,
            last: Reason::Init,
        }
    }

    /// The budget, in transactions.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// The budget in whole slots.
    pub fn slots(&self) -> usize {
        // At least 1 and far below 2^52, so nothing is lost but the fraction.
        self.value as usize
    }

    /// The mode that the last tick left.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Why the budget last moved.
    pub fn last(&self) -> Reason {
        self.last
    }

    /// One tick. Answers a move of a whole slot or more.
    pub fn tick(&mut self, observed: &Observed) -> Option<Moved> {
        let from = self.value;
        let reason = self.mode_change(observed.unsynced).or_else(|| self.law(observed))?;
        self.value = self.value.clamp(self.min, self.ceiling);
        if (self.value - from).abs() < 1.0 {
            return None;
        }
        self.last = reason;
        Some(Moved { from, to: self.value, reason })
    }

    fn mode_change(&mut self, unsynced: Option<bool>) -> Option<Reason> {
        match unsynced {
            None => None,
            Some(true) => {
                self.unsynced_ticks = self.unsynced_ticks.saturating_add(1);
                if self.mode == Mode::Nosync || self.unsynced_ticks < NOSYNC_TICKS {
                    return None;
                }
                self.mode = Mode::Nosync;
                self.before_pin = self.value;
                self.value = self.nosync;
                Some(Reason::NosyncDetected)
            }
            Some(false) => {
                self.unsynced_ticks = 0;
                if self.mode == Mode::Normal {
                    return None;
                }
                self.mode = Mode::Normal;
                self.value = self.before_pin;
                Some(Reason::SignalRestored)
            }
        }
    }

    fn law(&mut self, observed: &Observed) -> Option<Reason> {
        let cycle = observed.cycle.filter(|_| self.mode == Mode::Normal)?;
        let ln = self.value.ln();
        let is_queueing = observed.oldest > cycle * CYCLES_MAX && observed.oldest > OLDEST_MIN;
        let caps = observed.caps as f64;
        if is_queueing && self.value > caps {
            self.value = (self.value - ln.max(1.0)).max(caps);
            return Some(Reason::OldestAge);
        }
        if observed.saturated {
            self.value += (0.15 * self.value).max(ln).max(1.0);
            return Some(Reason::Saturated);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn budget(change: impl FnOnce(&mut Options)) -> Budget {
        let mut options = Options::default();
        change(&mut options);
        Budget::new(&options.limits().0)
    }

    const CALM: Observed =
        Observed { cycle: Some(ms(2)), oldest: ms(1), caps: 10, saturated: false, unsynced: Some(false) };
    const SATURATED: Observed = Observed { saturated: true, ..CALM };
    const OLD: Observed = Observed { oldest: ms(200), ..SATURATED };

    ///
    #[test]
    fn a_saturated_budget_grows_by_its_part_up_to_the_ceiling() {
        let mut budget = budget(|_| ());
        let mut expected = 8.0_f64;
        while expected < 128.0 {
            expected = (expected + (0.15 * expected).max(expected.ln()).max(1.0)).min(128.0);
            budget.tick(&SATURATED);
            assert!((budget.value() - expected).abs() < 1e-9, "{} {expected}", budget.value());
            assert_eq!(budget.last(), Reason::Saturated);
        }
        assert_eq!(budget.tick(&SATURATED), None);
        assert_eq!(budget.slots(), 128);
    }

    ///
    #[test]
    fn an_old_slot_shrinks_it_to_the_floor() {
        let mut budget = budget(|options| options.init = Some(40));
        let moved = budget.tick(&OLD).unwrap();
        assert!((moved.to - (40.0 - 40.0_f64.ln())).abs() < 1e-9);
        assert_eq!(moved.reason, Reason::OldestAge);
        let low = Observed { caps: 3, saturated: false, ..OLD };
        for _ in 0..100 {
            budget.tick(&low);
        }
        assert_eq!(budget.value(), 4.0);
    }

    #[test]
    fn an_old_slot_takes_back_only_what_is_beyond_the_caps() {
        let mut budget = budget(|options| options.init = Some(12));
        assert_eq!(budget.tick(&OLD).map(|moved| moved.to), Some(10.0));
        assert_eq!(budget.tick(&OLD).map(|moved| moved.reason), Some(Reason::Saturated), "room for a probe");
        assert_eq!(budget.tick(&OLD).map(|moved| moved.to), Some(10.0));
        assert_eq!(budget.tick(&Observed { saturated: false, ..OLD }), None);
    }

    #[test]
    fn age_alone_is_queueing_only_beyond_both_bounds() {
        let mut budget = budget(|_| ());
        assert_eq!(budget.tick(&Observed { oldest: ms(20), ..CALM }), None, "20 ms is young");
        assert_eq!(
            budget.tick(&Observed { oldest: ms(40), cycle: Some(ms(10)), ..CALM }),
            None,
            "four cycles"
        );
        assert_eq!(budget.tick(&Observed { cycle: None, ..OLD }), None, "nothing to compare with");
        assert_eq!(budget.tick(&Observed { cycle: None, ..SATURATED }), None);
        assert_eq!(budget.tick(&CALM), None);
        assert_eq!(budget.last(), Reason::Init);
    }

    ///
    #[test]
    fn three_ticks_without_sync_pin_it_and_one_with_restores_it() {
        let fast = Observed { cycle: None, unsynced: Some(true), ..CALM };
        let mut budget = budget(|_| ());
        assert_eq!((budget.tick(&fast), budget.tick(&fast)), (None, None));
        assert_eq!(budget.tick(&Observed { unsynced: None, ..fast }), None, "no traffic is no evidence");
        assert_eq!(budget.mode(), Mode::Normal);
        assert_eq!(budget.tick(&fast), Some(Moved { from: 8.0, to: 64.0, reason: Reason::NosyncDetected }));
        assert_eq!(budget.tick(&Observed { unsynced: Some(true), ..OLD }), None, "pinned");
        assert_eq!(budget.tick(&Observed { unsynced: None, ..OLD }), None, "pinned");
        assert_eq!(budget.mode(), Mode::Nosync);
        assert_eq!(budget.tick(&CALM), Some(Moved { from: 64.0, to: 8.0, reason: Reason::SignalRestored }));
        assert_eq!((budget.mode(), budget.last()), (Mode::Normal, Reason::SignalRestored));
    }

    #[test]
    fn the_pin_stays_within_the_ceiling() {
        let mut budget = budget(|options| options.pool_size = 20);
        for _ in 0..3 {
            budget.tick(&Observed { unsynced: Some(true), ..CALM });
        }
        assert_eq!(budget.slots(), 15);
    }
}
