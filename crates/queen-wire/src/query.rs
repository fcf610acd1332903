//! Query strings. Two rules exist: the data plane refuses what it cannot read, management falls back to defaults.

use std::borrow::Cow;
use std::str::FromStr;

use queen_types::{NameError, Timestamp};

use crate::percent::decode_form;

/// A refused query string; the text is the `error` of the 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(String);

impl QueryError {
    pub(crate) fn value(key: &str, value: &str, expected: &str) -> QueryError {
        let shown: String = value.chars().take(64).collect();
        QueryError(format!("Failed to deserialize query string: {key} must be {expected}, got {shown:?}"))
    }

    pub(crate) fn text(text: impl Into<String>) -> QueryError {
        QueryError(text.into())
    }
}

/// The decoded pairs of a query string.
#[derive(Debug, Default)]
pub struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    /// Decodes what follows the `?`.
    ///
    /// # Errors
    /// A key or value that is not UTF-8.
    pub fn parse(raw: Option<&'a str>) -> Result<Query<'a>, QueryError> {
        let mut pairs = Vec::new();
        for pair in raw.unwrap_or("").split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let bad = |_| QueryError(format!("Failed to deserialize query string: {key} is not valid UTF-8"));
            pairs.push((decode_form(key).map_err(bad)?, decode_form(value).map_err(bad)?));
        }
        Ok(Query { pairs })
    }

    /// Data plane: the text of a key. The empty text is a text.
    ///
    /// # Errors
    /// The key stands there twice.
    pub fn strict(&self, key: &str) -> Result<Option<&str>, QueryError> {
        let mut found = self.pairs.iter().filter(|(k, _)| k == key);
        let first = found.next().map(|(_, v)| &**v);
        match found.next() {
            Some(_) => {
                Err(QueryError(format!("Failed to deserialize query string: {key} is given more than once")))
            }
            None => Ok(first),
        }
    }

    /// Data plane: `true` or `false`, nothing else.
    ///
    /// # Errors
    /// Any other text, or the key twice.
    pub fn strict_bool(&self, key: &str) -> Result<Option<bool>, QueryError> {
        match self.strict(key)? {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(QueryError::value(key, other, "true or false")),
        }
    }

    /// Data plane: a number of the type asked for.
    ///
    /// # Errors
    /// Any other text, a number out of range, or the key twice.
    pub fn strict_number<T: FromStr>(&self, key: &str, expected: &str) -> Result<Option<T>, QueryError> {
        match self.strict(key)? {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| QueryError::value(key, text, expected)),
        }
    }

    /// Management: the last value of a key; an empty one is absent.
    pub fn lenient(&self, key: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(k, _)| k == key).map(|(_, v)| &**v).filter(|v| !v.is_empty())
    }

    /// Management: a name, as the value of `lenient`.
    ///
    /// # Errors
    /// The name is out of bounds.
    pub(crate) fn lenient_name<'q, T>(
        &'q self,
        key: &str,
        new: impl FnOnce(&'q str) -> Result<T, NameError>,
    ) -> Result<Option<T>, QueryError> {
        self.lenient(key).map(new).transpose().map_err(|e| QueryError::text(e.to_string()))
    }

    /// Management: a time.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn lenient_time(&self, key: &str) -> Result<Option<Timestamp>, QueryError> {
        let Some(text) = self.lenient(key) else { return Ok(None) };
        Timestamp::parse(text).map(Some).map_err(|e| QueryError::text(format!("{key}: {e}")))
    }

    /// Management: a switch; what is unreadable is `default`.
    pub fn lenient_bool(&self, key: &str, default: bool) -> bool {
        match self.lenient(key) {
            Some("true" | "1" | "yes") => true,
            Some("false" | "0" | "no") => false,
            _ => default,
        }
    }

    /// Management: a page size or position. Negative is 0, beyond 32 bits is the largest, unreadable is `default`.
    pub fn lenient_page(&self, key: &str, default: i64) -> i64 {
        let Some(text) = self.lenient(key) else { return default };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return default;
        }
        if negative {
            return 0;
        }
        let largest = i64::from(i32::MAX);
        digits.parse::<i64>().unwrap_or(largest).min(largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_values() {
        let q = Query::parse(Some("a=1&b=true&c=&d=x+y&e=1&e=2&f=99999999999&=9&g")).unwrap();
        assert_eq!(q.strict_number::<i32>("a", "n").unwrap(), Some(1));
        assert_eq!(q.strict_bool("b").unwrap(), Some(true));
        assert_eq!(q.strict("c").unwrap(), Some(""));
        assert!(q.strict_number::<i32>("c", "n").is_err() && q.strict_bool("c").is_err());
        assert_eq!(q.strict("d").unwrap(), Some("x y"));
        assert!(q.strict("e").is_err());
        assert!(q.strict_number::<i32>("f", "n").is_err());
        assert_eq!(q.strict("g").unwrap(), Some(""));
        assert_eq!(q.strict("h").unwrap(), None);
        assert!(Query::parse(Some("a=%ff")).is_err());
    }

    #[test]
    fn lenient_values() {
        let q = Query::parse(Some("a=1&a=7&b=yes&c=True&d=&l=abc&m=-5&n=99999999999999999999999")).unwrap();
        assert_eq!(q.lenient("a"), Some("7"));
        assert!(q.lenient_bool("b", false) && !q.lenient_bool("c", false));
        assert_eq!(q.lenient("d"), None);
        assert_eq!(q.lenient_page("l", 100), 100);
        assert_eq!(q.lenient_page("m", 100), 0);
        assert_eq!(q.lenient_page("n", 100), i64::from(i32::MAX));
    }
}
