use std::time::Duration;

/// How a hot list behaves; the same for every queue of a broker.
#[derive(Debug, Clone)]
pub struct Options {
    /// `QUEEN_HOTLIST_PAD_MS`: what is added to a visibility or lease time before a partition is looked at, for
    /// the difference between the database's clock and ours. Default 300 ms.
    pub pad: Duration,
    /// Longest a leased partition stays parked before somebody looks again, however long the lease lasts. It
    /// bounds how late an ack that another broker served is noticed when no hint arrives. A broker that has the
    /// database to itself sees every ack and can afford far more than the default of 1 s, which costs one empty
    /// claim a second for each leased partition.
    pub revisit_max: Duration,
    /// `QUEEN_HOTLIST_WINDOW_BATCH`: as many messages end the hold of a `windowBuffer` queue early. Clamped to
    /// 1..=65535; default 100.
    pub window_batch: u32,
    /// The floors that repair a ring.
    pub reseed: ReseedOptions,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            pad: Duration::from_millis(300),
            revisit_max: Duration::from_millis(1000),
            window_batch: 100,
            reseed: ReseedOptions::default(),
        }
    }
}

/// Cadence of the walks that find what no mark announced.
#[derive(Debug, Clone)]
pub struct ReseedOptions {
    /// `QUEEN_HOTLIST_RESEED_MS`: between two windowed walks of a ring; the ring's phase adds up to
    /// max(15 s, a fifth). Default 30 s.
    pub interval: Duration,
    /// `QUEEN_HOTLIST_RESEED_FULL_MS`: between two walks of every partition, plus the phase as above. Zero makes
    /// every walk a full one. Default 300 s.
    pub full: Duration,
    /// `QUEEN_HOTLIST_RESEED_WINDOW_MS`: how far back a windowed walk looks. Zero derives
    /// max(4 × interval, 120 s); always clamped to [interval + span, 7 days].
    pub window: Duration,
}

impl Default for ReseedOptions {
    fn default() -> Self {
        ReseedOptions {
            interval: Duration::from_secs(30),
            full: Duration::from_secs(300),
            window: Duration::ZERO,
        }
    }
}

impl ReseedOptions {
    /// What the phase of a ring is scaled to.
    pub(crate) fn span(interval: Duration) -> Duration {
        (interval / 5).max(Duration::from_secs(15))
    }

    /// How far back a windowed walk looks: always beyond the longest time between two of them.
    pub fn look_back(&self) -> Duration {
        let asked = if self.window.is_zero() {
            self.interval.saturating_mul(4).max(Duration::from_secs(120))
        } else {
            self.window
        };
        let least = self.interval.saturating_add(Self::span(self.interval));
        asked.min(Duration::from_secs(7 * 24 * 3600)).max(least)
    }
}

/// The options of a queue that hold messages back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deferral {
    /// `delayedProcessing`: a message is invisible for as long.
    pub delayed: Duration,
    /// `windowBuffer`: a partition is held as long after its first unserved message, or until a batch is there.
    pub window: Duration,
}

/// Everything that decides a transition.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) pad: Duration,
    pub(crate) revisit_max: Duration,
    pub(crate) window_batch: u16,
    pub(crate) deferral: Deferral,
}

impl Rules {
    pub(crate) fn new(options: &Options, deferral: Deferral) -> Rules {
        Rules {
            pad: options.pad,
            revisit_max: options.revisit_max,
            window_batch: u16::try_from(options.window_batch.max(1)).unwrap_or(u16::MAX),
            deferral,
        }
    }

    pub(crate) fn is_delayed(&self) -> bool {
        !self.deferral.delayed.is_zero()
    }

    pub(crate) fn is_windowed(&self) -> bool {
        !self.deferral.window.is_zero()
    }

    pub(crate) fn is_plain(&self) -> bool {
        !self.is_delayed() && !self.is_windowed()
    }

    /// How soon a partition of a deferral queue is asked again when the claim could not say.
    pub(crate) fn probe(&self) -> Duration {
        let (least, most) = (Duration::from_millis(50), Duration::from_millis(1000));
        if self.is_delayed() { self.deferral.delayed.clamp(least, most) } else { least }
    }

    /// How long after the last mark a deferral queue is asked again and again.
    pub(crate) fn patience(&self) -> Duration {
        let held = self.deferral.delayed.max(self.deferral.window);
        held.saturating_add(self.pad.saturating_mul(2)).saturating_add(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_look_back_covers_the_longest_gap_between_two_walks() {
        let secs = Duration::from_secs;
        let check = |interval, window, expected| {
            let options =
                ReseedOptions { interval: secs(interval), window: secs(window), ..Default::default() };
            assert_eq!(options.look_back(), secs(expected), "{interval} {window}");
        };
        check(30, 0, 120);
        check(60, 0, 240);
        check(1, 0, 120);
        check(30, 10, 45);
        check(30, 500, 500);
        check(30, 10_000_000, 604_800);
        check(1_000, 1, 1_200);
    }
}
