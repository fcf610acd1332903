use bytes::{Buf, BufMut, BytesMut};
use std::error::Error;
use std::fmt;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Bytes of an address on the wire: four of the block, two of the item.
const WIRE_BYTES: usize = 6;

/// Where a version of a row lies: PostgreSQL's `tid`, the type of the system column `ctid`. As a parameter or column in
/// binary, and in arrays of it.
///
/// An address is a hint and nothing more. Each update of a row moves it to another address, and the place that it leaves
/// is given to other rows in time. Whoever reads or writes by an address must check that the row there is the one meant.
///
/// ```
/// # use queen_pg::Tid;
/// assert_eq!(Tid { block: 7, offset: 3 }.to_string(), "(7,3)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid {
    /// Page of the table, from 0.
    pub block: u32,
    /// Item on the page, from 1.
    pub offset: u16,
}

impl Tid {
    /// The address as one number, for those who only keep it.
    pub fn to_u64(self) -> u64 {
        u64::from(self.block) << 16 | u64::from(self.offset)
    }

    /// The address that [`Tid::to_u64`] made a number of; `None` for 0 and what else is no address.
    pub fn from_u64(number: u64) -> Option<Tid> {
        let tid = Tid { block: u32::try_from(number >> 16).ok()?, offset: (number & 0xffff) as u16 };
        (tid.offset != 0).then_some(tid)
    }
}

/// As PostgreSQL writes it: `(block,offset)`.
impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.offset)
    }
}

impl ToSql for Tid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_u32(self.block);
        out.put_u16(self.offset);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Tid {
    fn from_sql(_: &Type, mut raw: &'a [u8]) -> Result<Tid, Box<dyn Error + Sync + Send>> {
        if raw.len() != WIRE_BYTES {
            return Err(format!("a tid of {} bytes", raw.len()).into());
        }
        Ok(Tid { block: raw.get_u32(), offset: raw.get_u16() })
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TID
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_another_length_are_refused() {
        for raw in [&[0u8; 5][..], &[0; 7], &[]] {
            assert!(Tid::from_sql(&Type::TID, raw).is_err());
        }
        assert_eq!(Tid::from_sql(&Type::TID, &[0, 0, 1, 0, 0, 2]).unwrap(), Tid { block: 256, offset: 2 });
    }

    #[test]
    fn an_address_survives_as_a_number() {
        for tid in [Tid { block: 0, offset: 1 }, Tid { block: u32::MAX, offset: u16::MAX }] {
            assert_eq!(Tid::from_u64(tid.to_u64()), Some(tid));
        }
        assert_eq!(Tid::from_u64(0), None);
    }
}
