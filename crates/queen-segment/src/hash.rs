use std::fmt;

/// Identity of a message inside its partition: xxh3_128 (seed 0) of the transaction id, as big-endian bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TxnHash(pub [u8; 16]);

impl TxnHash {
    /// Hashes the UTF-8 bytes of a transaction id.
    pub fn of(transaction_id: &[u8]) -> TxnHash {
        TxnHash(xxhash_rust::xxh3::xxh3_128(transaction_id).to_be_bytes())
    }

    /// 32 lower-case hexadecimal digits.
    pub fn to_hex(self) -> String {
        format!("{self}")
    }
}

impl fmt::Display for TxnHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for TxnHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TxnHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_hold() {
        assert_eq!(TxnHash::of(b"").to_hex(), "99aa06d3014798d86001c324468d497f");
        assert_eq!(TxnHash::of(b"txn-0001").to_hex(), "e6db1a376171f085299a000943065f9c");
        assert_eq!(TxnHash::of(b"").0[..4], [0x99, 0xaa, 0x06, 0xd3]);
    }

    #[test]
    fn hex_keeps_leading_zeros() {
        assert_eq!(TxnHash([0; 16]).to_hex(), "0".repeat(32));
    }
}
