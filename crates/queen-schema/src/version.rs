//! The schema version row: which shape a database has, and whether this binary may use it.

use crate::error::SchemaError;
use crate::manifest::{Object, Statement, without_comments};
use std::fmt;
use xxhash_rust::xxh3::xxh3_128;

/// Counts the shapes that were released.
pub const SCHEMA_VERSION: i32 = 1;

/// Fingerprints of shapes that this one only adds to. Empty before 1.0.
const PREDECESSORS: &[&str] = &[];

/// The fingerprint of this binary's table shapes, 32 hexadecimal digits.
///
/// # Errors
/// [`SchemaError::Manifest`] when the embedded files cannot be read.
pub fn fingerprint() -> Result<String, SchemaError> {
    Ok(fingerprint_of(&crate::manifest::statements()?))
}

/// Over the tables and later columns alone: indexes and storage parameters are no shape, they are put right in place.
/// Comments and white space do not count.
pub(crate) fn fingerprint_of(statements: &[Statement]) -> String {
    let mut text = String::new();
    for statement in statements {
        if matches!(statement.object, Object::Table(_) | Object::Column(..)) {
            text.extend(without_comments(statement.sql).split_whitespace().flat_map(|word| [word, " "]));
            text.push('\n');
        }
    }
    format!("{:032x}", xxh3_128(text.as_bytes()))
}

/// The content of the row, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) version: String,
    pub(crate) product: String,
    pub(crate) fingerprint: String,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (schema {}, fingerprint {})", self.product, self.version, self.fingerprint)
    }
}

/// What the row says about the way to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No table of ours: apply, and write the row as early as possible.
    Virgin,
    /// Our shape: apply what is missing.
    Ours,
    /// A shape that ours only adds to: apply, then overwrite the row.
    Predecessor,
    /// Not ours, but the operator wants to go on: apply what is missing.
    Tolerated,
    /// Not ours and newer, but the operator wants to go on: serve, apply nothing.
    Newer,
}

/// # Errors
/// The two shapes in words, when the database must not be used.
pub(crate) fn judge(
    found: Option<&Stamp>,
    has_tables: bool,
    own_fingerprint: &str,
    tolerant: bool,
) -> Result<Verdict, String> {
    let found = match found {
        None if !has_tables => return Ok(Verdict::Virgin),
        Some(stamp) if stamp.fingerprint == own_fingerprint => return Ok(Verdict::Ours),
        Some(stamp) if PREDECESSORS.contains(&stamp.fingerprint.as_str()) => return Ok(Verdict::Predecessor),
        found => found,
    };
    if tolerant {
        let newer = found.and_then(|stamp| stamp.version.parse::<i32>().ok()) > Some(SCHEMA_VERSION);
        return Ok(if newer { Verdict::Newer } else { Verdict::Tolerated });
    }
    Err(found.map_or_else(|| "something that left no schema version row".to_owned(), Stamp::to_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(version: &str, fingerprint: &str) -> Stamp {
        Stamp {
            version: version.to_owned(),
            product: "9.8.7".to_owned(),
            fingerprint: fingerprint.to_owned(),
        }
    }

    #[test]
    fn who_may_go_on() {
        let (ours, other, newer) = (stamp("1", "own"), stamp("1", "other"), stamp("2", "other"));
        let odd = stamp("many", "other");
        let table = [
            (None, false, false, Ok(Verdict::Virgin)),
            (None, false, true, Ok(Verdict::Virgin)),
            (None, true, true, Ok(Verdict::Tolerated)),
            (Some(&ours), true, false, Ok(Verdict::Ours)),
            (Some(&ours), true, true, Ok(Verdict::Ours)),
            (Some(&other), true, true, Ok(Verdict::Tolerated)),
            (Some(&newer), true, true, Ok(Verdict::Newer)),
            (Some(&odd), true, true, Ok(Verdict::Tolerated)),
        ];
        for (found, has_tables, tolerant, expected) in table {
            assert_eq!(
                judge(found, has_tables, "own", tolerant),
                expected,
                "{found:?} {has_tables} {tolerant}"
            );
        }
        for (found, says) in
            [(None, "no schema version row"), (Some(&other), "9.8.7"), (Some(&newer), "schema 2")]
        {
            let refused = judge(found, true, "own", false).unwrap_err();
            assert!(refused.contains(says), "{refused}");
        }
        // Even an otherwise empty database, when its row is not ours.
        assert!(judge(Some(&other), false, "own", false).is_err());
    }

    #[test]
    fn layout_and_comments_are_no_shape() {
        let statement = |object: Object, sql: &'static str| Statement { file: "f", object, sql };
        let name = || crate::manifest::Name { schema: "queen".to_owned(), name: "t".to_owned() };
        let base = fingerprint_of(&[statement(Object::Table(name()), "CREATE TABLE queen.t (a INTEGER)")]);
        let same = [
            statement(Object::Table(name()), "CREATE  TABLE queen.t -- why\n (a   INTEGER)\n"),
            statement(Object::Index(name()), "CREATE INDEX x ON queen.t (a)"),
        ];
        assert_eq!(fingerprint_of(&same), base);
        let other = [statement(Object::Table(name()), "CREATE TABLE queen.t (a BIGINT)")];
        assert_ne!(fingerprint_of(&other), base);
        assert_eq!(fingerprint().unwrap().len(), 32);
    }
}
