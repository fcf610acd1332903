use bytes::{Buf, BufMut, BytesMut};
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Where a row version lies: PostgreSQL's `tid`, the value of the system column `ctid`.
///
/// It names a version, not a row: an update moves the row, and a vacuumed place is used again. A statement that looks a
/// row up by its address therefore repeats the row's key among its conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tid {
    /// Block of the table.
    pub block: u32,
    /// Line pointer in the block, from 1.
    pub offset: u16,
}

impl Tid {
    /// The address as one number, for those who only keep it.
    pub fn to_u64(self) -> u64 {
        u64::from(self.block) << 16 | u64::from(self.offset)
    }

    /// The address that [`Tid::to_u64`] made a number of; `None` for 0, which is no address.
    pub fn from_u64(number: u64) -> Option<Tid> {
        let tid = Tid { block: u32::try_from(number >> 16).ok()?, offset: (number & 0xffff) as u16 };
        (tid.offset != 0).then_some(tid)
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
        if raw.len() != 6 {
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
    use super::Tid;

    #[test]
    fn an_address_survives_as_a_number() {
        for tid in [Tid { block: 0, offset: 1 }, Tid { block: u32::MAX, offset: u16::MAX }] {
            assert_eq!(Tid::from_u64(tid.to_u64()), Some(tid));
        }
        assert_eq!(Tid::from_u64(0), None);
    }
}
