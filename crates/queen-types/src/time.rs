use std::fmt;

/// An instant in microseconds since 1970-01-01 00:00 UTC, the resolution of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A text that is not an ISO 8601 instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not an ISO 8601 timestamp, e.g. 2031-04-05T06:07:08Z")]
pub struct TimestampError {
    given: String,
}

impl Timestamp {
    /// 1970-01-01, the start point of a group that takes everything.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// Reads ISO 8601: a date with an optional time and an optional offset; no offset means UTC.
    ///
    /// ```
    /// use queen_types::Timestamp;
    /// let t = Timestamp::parse("2031-04-05T06:07:08.123456Z").unwrap();
    /// assert_eq!(t.micros_text(), "2031-04-05T06:07:08.123456Z");
    /// assert_eq!(t, Timestamp::parse("2031-04-05T08:07:08.123456+02:00").unwrap());
    /// assert!(Timestamp::parse("yesterday").is_err());
    /// ```
    ///
    /// # Errors
    /// [`TimestampError`] quotes the text.
    pub fn parse(text: &str) -> Result<Timestamp, TimestampError> {
        let refused = || TimestampError { given: text.chars().take(64).collect() };
        let trimmed = text.trim();
        if let Ok(t) = trimmed.parse::<jiff::Timestamp>() {
            return Ok(Timestamp(t.as_microsecond()));
        }
        let civil: jiff::civil::DateTime = trimmed.parse().map_err(|_| refused())?;
        let zoned = jiff::tz::Offset::UTC.to_timestamp(civil).map_err(|_| refused())?;
        Ok(Timestamp(zoned.as_microsecond()))
    }

    fn civil(self) -> (jiff::civil::DateTime, u32) {
        let t = jiff::Timestamp::from_microsecond(self.0).unwrap_or(if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        });
        let civil = jiff::tz::Offset::UTC.to_datetime(t);
        (civil, (civil.subsec_nanosecond() / 1000).unsigned_abs())
    }

    fn write_seconds(civil: jiff::civil::DateTime, out: &mut String) {
        use fmt::Write;
        let _ = write!(
            out,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            civil.year(),
            civil.month(),
            civil.day(),
            civil.hour(),
            civil.minute(),
            civil.second()
        );
    }

    /// `2031-04-05T06:07:08.123456Z`.
    pub fn micros_text(self) -> String {
        use fmt::Write;
        let (civil, micros) = self.civil();
        let mut out = String::with_capacity(27);
        Self::write_seconds(civil, &mut out);
        let _ = write!(out, ".{micros:06}Z");
        out
    }

    /// `2031-04-05T06:07:08.123Z`.
    pub fn millis_text(self) -> String {
        use fmt::Write;
        let (civil, micros) = self.civil();
        let mut out = String::with_capacity(24);
        Self::write_seconds(civil, &mut out);
        let _ = write!(out, ".{:03}Z", micros / 1000);
        out
    }

    /// `2031-04-05T06:07:08.123456+00:00`, trailing zeros of the fraction dropped.
    pub fn pg_text(self) -> String {
        use fmt::Write;
        let (civil, micros) = self.civil();
        let mut out = String::with_capacity(32);
        Self::write_seconds(civil, &mut out);
        if micros != 0 {
            let _ = write!(out, ".{micros:06}");
            out.truncate(out.trim_end_matches('0').len());
        }
        out.push_str("+00:00");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_renderings() {
        let t = Timestamp::parse("2031-04-05T06:07:08.120400Z").unwrap();
        assert_eq!(t.micros_text(), "2031-04-05T06:07:08.120400Z");
        assert_eq!(t.millis_text(), "2031-04-05T06:07:08.120Z");
        assert_eq!(t.pg_text(), "2031-04-05T06:07:08.1204+00:00");
        assert_eq!(Timestamp::EPOCH.pg_text(), "1970-01-01T00:00:00+00:00");
    }

    #[test]
    fn instants_before_the_epoch_and_beyond_the_calendar_render() {
        assert_eq!(Timestamp(-1).micros_text(), "1969-12-31T23:59:59.999999Z");
        assert!(!Timestamp(i64::MAX).micros_text().is_empty());
        assert!(!Timestamp(i64::MIN).micros_text().is_empty());
    }

    #[test]
    fn what_is_read() {
        for ok in ["2031-04-05", "2031-04-05T06:07:08", "2031-04-05 06:07:08Z", "2031-04-05T06:07:08-03:30"] {
            assert!(Timestamp::parse(ok).is_ok(), "{ok}");
        }
        for bad in ["", "now", "never", "2031-13-01", "2031-04-05T25:00:00Z", "1712300000"] {
            assert!(Timestamp::parse(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn text_reads_back(micros in -62_000_000_000_000_000i64..250_000_000_000_000_000) {
            let t = Timestamp(micros);
            proptest::prop_assert_eq!(Timestamp::parse(&t.micros_text()).unwrap(), t);
            proptest::prop_assert_eq!(Timestamp::parse(&t.pg_text()).unwrap(), t);
        }
    }
}
