use std::time::Duration;

/// An instant: milliseconds since an origin of the caller's choice, from a clock that never goes back.
///
/// Instants of one hot list share one origin; the origin means nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// After every instant.
    pub const NEVER: Millis = Millis(u64::MAX);

    /// The instant `wait` later, rounded up to a whole millisecond so that nothing is looked at too early.
    pub fn plus(self, wait: Duration) -> Millis {
        let whole = wait.as_secs().saturating_mul(1000).saturating_add(u64::from(wait.subsec_millis()));
        let up = u64::from(!wait.subsec_nanos().is_multiple_of(1_000_000));
        Millis(self.0.saturating_add(whole).saturating_add(up))
    }

    /// How long after `earlier` this is; zero when it is before.
    pub fn since(self, earlier: Millis) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_rounded_up_and_never_wrap() {
        assert_eq!(Millis(5).plus(Duration::from_micros(1)), Millis(6));
        assert_eq!(Millis(5).plus(Duration::from_millis(2)), Millis(7));
        assert_eq!(Millis(5).plus(Duration::MAX), Millis::NEVER);
        assert_eq!(Millis(5).since(Millis(9)), Duration::ZERO);
    }
}
