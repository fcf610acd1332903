use bytes::{Buf, BufMut, BytesMut};
use queen_types::Timestamp;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Microseconds between 1970-01-01 and 2000-01-01, where PostgreSQL counts from.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// A [`Timestamp`] as a `timestamptz` parameter or column, in binary, whatever the session's time zone is.
///
/// `infinity` and `-infinity` are `i64::MAX` and `i64::MIN` microseconds on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PgTimestamp(pub Timestamp);

impl From<Timestamp> for PgTimestamp {
    fn from(timestamp: Timestamp) -> PgTimestamp {
        PgTimestamp(timestamp)
    }
}

impl From<PgTimestamp> for Timestamp {
    fn from(timestamp: PgTimestamp) -> Timestamp {
        timestamp.0
    }
}

impl ToSql for PgTimestamp {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let micros = match self.0.0 {
            infinite @ (i64::MIN | i64::MAX) => infinite,
            // Anything that would collide with the two infinities is far outside PostgreSQL's calendar.
            finite => finite
                .checked_sub(POSTGRES_EPOCH_MICROS)
                .filter(|micros| *micros != i64::MIN)
                .ok_or_else(|| format!("{finite} µs lies before PostgreSQL's calendar"))?,
        };
        out.put_i64(micros);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for PgTimestamp {
    fn from_sql(_: &Type, mut raw: &'a [u8]) -> Result<PgTimestamp, Box<dyn Error + Sync + Send>> {
        if raw.len() != 8 {
            return Err(format!("a timestamptz of {} bytes", raw.len()).into());
        }
        let micros = match raw.get_i64() {
            infinite @ (i64::MIN | i64::MAX) => infinite,
            finite => finite.saturating_add(POSTGRES_EPOCH_MICROS),
        };
        Ok(PgTimestamp(Timestamp(micros)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }
}
