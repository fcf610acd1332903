//! A JSON writer over a byte buffer. Keys are literals of this crate and need no escaping.

use queen_types::Uuid;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes a string value with its quotes.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut plain = 0;
    for (i, &b) in bytes.iter().enumerate() {
        if b >= 0x20 && b != b'"' && b != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[plain..i]);
        plain = i + 1;
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(b >> 4)]);
                out.push(HEX[usize::from(b & 15)]);
            }
        }
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
}

/// Writes a string or `null`.
pub(crate) fn optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => string(out, text),
        None => raw(out, "null"),
    }
}

/// Writes text as it is.
pub(crate) fn raw(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Writes an integer.
pub(crate) fn int(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut left = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes a count or index.
pub(crate) fn count(out: &mut Vec<u8>, value: usize) {
    int(out, i64::try_from(value).unwrap_or(i64::MAX));
}

/// Writes `true` or `false`.
pub(crate) fn boolean(out: &mut Vec<u8>, value: bool) {
    raw(out, if value { "true" } else { "false" });
}

/// Writes a UUID as a string value, lower case with hyphens.
pub(crate) fn uuid(out: &mut Vec<u8>, id: &Uuid) {
    let mut text = [0u8; 36];
    id.as_hyphenated().encode_lower(&mut text);
    out.push(b'"');
    out.extend_from_slice(&text);
    out.push(b'"');
}

/// An object being written, for answers where clarity matters more than the last nanosecond.
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Object<'a> {
    /// Opens an object at the end of `out`.
    pub(crate) fn open(out: &'a mut Vec<u8>) -> Object<'a> {
        out.push(b'{');
        Object { out, first: true }
    }

    /// Writes a key; the caller writes its value into what is returned.
    pub(crate) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        raw(self.out, key);
        raw(self.out, "\":");
        self.out
    }

    /// As [`Object::key`], for a key that is data.
    pub(crate) fn text_key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        string(self.out, key);
        self.out.push(b':');
        self.out
    }

    pub(crate) fn str(&mut self, key: &str, value: &str) -> &mut Self {
        string(self.key(key), value);
        self
    }

    pub(crate) fn opt(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        optional(self.key(key), value);
        self
    }

    pub(crate) fn int(&mut self, key: &str, value: i64) -> &mut Self {
        int(self.key(key), value);
        self
    }

    pub(crate) fn count(&mut self, key: &str, value: usize) -> &mut Self {
        count(self.key(key), value);
        self
    }

    /// Writes a number; what JSON has no number for is 0.
    pub(crate) fn real(&mut self, key: &str, value: f64) -> &mut Self {
        let value = if value.is_finite() { value } else { 0.0 };
        raw(self.key(key), &value.to_string());
        self
    }

    pub(crate) fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        boolean(self.key(key), value);
        self
    }

    pub(crate) fn uuid(&mut self, key: &str, value: &Uuid) -> &mut Self {
        uuid(self.key(key), value);
        self
    }

    /// Writes a literal value such as `null`.
    pub(crate) fn raw(&mut self, key: &str, value: &str) -> &mut Self {
        raw(self.key(key), value);
        self
    }

    /// Writes an object value.
    pub(crate) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        let mut inner = Object::open(self.key(key));
        fill(&mut inner);
        inner.close();
        self
    }

    /// Writes an array value, one call of `each` per item.
    pub(crate) fn array<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        each: impl FnMut(&mut Vec<u8>, T),
    ) -> &mut Self {
        array(self.key(key), items, each);
        self
    }

    pub(crate) fn close(self) {
        self.out.push(b'}');
    }
}

/// Writes an array, one call of `each` per item.
pub(crate) fn array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut each: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        each(out, item);
    }
    out.push(b']');
}

/// One object as a whole buffer.
pub(crate) fn object(fill: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let mut object = Object::open(&mut out);
    fill(&mut object);
    object.close();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_written_string_reads_back(text in "\\PC*|[\\x00-\\x7f]*") {
            let mut out = Vec::new();
            string(&mut out, &text);
            proptest::prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn a_written_integer_reads_back(value: i64) {
            let mut out = Vec::new();
            int(&mut out, value);
            proptest::prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }

    #[test]
    fn objects_and_arrays_nest() {
        let out = object(|o| {
            o.str("a", "x\"y").opt("b", None).int("c", -3).bool("d", true).raw("e", "null");
            o.array("f", [1, 2], int).object("g", |g| {
                g.int("h", 0);
            });
        });
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"a":"x\"y","b":null,"c":-3,"d":true,"e":null,"f":[1,2],"g":{"h":0}}"#
        );
    }
}
