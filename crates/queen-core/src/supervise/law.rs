//! When a background task that ended starts again: pure, with the time as an argument.

use std::collections::VecDeque;
use std::time::Duration;

/// How restarts are paced, and how many are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLaw {
    /// Pause before the first restart; each further one within `window` doubles it. 100 ms.
    pub pause: Duration,
    /// Longest pause. 30 s.
    pub pause_max: Duration,
    /// So many restarts within `window` are borne, and the next end of the task is the end of the broker. 10.
    pub restarts_max: usize,
    /// How long a restart is remembered. 5 minutes.
    pub window: Duration,
}

impl Default for RestartLaw {
    fn default() -> Self {
        RestartLaw {
            pause: Duration::from_millis(100),
            pause_max: Duration::from_secs(30),
            restarts_max: 10,
            window: Duration::from_secs(300),
        }
    }
}

/// What follows the end of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It starts again after the pause.
    RestartAfter(Duration),
    /// It has had its chances.
    GiveUp,
}

/// The ends of one task.
#[derive(Debug, Default)]
pub(super) struct Ends {
    at: VecDeque<Duration>,
}

impl Ends {
    /// Books an end at `now`, which never goes back.
    pub(super) fn note(&mut self, law: &RestartLaw, now: Duration) -> Next {
        while self.at.front().is_some_and(|at| now.saturating_sub(*at) >= law.window) {
            self.at.pop_front();
        }
        if self.at.len() >= law.restarts_max {
            return Next::GiveUp;
        }
        let doublings = u32::try_from(self.at.len()).unwrap_or(u32::MAX).min(31);
        self.at.push_back(now);
        Next::RestartAfter(law.pause.saturating_mul(1 << doublings).min(law.pause_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn pauses_double_up_to_their_limit_and_the_eleventh_end_is_one_too_many() {
        let law = RestartLaw::default();
        let mut ends = Ends::default();
        let pauses = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000];
        let mut now = Duration::ZERO;
        for pause in pauses {
            assert_eq!(ends.note(&law, now), Next::RestartAfter(ms(pause)));
            now += ms(pause);
        }
        assert!(now < law.window, "a task that fails at once comes to its end inside the window");
        assert_eq!(ends.note(&law, now), Next::GiveUp);
        assert_eq!(ends.note(&law, now), Next::GiveUp);
    }

    #[test]
    fn what_is_long_ago_no_longer_counts() {
        let law = RestartLaw::default();
        let mut ends = Ends::default();
        let second = Duration::from_secs(1);
        for at in 0..10 {
            assert!(matches!(ends.note(&law, second * at), Next::RestartAfter(_)));
        }
        assert_eq!(ends.note(&law, second * 299), Next::GiveUp);
        assert_eq!(
            ends.note(&law, second * 300),
            Next::RestartAfter(ms(30_000)),
            "the first one is forgotten"
        );
        assert_eq!(ends.note(&law, second * 301), Next::RestartAfter(ms(30_000)));
        assert_eq!(ends.note(&law, second * 900), Next::RestartAfter(ms(100)), "all are forgotten");
    }
}
