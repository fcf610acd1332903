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
}

impl Default for Options {
    fn default() -> Self {
        Options {
            pad: Duration::from_millis(300),
            revisit_max: Duration::from_millis(1000),
            window_batch: 100,
        }
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
