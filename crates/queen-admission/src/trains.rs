//! Commit trains: what completions tell about how often the database flushes.
//!
//! One flush releases every transaction that waited for it, so completions come in clusters. A cluster is a train; the
//! time from one train's start to the next is the flush cycle, and the number of its completions says how many
//! transactions one flush carried.

use std::collections::VecDeque;
use std::time::Duration;

/// A round trip below this cannot have waited for a disk.
const SYNC_MIN: Duration = Duration::from_micros(200);
const WINDOW: Duration = Duration::from_secs(10);
/// Round trips are counted in slices of the window.
const SLICE: Duration = Duration::from_millis(100);
/// At most this many trains are kept; the oldest go first.
const TRAINS_MAX: usize = 16_384;
const TRAIN_SPAN_MIN: Duration = Duration::from_millis(3);
/// Gaps that the recent cycle is the median of.
const RECENT: usize = 8;

/// The sensor. Owns the last ten seconds.
#[derive(Debug)]
pub struct Trains {
    gap: Duration,
    open: Option<Open>,
    closed: VecDeque<Closed>,
    trips: VecDeque<Slice>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    start: Duration,
    last: Duration,
    size: u32,
}

#[derive(Debug, Clone, Copy)]
struct Closed {
    start_us: u64,
    size: u32,
}

/// Round trips of one slice of time.
#[derive(Debug, Clone, Copy)]
struct Slice {
    number: u64,
    trips: u64,
    /// Those that were too short for a sync.
    short: u64,
}

/// What the last ten seconds looked like.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TrainStats {
    /// Trains a second.
    pub trains_per_s: f64,
    /// Mean number of transactions in a train; 0 without trains.
    pub txn_per_train: f64,
    /// Size that 95 % of the trains do not exceed; 0 without trains.
    pub txn_per_train_p95: u32,
    /// Median of the last eight gaps between the starts of trains; needs three trains.
    pub cycle: Option<Duration>,
    /// Gap that a quarter of all are shorter than; needs three trains.
    pub cycle_floor: Option<Duration>,
}

impl Trains {
    /// A sensor that puts completions closer than `gap` into one train.
    pub fn new(gap: Duration) -> Trains {
        Trains { gap, open: None, closed: VecDeque::new(), trips: VecDeque::new() }
    }

    /// A transaction committed at `now`, and its commit took `round_trip`.
    pub fn completed(&mut self, now: Duration, round_trip: Duration) {
        self.count_trip(now, round_trip < SYNC_MIN);
        if round_trip < SYNC_MIN {
            return;
        }
        let span_max = (self.gap * 10).max(TRAIN_SPAN_MIN);
        match &mut self.open {
            Some(open)
                if now.saturating_sub(open.last) <= self.gap
                    && now.saturating_sub(open.start) <= span_max =>
            {
                open.last = now.max(open.last);
                open.size += 1;
            }
            _ => {
                self.close();
                self.open = Some(Open { start: now, last: now, size: 1 });
            }
        }
    }

    /// Lets time pass: closes a train that nothing can join any more, and forgets what is older than the window.
    pub fn advance(&mut self, now: Duration) {
        if self.open.is_some_and(|open| now.saturating_sub(open.last) > self.gap) {
            self.close();
        }
        let oldest = now.saturating_sub(WINDOW);
        while self.closed.front().is_some_and(|train| u128::from(train.start_us) < oldest.as_micros()) {
            self.closed.pop_front();
        }
        let first = slice_of(oldest);
        while self.trips.front().is_some_and(|slice| slice.number < first) {
            self.trips.pop_front();
        }
    }

    /// The flush cycle of the moment, once three trains are closed.
    pub fn recent_cycle(&self) -> Option<Duration> {
        if self.closed.len() < 3 {
            return None;
        }
        let starts: Vec<u64> =
            self.closed.iter().rev().take(RECENT + 1).map(|train| train.start_us).collect();
        let mut gaps: Vec<u64> = starts.windows(2).map(|pair| pair[0].saturating_sub(pair[1])).collect();
        gaps.sort_unstable();
        let middle = gaps.len() / 2;
        let median = if gaps.len() % 2 == 1 { gaps[middle] } else { gaps[middle - 1].midpoint(gaps[middle]) };
        Some(Duration::from_micros(median))
    }

    /// Whether the round trips say that nothing is synced: the one at 10 % of them is too short. None without any,
    /// since no traffic is no evidence.
    pub fn looks_unsynced(&self) -> Option<bool> {
        let (trips, short) = self
            .trips
            .iter()
            .fold((0, 0), |(trips, short), slice| (trips + slice.trips, short + slice.short));
        (trips > 0).then_some(short > trips / 10)
    }

    /// The figures of the window that ends where [`Trains::advance`] last was.
    pub fn stats(&self) -> TrainStats {
        if self.closed.is_empty() {
            return TrainStats::default();
        }
        let count = self.closed.len();
        let mut sizes: Vec<u32> = self.closed.iter().map(|train| train.size).collect();
        let total: u64 = sizes.iter().copied().map(u64::from).sum();
        let (_, p95, _) = sizes.select_nth_unstable((count * 95 / 100).min(count - 1));
        TrainStats {
            trains_per_s: count as f64 / self.seconds_covered(),
            txn_per_train: total as f64 / count as f64,
            txn_per_train_p95: *p95,
            cycle: self.recent_cycle(),
            cycle_floor: self.cycle_floor(),
        }
    }

