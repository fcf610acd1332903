//! Random runs that can be repeated: every run has a seed of its own, which a failure names.
//!
//! The seed fixes what a test does. Which of several ready partitions a pop prefers is the broker's own dice, so a
//! pinned seed is run again and again for as long as the test may take.

use std::time::{Duration, Instant};

use anyhow::Context;
use rand::SeedableRng;
use rand::rngs::StdRng;

/// Pins the seed: every run has this one.
pub const SEED: &str = "QUEEN_TEST_SEED";
/// How long each random test goes on, in seconds, instead of its own short time.
pub const SECONDS: &str = "QUEEN_TEST_SECONDS";

/// The runs of one random test.
#[derive(Debug)]
pub struct Runs {
    until: Instant,
    next: Option<u64>,
    pinned: bool,
    made: u32,
}

impl Runs {
    /// Runs for `short` time, or for the time of [`SECONDS`]; at least one.
    ///
    /// # Errors
    /// When a variable is not a number.
    pub fn of(short: Duration) -> anyhow::Result<Runs> {
        let seconds = variable(SECONDS)?.map(Duration::from_secs);
        let pinned = variable(SEED)?;
        let first = pinned.unwrap_or_else(|| u64::from(rand::random::<u32>()));
        Ok(Runs {
            until: Instant::now() + seconds.unwrap_or(short),
            next: Some(first),
            pinned: pinned.is_some(),
            made: 0,
        })
    }

    /// The next run; `None` when the time is over.
    pub fn next_run(&mut self) -> Option<Run> {
        let seed = self.next.take()?;
        if self.made > 0 && Instant::now() >= self.until {
            return None;
        }
        self.made += 1;
        self.next = Some(if self.pinned { seed } else { seed.wrapping_add(1) });
        Some(Run { seed, number: self.made, rng: StdRng::seed_from_u64(seed) })
    }

    /// How many runs there were.
    pub fn made(&self) -> u32 {
        self.made
    }
}

/// One run.
#[derive(Debug)]
pub struct Run {
    /// What made it.
    pub seed: u64,
    /// Its place among the runs of the test, from 1.
    pub number: u32,
    /// Its dice.
    pub rng: StdRng,
}

impl Run {
    /// Adds to an error how the run is repeated.
    ///
    /// # Errors
    /// The error given.
    pub fn explain<T>(&self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        outcome.with_context(|| format!("repeat with {SEED}={}", self.seed))
    }
}

fn variable(name: &str) -> anyhow::Result<Option<u64>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text.trim().parse().with_context(|| format!("{name}={text}: not a number"))?)),
        Err(_) => Ok(None),
    }
}
