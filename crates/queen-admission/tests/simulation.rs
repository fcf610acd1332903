//! The caps find the number of transactions at which a database does the most work, and follow it.

mod database;

use database::{Curve, Database, Load, limits};
use queen_admission::Lane;

const CLOSED: Load = Load::Closed { clients: 64 };

/// Of the best that any fixed number of slots gives.
const GOOD: f64 = 0.9;

/// The best number of slots that is set once and for all, and the work a second with it.
fn best_fixed(curve: Curve, loads: &[(Lane, Load)]) -> (usize, f64) {
    let rate_of = |slots: usize| {
        let mut fixed = limits(Some(128));
        (fixed.min, fixed.init) = (slots, slots);
        let mut database = Database::new(fixed, curve, 0.0, 1, false);
        loads.iter().for_each(|(lane, load)| database.load(*lane, *load));
        database.run(1.0);
        database.run(8.0)
    };
    let all = (1..=12).map(|slots| (slots, rate_of(slots)));
    all.max_by(|a, b| a.1.total_cmp(&b.1)).expect("there is one")
}

/// One lane that is always full settles at the best cap, from the defaults and from far above.
fn settles_near(knee: usize) {
    let curve = Curve::at(knee);
    let best = best_fixed(curve, &[(Lane::Push, CLOSED)]);
    assert_eq!(best.0, knee, "the best of this database is its knee");
    for (lane_init, seed) in [(None, 1), (None, 2), (Some(16), 3)] {
        let mut database = Database::new(limits(lane_init), curve, 0.05, seed, true);
        database.load(Lane::Push, CLOSED);
        database.run(60.0);
        let (rate, cap) = database.run_with_cap(40, Lane::Push);
        assert!(rate >= GOOD * best.1, "seed {seed}: {rate} of {best:?}");
        assert!((cap - knee as f64).abs() <= 1.0, "seed {seed}: cap {cap} of {best:?}");
    }
}

#[test]
fn a_lane_settles_near_two() {
    settles_near(2);
}

#[test]
fn a_lane_settles_near_three() {
    settles_near(3);
}

#[test]
fn a_lane_settles_near_eight() {
    settles_near(8);
}

#[test]
fn the_cap_follows_a_best_that_moves() {
    let mut database = Database::new(limits(None), Curve::at(3), 0.05, 3, true);
    database.load(Lane::Push, CLOSED);
    for knee in [3, 8, 2, 6, 3] {
        database.curve = Curve::at(knee);
        let best = best_fixed(database.curve, &[(Lane::Push, CLOSED)]);
        database.run(25.0);
        let (rate, cap) = database.run_with_cap(20, Lane::Push);
        assert!(rate >= GOOD * best.1, "knee {knee}: {rate} of {best:?}");
        assert!((cap - knee as f64).abs() <= 1.0, "knee {knee}: cap {cap}");
    }
}

/// A commit costs as much as fifty messages, so that fuller commits beat more of them; more of them is what a count of
/// commits would call a gain.
#[test]
fn fused_commits_stay_few_and_full() {
    let load = Load::Fused { producers: 64, commit: 1.0, message: 0.02 };
    let curve = Curve { knee: 2, speed: 1.0, contention: 0.03 };
    let best = best_fixed(curve, &[(Lane::Push, load)]);
    for lane_init in [None, Some(16)] {
        let mut database = Database::new(limits(lane_init), curve, 0.05, 5, true);
        database.load(Lane::Push, load);
        database.run(60.0);
        let (rate, cap) = database.run_with_cap(40, Lane::Push);
        assert!(rate >= GOOD * best.1, "{rate} of {best:?}");
        assert!(cap <= best.0 as f64 + 1.0, "cap {cap} of {best:?}");
    }
}

/// Each lane would gain by taking from the others; together they find what is best for all.
#[test]
fn lanes_that_compete_do_not_crowd_each_other() {
    let loads = [(Lane::Push, CLOSED), (Lane::Pop, CLOSED), (Lane::Ack, CLOSED)];
    for (knee, lane_init) in [(3, None), (6, Some(10)), (10, None)] {
        let best = best_fixed(Curve::at(knee), &loads);
        let mut database = Database::new(limits(lane_init), Curve::at(knee), 0.05, 3, true);
        loads.iter().for_each(|(lane, load)| database.load(*lane, *load));
        database.run(80.0);
        let before = database.done;
        let rate = database.run(40.0);
        assert!(rate >= GOOD * best.1, "knee {knee}: {rate} of {best:?}");
        for lane in [Lane::Push, Lane::Pop, Lane::Ack] {
            let part = (database.done[lane] - before[lane]) as f64 / 40.0 / rate;
            assert!(part >= 0.1, "knee {knee}: {lane} got {part:.2} of all");
        }
    }
}

/// Ready entries are popped as they come, with no more slots than that takes; and with too many of them the lane works
/// at its best.
#[test]
fn pops_keep_up_with_the_rings_without_crowding() {
    let curve = Curve::at(6);
    let best = best_fixed(curve, &[(Lane::Pop, CLOSED)]);
    for part in [0.5, 0.8, 1.3] {
        let mut database = Database::new(limits(None), curve, 0.05, 3, true);
        database.load(Lane::Pop, Load::Rings { entries_per_s: part * best.1 });
        database.run(30.0);
        let (popped_before, late_before) = (database.done.pop, database.popped_late);
        let (rate, cap) = database.run_with_cap(40, Lane::Pop);
        assert!(rate >= 0.97 * part.min(GOOD) * best.1, "{part}: {rate} of {best:?}");
        assert!(cap <= 7.0, "{part}: cap {cap}");
        let late = (database.popped_late - late_before) as f64 / (database.done.pop - popped_before) as f64;
        assert!(part > 1.0 || late < 0.05, "{part}: {late:.3} were late");
    }
}
