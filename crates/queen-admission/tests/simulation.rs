//! The caps find the number of transactions at which a database does the most work, and follow it.

mod database;

use database::{Curve, Database, Load, limits};
use queen_admission::Lane;

const CLOSED: Load = Load::Closed { clients: 64 };

/// The best number of slots that is set once and for all, and the work a second with it.
fn best_fixed(curve: Curve, loads: &[(Lane, Load)]) -> (usize, f64) {
    let rate_of = |slots: usize| {
        let mut fixed = limits(Some(128));
        (fixed.min, fixed.init) = (slots, slots);
        let mut database = Database::new(fixed, curve, 0.0, 1, false);
        loads.iter().for_each(|(lane, load)| database.load(*lane, *load));
        database.run(2.0);
        database.run(10.0)
    };
    let all = (1..=20).map(|slots| (slots, rate_of(slots)));
    all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

#[test]
fn show() {
    for knee in [2, 3, 8] {
        for start in [None, Some(16)] {
            let noise = 0.05;
            let best = best_fixed(Curve::at(knee), &[(Lane::Push, CLOSED)]);
            let mut db = Database::new(limits(start), Curve::at(knee), noise, 7, true);
            db.load(Lane::Push, CLOSED);
            let warm = db.run_with_cap(60, Lane::Push);
            let tail = db.run_with_cap(60, Lane::Push);
            println!(
                "knee {knee} best {best:?} start {start:?} noise {noise}: warm {warm:?} tail {tail:?} = {:.3}",
                tail.0 / best.1
            );
        }
    }
}
#[test]
fn show_moving() {
    let mut db = Database::new(limits(None), Curve::at(3), 0.05, 3, true);
    db.load(Lane::Push, CLOSED);
    for knee in [3, 8, 2, 6, 3] {
        db.curve = Curve::at(knee);
        let best = best_fixed(Curve::at(knee), &[(Lane::Push, CLOSED)]);
        for _ in 0..6 {
            let tail = db.run_with_cap(20, Lane::Push);
            println!("moving knee {knee} best {best:?}: {tail:?} = {:.3}", tail.0 / best.1);
        }
    }
}
#[test]
fn show_fused() {
    for noise in [0.0, 0.05] {
        let load = Load::Fused { producers: 64, commit: 1.0, message: 0.02 };
        let curve = Curve { knee: 2, speed: 1.0, contention: 0.03 };
        let best = best_fixed(curve, &[(Lane::Push, load)]);
        for start in [None, Some(16)] {
            let mut db = Database::new(limits(start), curve, noise, 3, true);
            db.load(Lane::Push, load);
            let warm = db.run_with_cap(60, Lane::Push);
            let tail = db.run_with_cap(60, Lane::Push);
            println!("fused best {best:?} {noise} {start:?}: {warm:?} {tail:?} = {:.3}", tail.0 / best.1);
        }
    }
}
#[test]
fn show_three() {
    let loads = [(Lane::Push, CLOSED), (Lane::Pop, CLOSED), (Lane::Ack, CLOSED)];
    for knee in [3, 6, 10] {
        let best = best_fixed(Curve::at(knee), &loads);
        for start in [None, Some(10)] {
            let mut db = Database::new(limits(start), Curve::at(knee), 0.05, 3, true);
            loads.iter().for_each(|(lane, load)| db.load(*lane, *load));
            let warm = db.run_with_cap(60, Lane::Push);
            let tail = db.run_with_cap(60, Lane::Push);
            let caps: Vec<_> = Lane::ALL.iter().map(|l| db.cap(*l)).collect();
            println!(
                "three knee {knee} best {best:?} {start:?}: {warm:?} {tail:?} = {:.3} {caps:?} {:?}",
                tail.0 / best.1,
                db.done
            );
        }
    }
}
#[test]
fn show_rings() {
    for knee in [2, 6] {
        for part in [0.5, 0.8, 0.95, 1.3] {
            let best = best_fixed(Curve::at(knee), &[(Lane::Pop, CLOSED)]);
            let mut db = Database::new(limits(None), Curve::at(knee), 0.05, 3, true);
            db.load(Lane::Pop, Load::Rings { entries_per_s: best.1 * part });
            let warm = db.run_with_cap(60, Lane::Pop);
            let late = db.popped_late;
            let tail = db.run_with_cap(60, Lane::Pop);
            println!(
                "rings knee {knee} {part} best {best:?}: {warm:?} {tail:?} = {:.3} late {late} {}",
                tail.0 / best.1,
                db.popped_late
            );
        }
    }
}
