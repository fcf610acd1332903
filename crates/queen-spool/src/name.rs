//! Names of spool files: `queen-<13-digit epoch ms>-<8-digit sequence>.tmp` while written, `.buf` once closed. The order
//! of the names is the order of the events.

use std::time::{SystemTime, UNIX_EPOCH};

/// Ending of the file that is written.
pub(crate) const ACTIVE: &str = ".tmp";
/// Ending of a file that is complete.
pub(crate) const READY: &str = ".buf";
/// Ending of a file that could not be moved to quarantine.
pub(crate) const BAD: &str = ".bad";
/// Ending of the bytes behind a damaged record.
pub(crate) const REST: &str = ".rest";
/// Ending of what is known of the events of a quarantined file.
pub(crate) const REASON: &str = ".reason.json";
/// Folder of what can not be stored.
pub(crate) const FAILED: &str = "failed";
/// The lock.
pub(crate) const LOCK: &str = ".lock";

/// Mints names in ascending order, whatever the clock does.
#[derive(Debug, Default)]
pub(crate) struct Names {
    last_ms: u64,
    sequence: u64,
}

impl Names {
    /// Names behind the given one, which is the last that exists.
    pub(crate) fn after(newest: Option<&str>) -> Names {
        let last_ms = newest.and_then(|name| name.get(6..19)).and_then(|ms| ms.parse().ok()).unwrap_or(0);
        Names { last_ms, sequence: 0 }
    }

    /// The next stem.
    pub(crate) fn mint(&mut self) -> String {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let clock = u64::try_from(clock).unwrap_or(u64::MAX);
        // A clock that went back, or a name of the same millisecond, must not sort before what is there.
        self.last_ms = clock.max(self.last_ms + 1).min(9_999_999_999_999);
        let stem = format!("queen-{:013}-{:08}", self.last_ms, self.sequence % 100_000_000);
        self.sequence += 1;
        stem
    }
}

/// The stem of a name with that ending, when it is a name of ours.
pub(crate) fn stem<'n>(name: &'n str, ending: &str) -> Option<&'n str> {
    let stem = name.strip_suffix(ending)?;
    let (ms, sequence) = stem.strip_prefix("queen-")?.split_once('-')?;
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    (digits(ms, 13) && digits(sequence, 8)).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ascend_even_behind_a_name_of_the_future() {
        let mut names = Names::after(Some("queen-9000000000000-00000007.buf"));
        let (a, b) = (names.mint(), names.mint());
        assert!("queen-9000000000000-99999999" < a.as_str() && a < b, "{a} {b}");
        let mut names = Names::default();
        let minted: Vec<String> = (0..100).map(|_| names.mint()).collect();
        assert!(minted.is_sorted() && minted.iter().all(|n| stem(&format!("{n}.tmp"), ACTIVE).is_some()));
    }

    #[test]
    fn foreign_names_are_none_of_ours() {
        assert_eq!(stem("queen-1700000000000-00000001.buf", READY), Some("queen-1700000000000-00000001"));
        for name in ["queen-1-2.buf", "x.buf", ".lock", "queen-1700000000000-00000001.tmp", "é.buf"] {
            assert_eq!(stem(name, READY), None, "{name}");
        }
    }
}
