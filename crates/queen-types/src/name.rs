//! Names. Bounds are those of the HTTP contract: characters for what people type, and bytes beside them so that
//! every name fits an index tuple.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Why a name was refused. The text names the field, the bound and what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Shorter or longer than the bounds of its kind.
    #[error("{field} must be {min}..{max} {unit}, got {given}")]
    Length {
        /// What kind of name.
        field: &'static str,
        /// Least length.
        min: usize,
        /// Greatest length.
        max: usize,
        /// `characters` or `bytes`.
        unit: &'static str,
        /// The length given.
        given: usize,
    },
    /// A character below U+0020.
    #[error("control characters are not allowed in {field}")]
    Control {
        /// What kind of name.
        field: &'static str,
    },
}

/// Bounds of one kind of name.
struct Bounds {
    field: &'static str,
    min_chars: usize,
    max_chars: usize,
    max_bytes: usize,
}

impl Bounds {
    fn check(&self, text: &str) -> Result<(), NameError> {
        // Most names are short ASCII: one pass over the bytes decides them.
        if text.len() < self.min_chars || text.len() > self.max_chars {
            let chars = text.chars().count();
            if chars < self.min_chars || chars > self.max_chars {
                let (max, unit, given) = if self.max_chars == usize::MAX {
                    (self.max_bytes, "bytes", text.len())
                } else {
                    (self.max_chars, "characters", chars)
                };
                return Err(NameError::Length { field: self.field, min: self.min_chars, max, unit, given });
            }
        }
        if text.len() > self.max_bytes {
            return Err(NameError::Length {
                field: self.field,
                min: self.min_chars,
                max: self.max_bytes,
                unit: "bytes",
                given: text.len(),
            });
        }
        if text.bytes().any(|b| b < 0x20) {
            return Err(NameError::Control { field: self.field });
        }
        Ok(())
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $field:literal, $min:expr, $max_chars:expr, $max_bytes:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            const BOUNDS: Bounds =
                Bounds { field: $field, min_chars: $min, max_chars: $max_chars, max_bytes: $max_bytes };

            /// Checks the bounds of this kind of name.
            ///
            /// # Errors
            /// [`NameError`] names the bound that was broken.
            pub fn new(text: impl AsRef<str> + Into<Arc<str>>) -> Result<Self, NameError> {
                Self::BOUNDS.check(text.as_ref())?;
                Ok(Self(text.into()))
            }

            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// Name of a queue: 1..255 characters and at most 1,020 bytes, none below U+0020. Case-sensitive, not normalised.
    QueueName, "queue name", 1, 255, 1020
);
name!(
    /// Name of a partition: 0..2048 bytes, no character below U+0020. `""` is a partition of its own.
    PartitionName, "partition name", 0, usize::MAX, 2048
);
name!(
    /// Name of a consumer group: 1..255 characters and at most 1,020 bytes.
    Group, "consumer group", 1, 255, 1020
);
name!(
    /// Namespace of a queue, the first discovery key: 0..255 characters.
    Namespace, "namespace", 0, 255, 1020
);
name!(
    /// Task of a queue, the second discovery key: 0..255 characters.
    Task, "task", 0, 255, 1020
);
name!(
    /// The producer's deduplication key: 0..65535 bytes, no character below U+0020. `""` is a key of its own.
    TransactionId, "transactionId", 0, usize::MAX, 65535
);

impl PartitionName {
    /// The partition of a push that names none.
    pub const DEFAULT: &'static str = "Default";
}

impl Default for PartitionName {
    fn default() -> Self {
        Self(Self::DEFAULT.into())
    }
}

impl Group {
    /// The name under which group-less consumption keeps its one cursor.
    pub const QUEUE_MODE: &'static str = "__QUEUE_MODE__";

    /// The group of a consumer that names none.
    pub fn queue_mode() -> Self {
        Self(Self::QUEUE_MODE.into())
    }

    /// Whether this is group-less consumption, which always subscribes to everything.
    pub fn is_queue_mode(&self) -> bool {
        &*self.0 == Self::QUEUE_MODE
    }
}

impl QueueName {
    /// Namespace and task that an implicitly created queue takes from its name: the text before the first dot, and
    /// the text between the first and the second (empty without a dot).
    pub fn implied(&self) -> (Namespace, Task) {
        let mut parts = self.0.split('.');
        let first = parts.next().unwrap_or("");
        let second = parts.next().unwrap_or("");
        (Namespace(first.into()), Task(second.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_a_queue_name() {
        assert!(QueueName::new("a").is_ok());
        assert!(QueueName::new("n".repeat(255)).is_ok());
        assert!(QueueName::new("é".repeat(255)).is_ok());
        let empty = QueueName::new("").unwrap_err();
        assert_eq!(empty.to_string(), "queue name must be 1..255 characters, got 0");
        let long = QueueName::new("n".repeat(256)).unwrap_err();
        assert_eq!(long.to_string(), "queue name must be 1..255 characters, got 256");
    }

    #[test]
    fn a_name_of_four_byte_characters_fits_its_byte_bound() {
        assert!(QueueName::new("🐝".repeat(255)).is_ok());
        assert!(QueueName::new("🐝".repeat(256)).is_err());
    }

    #[test]
    fn bounds_of_a_partition_name_are_bytes() {
        assert!(PartitionName::new("").is_ok());
        assert!(PartitionName::new("p".repeat(2048)).is_ok());
        let long = PartitionName::new("p".repeat(2049)).unwrap_err();
        assert_eq!(long.to_string(), "partition name must be 0..2048 bytes, got 2049");
    }

    #[test]
    fn control_characters_are_refused_everywhere() {
        for c in ["\u{0}", "\u{1}", "\n", "\u{1f}"] {
            assert_eq!(
                QueueName::new(format!("q{c}")).unwrap_err(),
                NameError::Control { field: "queue name" }
            );
            assert!(PartitionName::new(c).is_err());
            assert!(TransactionId::new(c).is_err());
        }
        assert!(QueueName::new("\u{7f}").is_ok());
    }

    #[test]
    fn implied_namespace_and_task() {
        let of = |n: &str| {
            let (ns, task) = QueueName::new(n).unwrap().implied();
            (ns.to_string(), task.to_string())
        };
        assert_eq!(of("billing.invoice.eu"), ("billing".into(), "invoice".into()));
        assert_eq!(of("plain"), ("plain".into(), String::new()));
        assert_eq!(of(".x"), (String::new(), "x".into()));
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_accepted_comes_back_unchanged(text in "\\PC{0,300}") {
            if let Ok(name) = QueueName::new(text.as_str()) {
                proptest::prop_assert_eq!(name.as_str(), text.as_str());
                proptest::prop_assert!((1..=255).contains(&text.chars().count()));
            }
        }
    }
}
