//! What all request bodies share: UTF-8, JSON objects only, borrowed strings.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A refused body; the text is the `error` of the 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BodyError(String);

impl BodyError {
    /// A refusal in words of its own.
    pub(crate) fn refused(text: impl Into<String>) -> BodyError {
        BodyError(text.into())
    }

    /// A body that is not JSON, or not of the shape that its route asks for.
    pub(crate) fn bad(text: impl fmt::Display) -> BodyError {
        BodyError(format!("bad body: {text}"))
    }
}

impl From<serde_json::Error> for BodyError {
    fn from(error: serde_json::Error) -> Self {
        BodyError::bad(error)
    }
}

/// The body as text. Checking it once here spares the parser a check of every string.
pub(crate) fn text(body: &[u8]) -> Result<&str, BodyError> {
    std::str::from_utf8(body).map_err(|e| {
        let before = &body[..e.valid_up_to()];
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&b| b != b'\n').count();
        BodyError::bad(format_args!("invalid UTF-8 at line {line} column {column}"))
    })
}

/// Parses a whole body that has to be a JSON object.
pub(crate) fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, BodyError> {
    Ok(serde_json::from_str::<Obj<T>>(text(body)?)?.0)
}

/// A value that is written as a JSON object. Derived structs alone would also take arrays.
pub(crate) struct Obj<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Obj<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjVisitor<T> {
            type Value = Obj<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Obj)
            }
        }

        deserializer.deserialize_map(ObjVisitor(PhantomData))
    }
}

/// A JSON string, borrowed from the body unless it has escapes. (`Option<Cow<str>>` would always copy.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(v)))
            }

            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(v.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

/// For a field where `null` is a value and only a missing key is absent.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Text that ends in a text column, which holds anything but U+0000.
pub(crate) fn storable(text: Cow<'_, str>) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf8_is_located() {
        assert_eq!(
            text(b"{\n \"a\xff").unwrap_err().to_string(),
            "bad body: invalid UTF-8 at line 2 column 4"
        );
    }
}
