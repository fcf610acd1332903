//! Percent-decoding, once, strictly UTF-8.

use std::borrow::Cow;

/// Decoded bytes that are not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not valid UTF-8 after percent-decoding")]
pub struct InvalidUtf8;

/// Decodes one path segment. An incomplete escape stands for itself.
///
/// # Errors
/// [`InvalidUtf8`].
pub fn decode_segment(text: &str) -> Result<Cow<'_, str>, InvalidUtf8> {
    decode(text, false)
}

/// Decodes a key or a value of a query string, where `+` is a space.
pub(crate) fn decode_form(text: &str) -> Result<Cow<'_, str>, InvalidUtf8> {
    decode(text, true)
}

fn decode(text: &str, plus_is_space: bool) -> Result<Cow<'_, str>, InvalidUtf8> {
    if !text.bytes().any(|b| b == b'%' || (plus_is_space && b == b'+')) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match (byte, tail) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push((hex(*high) << 4) | hex(*low));
                rest = after;
            }
            (b'+', _) if plus_is_space => out.push(b' '),
            _ => out.push(byte),
        }
    }
    String::from_utf8(out).map(Cow::Owned).map_err(|_| InvalidUtf8)
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_once() {
        assert_eq!(decode_segment("a%2Fb%2520").unwrap(), "a/b%20");
        assert_eq!(decode_segment("%C3%a9+").unwrap(), "é+");
        assert_eq!(decode_segment("100%").unwrap(), "100%");
        assert_eq!(decode_segment("%zz%4").unwrap(), "%zz%4");
        assert_eq!(decode_form("a+b%2B").unwrap(), "a b+");
        assert_eq!(decode_segment("%ff%fe"), Err(InvalidUtf8));
    }
}