    fn cycle_floor(&self) -> Option<Duration> {
        if self.closed.len() < 3 {
            return None;
        }
        let starts = self.closed.iter().map(|train| train.start_us);
        let mut gaps: Vec<u64> = starts
            .clone()
            .skip(1)
            .zip(starts)
            .map(|(later, earlier)| later.saturating_sub(earlier))
            .collect();
        let place = gaps.len() / 4;
        let (_, floor, _) = gaps.select_nth_unstable(place);
        Some(Duration::from_micros(*floor))
    }

    /// The window, or what the kept trains span when there were too many of them to keep.
    fn seconds_covered(&self) -> f64 {
        match (self.closed.front(), self.closed.back()) {
            (Some(first), Some(last)) if self.closed.len() == TRAINS_MAX => {
                Duration::from_micros(last.start_us.saturating_sub(first.start_us).max(1)).as_secs_f64()
            }
            _ => WINDOW.as_secs_f64(),
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        if self.closed.len() == TRAINS_MAX {
            self.closed.pop_front();
        }
        let start_us = u64::try_from(open.start.as_micros()).unwrap_or(u64::MAX);
        self.closed.push_back(Closed { start_us, size: open.size });
    }

    fn count_trip(&mut self, now: Duration, is_short: bool) {
        let number = slice_of(now);
        if self.trips.back().is_none_or(|slice| slice.number < number) {
            self.trips.push_back(Slice { number, trips: 0, short: 0 });
        }
        if let Some(slice) = self.trips.back_mut() {
            slice.trips += 1;
            slice.short += u64::from(is_short);
        }
    }
}

fn slice_of(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / SLICE.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    const SLOW: Duration = Duration::from_millis(2);

    fn sensor(completions: &[(u64, Duration)]) -> Trains {
        let mut trains = Trains::new(us(300));
        for (at, round_trip) in completions {
            trains.completed(us(*at), *round_trip);
        }
        trains
    }

    ///
    #[test]
    fn clusters_of_completions_are_trains() {
        let completions: Vec<_> = (0..9).map(|i| (i / 3 * 5000 + i % 3 * 100, SLOW)).collect();
        let mut trains = sensor(&completions);
        assert_eq!(trains.recent_cycle(), None, "the third train is still open");
        trains.advance(us(10_501));
        let stats = trains.stats();
        assert_eq!((stats.txn_per_train, stats.txn_per_train_p95), (3.0, 3));
        assert_eq!((stats.cycle, stats.cycle_floor), (Some(us(5000)), Some(us(5000))));
        assert!((stats.trains_per_s - 0.3).abs() < 1e-9);
    }

    #[test]
    fn a_train_ends_at_a_gap_and_at_its_longest_span() {
        let mut trains = sensor(&(0..20).map(|i| (i * 300, SLOW)).collect::<Vec<_>>());
        trains.advance(us(100_000));
        assert_eq!(trains.closed.iter().map(|train| train.size).collect::<Vec<_>>(), [11, 9]);
        let mut trains = sensor(&[(0, SLOW), (300, SLOW), (601, SLOW)]);
        trains.advance(us(100_000));
        assert_eq!(trains.closed.iter().map(|train| train.size).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn short_round_trips_shape_no_trains() {
        let mut trains = sensor(&[(0, us(199)), (5000, us(199)), (10_000, us(199)), (15_000, us(199))]);
        trains.advance(us(20_000));
        assert_eq!((trains.stats(), trains.looks_unsynced()), (TrainStats::default(), Some(true)));
    }

    #[test]
    fn the_round_trip_at_ten_percent_decides() {
        let of = |short: u64, slow: u64| {
            let trips = (0..short).map(|_| (0, us(50))).chain((0..slow).map(|_| (0, SLOW)));
            sensor(&trips.collect::<Vec<_>>()).looks_unsynced()
        };
        assert_eq!(of(0, 0), None);
        assert_eq!(
            (of(1, 9), of(2, 8), of(10, 90), of(11, 89)),
            (Some(false), Some(true), Some(false), Some(true))
        );
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut trains = sensor(&(0..50).map(|i| (i * 5000, SLOW)).collect::<Vec<_>>());
        trains.advance(Duration::from_secs(11));
        assert_eq!((trains.stats(), trains.looks_unsynced()), (TrainStats::default(), None));
    }

    #[test]
    fn memory_is_bounded_and_the_rate_stays_right() {
        let mut trains = sensor(&(0..20_000).map(|i| (i * 400, SLOW)).collect::<Vec<_>>());
        trains.advance(us(20_000 * 400));
        assert_eq!(trains.closed.len(), TRAINS_MAX);
        assert!((trains.stats().trains_per_s - 2500.0).abs() < 1.0, "{:?}", trains.stats());
        assert!(trains.trips.len() <= 101);
    }
}
