/// CRC-32C over the parts, in order.
pub(crate) fn crc(parts: &[&[u8]]) -> u32 {
    parts.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part))
}
