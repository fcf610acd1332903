//! Whether a probe of a cap has paid.
//!
//! What counts is work, not commits: a lane whose commits grow emptier while they grow more numerous has gained
//! nothing. And it counts over all lanes: what one lane takes from the others is no gain either.

use std::time::Duration;

use crate::lane::Lane;

/// The rings of ready partitions, as sampled at one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PopSample {
    /// Age of the oldest entry that is ready to be popped; 0 when nothing is ready.
    pub oldest_ready: Duration,
    /// Entries that are ready.
    pub ready: u64,
    /// Entries visited by pops since the start of the process; only ever grows.
    pub visits: u64,
}

/// What a tick showed of one lane, and of the rings when the lane pops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    /// Units of work of the lane a second.
    pub(crate) rate: f64,
    /// Units of work of all lanes a second.
    pub(crate) total: f64,
    pub(crate) rings: Option<Rings>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rings {
    pub(crate) oldest_ready: Duration,
    pub(crate) ready: f64,
    pub(crate) visits_per_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// Entries that are picked up sooner than this are not waiting for pops.
const YOUNG: Duration = Duration::from_millis(10);
/// A raised cap has to bring this much.
const GAIN: f64 = 1.05;
/// Of what the lane gained, this part has to be a gain of all lanes together.
const REAL_GAIN: f64 = 0.5;
/// Losses beyond these are not kept. They are measured against the lane's peak, so that small ones do not add up.
const LOSS_UP: f64 = 0.95;
const LOSS_DOWN: f64 = 0.98;
/// A lowered cap that helps all lanes by [`RELIEF`] may cost its own lane down to [`RELIEF_COST`], and one that all
/// lanes together do not feel, since the others take what it leaves, down to [`SHIFT_COST`].
const RELIEF: f64 = 1.02;
const RELIEF_COST: f64 = 0.5;
const SHIFT_COST: f64 = 0.85;
/// Pops are not traded for pushes further than this: consumers come first.
const POP_COST: f64 = 0.9;

/// Whether a probe is kept that moved the cap in `direction`, from what `before` shows to what `after` shows. `peak` has
/// the best rates since the load last changed.
pub(crate) fn is_kept(
    lane: Lane,
    direction: Direction,
    before: &Reading,
    peak: &Reading,
    after: &Reading,
) -> bool {
    match direction {
        Direction::Up => match (lane, before.rings, after.rings) {
            (Lane::Pop, Some(was), Some(is)) if is.oldest_ready > YOUNG => {
                pops_catch_up(&was, &is) && after.rate >= LOSS_UP * peak.rate
            }
            _ => brings_more(before, after),
        },
        Direction::Down => match (lane, before.rings, after.rings) {
            (Lane::Pop, Some(was), Some(is)) => {
                is_no_older(&was, &is) && costs_little(POP_COST, before, peak, after)
            }
            (Lane::Pop, ..) => costs_little(POP_COST, before, peak, after),
            _ => costs_little(RELIEF_COST, before, peak, after),
        },
    }
}

fn brings_more(before: &Reading, after: &Reading) -> bool {
    let gained = after.rate - before.rate;
    after.rate >= GAIN * before.rate && after.total - before.total >= REAL_GAIN * gained
}

/// For rings that are behind. More entries that are visited as fast as before are more load, which the probe did not
/// bring.
fn pops_catch_up(was: &Rings, is: &Rings) -> bool {
    let is_younger = is.oldest_ready.as_secs_f64() <= 0.9 * was.oldest_ready.as_secs_f64();
    let is_load = is.ready >= 1.2 * was.ready && is.visits_per_s >= 0.95 * was.visits_per_s;
    is_younger || is_load
}

fn is_no_older(was: &Rings, is: &Rings) -> bool {
    is.oldest_ready <= YOUNG || is.oldest_ready.as_secs_f64() <= 1.1 * was.oldest_ready.as_secs_f64()
}

/// Whether the work of all lanes is what it was, and the lane itself loses nothing, or only what the others gain and
/// never more than what `least` leaves of it.
fn costs_little(least: f64, before: &Reading, peak: &Reading, after: &Reading) -> bool {
    let is_felt = after.total < LOSS_DOWN * peak.total;
    let costs_nothing = after.rate >= LOSS_DOWN * peak.rate;
    let shifts = after.rate >= SHIFT_COST.max(least) * before.rate;
    let relieves = after.total >= RELIEF * before.total && after.rate >= least * before.rate;
    relieves || (!is_felt && (costs_nothing || shifts))
}

impl Reading {
    /// Of a lane that nothing is known of.
    pub(crate) const NONE: Reading = Reading { rate: 0.0, total: 0.0, rings: None };
}

#[cfg(test)]
mod tests {
    use super::Direction::{Down, Up};
    use super::*;

    fn reading(rate: f64, total: f64) -> Reading {
        Reading { rate, total, rings: None }
    }

    fn pop(rate: f64, age_ms: u64, ready: f64, visits_per_s: f64) -> Reading {
        let rings = Rings { oldest_ready: Duration::from_millis(age_ms), ready, visits_per_s };
        Reading { rate, total: rate, rings: Some(rings) }
    }

    fn kept(lane: Lane, direction: Direction, before: Reading, after: Reading) -> bool {
        is_kept(lane, direction, &before, &before, &after)
    }

    #[test]
    fn a_raise_has_to_bring_five_percent() {
        for lane in Lane::ALL {
            assert!(kept(lane, Up, reading(100.0, 100.0), reading(105.0, 105.0)));
            assert!(!kept(lane, Up, reading(100.0, 100.0), reading(104.9, 104.9)));
        }
    }

    #[test]
    fn what_is_taken_from_other_lanes_is_no_gain() {
        let before = reading(100.0, 300.0);
        assert!(kept(Lane::Push, Up, before, reading(120.0, 310.0)));
        assert!(!kept(Lane::Push, Up, before, reading(120.0, 309.0)));
    }

    #[test]
    fn a_cut_must_cost_nothing() {
        let before = reading(100.0, 100.0);
        assert!(kept(Lane::Ack, Down, before, reading(98.0, 98.0)));
        assert!(!kept(Lane::Ack, Down, before, reading(97.9, 97.9)));
        let eroded = is_kept(Lane::Ack, Down, &reading(98.0, 98.0), &before, &reading(97.5, 97.5));
        assert!(!eroded, "small losses do not add up");
    }

    #[test]
    fn a_cut_may_cost_its_lane_what_the_others_gain_but_the_pops_little() {
        let before = reading(100.0, 300.0);
        assert!(kept(Lane::Push, Down, before, reading(50.0, 306.0)));
        assert!(!kept(Lane::Push, Down, before, reading(49.0, 306.0)));
        assert!(kept(Lane::Push, Down, before, reading(85.0, 298.0)));
        assert!(!kept(Lane::Push, Down, before, reading(84.0, 298.0)));
        assert!(!kept(Lane::Push, Down, before, reading(95.0, 293.0)));
        assert!(kept(Lane::Pop, Down, before, reading(90.0, 306.0)));
        assert!(!kept(Lane::Pop, Down, before, reading(89.0, 400.0)));
    }

    ///
    #[test]
    fn pops_are_judged_by_the_age_of_what_is_ready() {
        let before = pop(1000.0, 100, 50.0, 1000.0);
        for (name, after, expected) in [
            ("age better", pop(1000.0, 90, 50.0, 1000.0), true),
            ("age worse, more load", pop(1000.0, 120, 60.0, 950.0), true),
            ("age worse", pop(1000.0, 91, 59.0, 1000.0), false),
            ("age worse, more load, fewer visits", pop(1000.0, 120, 60.0, 949.0), false),
            ("more load, but the work falls", pop(940.0, 120, 60.0, 950.0), false),
            ("young, no more work", pop(1000.0, 10, 5.0, 1000.0), false),
            ("young, more work", pop(1050.0, 10, 5.0, 1000.0), true),
        ] {
            assert_eq!(kept(Lane::Pop, Up, before, after), expected, "{name}");
        }
    }

    #[test]
    fn a_cut_of_pops_must_not_let_the_rings_age() {
        let before = pop(1000.0, 100, 50.0, 1000.0);
        assert!(kept(Lane::Pop, Down, before, pop(1000.0, 110, 50.0, 1000.0)));
        assert!(!kept(Lane::Pop, Down, before, pop(1000.0, 111, 50.0, 1000.0)));
        assert!(kept(Lane::Pop, Down, pop(1000.0, 1, 5.0, 1000.0), pop(1000.0, 10, 5.0, 1000.0)));
    }
}
