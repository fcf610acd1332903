//! Where a cursor was last known to lie: what spares a claim its look-ups.

use queen_pg::{Row, Tid};

/// Marks a number as that of [`CursorHint::Missing`]; addresses have 48 bits.
const MISSING: u64 = 1 << 63;

/// Where a group's cursor on a partition was last known to lie. An outdated hint costs a claim some look-ups more and
/// changes nothing else.
///
/// ```
/// # use queen_storage::pop::{CursorHint, Tid};
/// let hint = CursorHint::Missing { home: Tid { block: 7, offset: 3 } };
/// assert_eq!(CursorHint::from_u64(hint.to_u64()), hint);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CursorHint {
    /// Nothing is known.
    #[default]
    Unknown,
    /// At this address.
    At(Tid),
    /// There is none yet: the group's next claim is its first here.
    Missing {
        /// The address of the partition's own row.
        home: Tid,
    },
}

impl CursorHint {
    /// The hint as one number, for those who only keep it; 0: nothing is known.
    pub fn to_u64(self) -> u64 {
        match self {
            CursorHint::Unknown => 0,
            CursorHint::At(row) => row.to_u64(),
            CursorHint::Missing { home } => MISSING | home.to_u64(),
        }
    }

    /// The hint that [`CursorHint::to_u64`] made a number of; nothing is known of any other number.
    pub fn from_u64(number: u64) -> Self {
        match Tid::from_u64(number & !MISSING) {
            None => CursorHint::Unknown,
            Some(home) if number & MISSING != 0 => CursorHint::Missing { home },
            Some(row) => CursorHint::At(row),
        }
    }

    /// The address of the cursor, if it is known.
    pub fn row(self) -> Option<Tid> {
        match self {
            CursorHint::At(row) => Some(row),
            CursorHint::Unknown | CursorHint::Missing { .. } => None,
        }
    }

    /// Of a row of a look: an address in one column, and in the next whether it is the partition's, for want of a cursor.
    pub(super) fn read(row: &Row, column: usize) -> Self {
        let (Some(address), Some(missing)) =
            (row.get::<_, Option<Tid>>(column), row.get::<_, Option<bool>>(column + 1))
        else {
            return CursorHint::Unknown;
        };
        if missing { CursorHint::Missing { home: address } } else { CursorHint::At(address) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_survives_as_a_number() {
        for tid in [Tid { block: 0, offset: 1 }, Tid { block: u32::MAX, offset: u16::MAX }] {
            for hint in [CursorHint::At(tid), CursorHint::Missing { home: tid }] {
                assert_eq!(CursorHint::from_u64(hint.to_u64()), hint);
            }
        }
        assert_eq!(CursorHint::Unknown.to_u64(), 0);
        for number in [0, MISSING, 1 << 62, 0xffff_0000] {
            assert_eq!(CursorHint::from_u64(number), CursorHint::Unknown, "{number:x}");
        }
    }

    #[test]
    fn only_a_cursor_has_the_address_of_one() {
        let tid = Tid { block: 4, offset: 2 };
        assert_eq!(CursorHint::At(tid).row(), Some(tid));
        assert_eq!(CursorHint::Missing { home: tid }.row(), None);
        assert_eq!(CursorHint::Unknown.row(), None);
    }
}
