//! The drain against a scripted database and a directory that both survive its crashes: whatever happens in between,
//! every accepted event is stored exactly once, or stands in quarantine and only if it is bad.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// What an event is: its lane, its transaction id, and whether the database can ever take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ev {
    lane: u64,
    key: u64,
    bad: bool,
}

/// What the database does with a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Takes,
    Refuses,
    /// It commits, and the answer is lost.
    CommitsSilently,
    /// It takes the lanes of even numbers; the others fail for a passing reason.
    TakesHalf,
}

/// What happens to the broker at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    None,
    Before,
    /// After the effect, before anything else.
    After,
}

#[derive(Default)]
struct World {
    files: BTreeMap<String, Vec<Ev>>,
    /// By lane and key: how many rows.
    stored: BTreeMap<(u64, u64), usize>,
    /// By file: positions.
    quarantine: BTreeMap<String, BTreeSet<u64>>,
    accepted: Vec<(String, u64, Ev)>,
}

impl World {
    fn store(&mut self, event: Ev) {
        // Inside the window a repeat writes nothing.
        self.stored.entry((event.lane, event.key)).or_insert(1);
    }

    /// The contract of a push: lanes are independent; a lane with a bad event fails as a whole.
    fn push(&mut self, events: &[Ev], fate: Fate) -> Vec<Verdict> {
        let mut seen = BTreeSet::new();
        assert!(events.iter().all(|e| seen.insert((e.lane, e.key))), "a push repeats an id: {events:?}");
        let poisoned: BTreeSet<u64> = events.iter().filter(|e| e.bad).map(|e| e.lane).collect();
        let mut verdicts = Vec::new();
        for event in events {
            let reaches = match fate {
                Fate::Takes | Fate::CommitsSilently => true,
                Fate::Refuses => false,
                Fate::TakesHalf => event.lane.is_multiple_of(2),
            };
            verdicts.push(if !reaches {
                Verdict::Transient
            } else if poisoned.contains(&event.lane) {
                Verdict::Permanent(Reason { sqlstate: None, error: "bad".to_owned() })
            } else {
                self.store(*event);
                if fate == Fate::CommitsSilently { Verdict::Transient } else { Verdict::Stored }
            });
        }
        verdicts
    }
}

/// Runs one life of the broker: until the script of fates and blows ends it, or until everything is drained.
fn life(world: &mut World, now: &mut Duration, mut script: impl Iterator<Item = (Fate, Blow)>) -> bool {
    let options = DrainOptions { batch_events: 4, ..DrainOptions::default() };
    let mut drain = Drain::new(options);
    for _ in 0..20_000 {
        let (fate, blow) = match drain.step(*now) {
            Step::Rest(_) | Step::List { .. } | Step::Read { .. } => (Fate::Takes, Blow::None),
            _ => script.next().unwrap_or((Fate::Takes, Blow::None)),
        };
        if blow == Blow::Before {
            return false;
        }
        match drain.step(*now) {
            Step::Rest(None) => return true,
            Step::Rest(Some(until)) => *now = until,
            Step::List { .. } => drain.listed(*now, world.files.keys().cloned().collect()),
            Step::Read { file, from } => {
                let all = &world.files[&file];
                let from = usize::try_from(from).unwrap();
                let upto = (from + 3).min(all.len());
                let meta = |e: &Ev| Meta { lane: e.lane, id: e.lane << 32 | e.key, bytes: 1, readable: true };
                drain.read(Read {
                    events: all[from..upto].iter().map(meta).collect(),
                    end: upto == all.len(),
                });
            }
            Step::Push { file, events } => {
                let events: Vec<Ev> =
                    events.iter().map(|n| world.files[&file][usize::try_from(*n).unwrap()]).collect();
                let verdicts = world.push(&events, fate);
                *now += Duration::from_millis(1);
                drain.pushed(*now, verdicts);
            }
            Step::Finish { file, aside } => {
                let aside: BTreeSet<u64> = aside.into_iter().map(|(n, _)| n).collect();
                if aside.is_empty() {
                    world.quarantine.remove(&file);
                } else {
                    world.quarantine.insert(file.clone(), aside);
                }
                // Between the two the process may die.
                if blow == Blow::After {
                    return false;
                }
                world.files.remove(&file);
                drain.finished();
            }
            Step::Move { file } => panic!("{file} could be read"),
        }
        if blow == Blow::After {
            return false;
        }
    }
    panic!("the drain does not come to an end");
}

fn event() -> impl Strategy<Value = Ev> {
    (0u64..4, 0u64..12, prop::bool::weighted(0.15)).prop_map(|(lane, key, bad)| Ev { lane, key, bad })
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Takes),
        2 => Just(Fate::Refuses),
        2 => Just(Fate::CommitsSilently),
        1 => Just(Fate::TakesHalf),
    ]
}

fn blow() -> impl Strategy<Value = Blow> {
    prop_oneof![10 => Just(Blow::None), 1 => Just(Blow::Before), 1 => Just(Blow::After)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_accepted_event_is_stored_once_or_set_aside(
        files in prop::collection::vec(prop::collection::vec(event(), 0..14), 1..5),
        script in prop::collection::vec((fate(), blow()), 0..120),
        before in prop::collection::vec(event(), 0..4),
    ) {
        let mut world = World::default();
        for event in before.iter().filter(|e| !e.bad) {
            world.store(*event);
        }
        for (n, events) in files.into_iter().enumerate() {
            let name = format!("f{n}");
            world.accepted.extend((0..).zip(&events).map(|(i, e)| (name.clone(), i, *e)));
            world.files.insert(name, events);
        }
        let (mut now, mut script) = (Duration::ZERO, script.into_iter());
        let mut lives = 0;
        while !life(&mut world, &mut now, script.by_ref()) {
            lives += 1;
            prop_assert!(lives <= 200);
        }
        prop_assert!(world.files.is_empty());
        prop_assert!(world.stored.values().all(|rows| *rows == 1));
        for (file, index, event) in &world.accepted {
            let aside = world.quarantine.get(file).is_some_and(|set| set.contains(index));
            prop_assert_eq!(aside, event.bad, "{} {} {:?}", file, index, event);
            if !event.bad {
                prop_assert_eq!(world.stored.get(&(event.lane, event.key)), Some(&1), "{:?}", event);
            }
        }
    }
}
