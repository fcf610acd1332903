//! One row of the registry.

/// A variable: how it is called, what it may be, what it does.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// The environment name.
    pub name: &'static str,
    /// Other environment names.
    pub aliases: &'static [Alias],
    /// The key in the configuration file; `None` when it can only be set in the environment.
    pub key: Option<&'static str>,
    /// Type and range.
    pub kind: Kind,
    /// Value when nothing sets it.
    pub default: Default,
    /// What is checked beyond type and range.
    pub check: Check,
    /// What an empty value means.
    pub empty: Empty,
    /// Never shown.
    pub secret: bool,
    /// Whether `<NAME>_FILE` (and `<key>_file`) may name a file that holds the value.
    pub file: bool,
    /// Whether this version acts on it.
    pub effect: Effect,
    /// Example of a good value, for messages; the default serves when this is empty.
    pub example: &'static str,
    /// What it does, in sentences.
    pub doc: &'static str,
}

/// Another environment name of a variable.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    /// The name.
    pub name: &'static str,
    /// How it relates to the variable's own name.
    pub kind: AliasKind,
}

/// How an alias relates to the name it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AliasKind {
    /// Wins over the variable's own name.
    Wins,
    /// Yields to it.
    Yields,
    /// Yields to it, and its use is worth a remark.
    Legacy,
    /// Set by the platform, not by the operator: a fallback that never conflicts.
    Platform,
}

/// Type and range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// true/false, 1/0, yes/no, on/off.
    Bool,
    /// An integer.
    Int {
        /// Outside of it the process does not start.
        fatal: (i64, i64),
        /// Outside of it the value is moved to the nearer end, with a warning.
        clamp: Option<(i64, i64)>,
        /// Below it there is a warning.
        warn_below: Option<i64>,
        /// Above it there is a warning.
        warn_above: Option<i64>,
    },
    /// A finite number.
    Float {
        /// Outside of it the process does not start.
        fatal: (f64, f64),
        /// Below it the value is raised, with a warning.
        clamp_min: Option<f64>,
    },
    /// Text.
    Text,
    /// One of some words, each with other spellings; case does not matter.
    Choice(&'static [(&'static str, &'static [&'static str])]),
    /// Texts separated by commas; in the file an array of strings.
    List,
    /// PEM text holding blocks whose label ends in the given words.
    Pem(&'static str),
}

/// Value when nothing sets it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text, or a word of a choice.
    Text(&'static str),
    /// A list.
    List(&'static [&'static str]),
    /// Nothing.
    Unset,
    /// Computed from other values; the text says how.
    Derived(&'static str),
}

/// Checks beyond type and range. All are fatal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// None.
    Any,
    /// A host name or an IP address without a port.
    Host,
    /// 1..128 bytes, no control characters.
    ServerId,
    /// A filter of log events.
    LogFilter,
    /// Exactly 64 hexadecimal digits (each entry, for a list).
    Hex64,
    /// An http or https address.
    Url,
    /// `host[:port]` entries, a leading `http://` tolerated.
    Peers,
}

/// What an empty value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// As if the name were not set.
    Unset,
    /// A value of its own: the empty list, no password.
    Value,
    /// The process does not start.
    Fatal,
}

/// Whether this version acts on a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Yes.
    Live,
    /// Accepted and checked; the feature it belongs to is not part of this version.
    Planned,
    /// Accepted and checked; it tunes a structure that this product does not have.
    Without,
}

const fn row(name: &'static str, key: &'static str, kind: Kind, default: Default) -> Variable {
    Variable {
        name,
        aliases: &[],
        key: if key.is_empty() { None } else { Some(key) },
        kind,
        default,
        check: Check::Any,
        empty: Empty::Unset,
        secret: false,
        file: false,
        effect: Effect::Planned,
        example: "",
        doc: "",
    }
}

/// A boolean.
pub(super) const fn boolean(name: &'static str, key: &'static str, default: bool) -> Variable {
    row(name, key, Kind::Bool, Default::Bool(default))
}

/// A boolean that follows another value.
pub(super) const fn boolean_like(name: &'static str, key: &'static str, of: &'static str) -> Variable {
    row(name, key, Kind::Bool, Default::Derived(of))
}

/// An integer that is fatal outside of a range.
pub(super) const fn int(name: &'static str, key: &'static str, default: i64, min: i64, max: i64) -> Variable {
    let kind = Kind::Int { fatal: (min, max), clamp: None, warn_below: None, warn_above: None };
    row(name, key, kind, Default::Int(default))
}

/// An integer that is moved into a range. Every integer parses.
pub(super) const fn clamped(
    name: &'static str,
    key: &'static str,
    default: i64,
    min: i64,
    max: i64,
) -> Variable {
    let kind = Kind::Int {
        fatal: (i64::MIN, i64::MAX),
        clamp: Some((min, max)),
        warn_below: None,
        warn_above: None,
    };
    row(name, key, kind, Default::Int(default))
}

/// An integer that is raised to a floor.
pub(super) const fn at_least(name: &'static str, key: &'static str, default: i64, min: i64) -> Variable {
    clamped(name, key, default, min, i64::MAX)
}

/// A number that is fatal outside of a range.
pub(super) const fn float(
    name: &'static str,
    key: &'static str,
    default: f64,
    min: f64,
    max: f64,
) -> Variable {
    row(name, key, Kind::Float { fatal: (min, max), clamp_min: None }, Default::Float(default))
}

/// A number that is raised to a floor.
pub(super) const fn float_at_least(
    name: &'static str,
    key: &'static str,
    default: f64,
    min: f64,
) -> Variable {
    let kind = Kind::Float { fatal: (f64::MIN, f64::MAX), clamp_min: Some(min) };
    row(name, key, kind, Default::Float(default))
}

/// Text with a default.
pub(super) const fn text(name: &'static str, key: &'static str, default: &'static str) -> Variable {
    row(name, key, Kind::Text, Default::Text(default))
}

/// Text without a default.
pub(super) const fn optional(name: &'static str, key: &'static str) -> Variable {
    row(name, key, Kind::Text, Default::Unset)
}

/// A secret text, which a file may hold.
pub(super) const fn secret(name: &'static str, key: &'static str) -> Variable {
    let mut variable = row(name, key, Kind::Text, Default::Unset);
    variable.secret = true;
    variable.file = true;
    variable
}

/// PEM text, which a file may hold. `label` ends the label of its blocks.
pub(super) const fn pem(name: &'static str, key: &'static str, label: &'static str) -> Variable {
    let mut variable = row(name, key, Kind::Pem(label), Default::Unset);
    variable.file = true;
    variable
}

/// One of some words, each with its other spellings.
pub(super) const fn choice(
    name: &'static str,
    key: &'static str,
    default: &'static str,
    words: &'static [(&'static str, &'static [&'static str])],
) -> Variable {
    row(name, key, Kind::Choice(words), Default::Text(default))
}

/// A list.
pub(super) const fn list(
    name: &'static str,
    key: &'static str,
    default: &'static [&'static str],
) -> Variable {
    row(name, key, Kind::List, Default::List(default))
}

impl Variable {
    /// Default computed from other values instead of a constant.
    pub(super) const fn derived(mut self, how: &'static str) -> Variable {
        self.default = Default::Derived(how);
        self
    }

    pub(super) const fn or(mut self, aliases: &'static [Alias]) -> Variable {
        self.aliases = aliases;
        self
    }

    pub(super) const fn checked(mut self, check: Check) -> Variable {
        self.check = check;
        self
    }

    pub(super) const fn empty(mut self, empty: Empty) -> Variable {
        self.empty = empty;
        self
    }

    /// Values in `min..floor` are raised to `floor`.
    pub(super) const fn raised_to(mut self, floor: i64) -> Variable {
        if let Kind::Int { fatal, warn_below, warn_above, .. } = self.kind {
            self.kind = Kind::Int { fatal, clamp: Some((floor, fatal.1)), warn_below, warn_above };
        }
        self
    }

    pub(super) const fn warn_below(mut self, floor: i64) -> Variable {
        if let Kind::Int { fatal, clamp, warn_above, .. } = self.kind {
            self.kind = Kind::Int { fatal, clamp, warn_below: Some(floor), warn_above };
        }
        self
    }

    pub(super) const fn warn_above(mut self, ceiling: i64) -> Variable {
        if let Kind::Int { fatal, clamp, warn_below, .. } = self.kind {
            self.kind = Kind::Int { fatal, clamp, warn_below, warn_above: Some(ceiling) };
        }
        self
    }

    pub(super) const fn like(mut self, example: &'static str) -> Variable {
        self.example = example;
        self
    }

    /// This version acts on it.
    pub(super) const fn live(mut self) -> Variable {
        self.effect = Effect::Live;
        self
    }

    /// It tunes a structure that this product does not have.
    pub(super) const fn without_effect(mut self) -> Variable {
        self.effect = Effect::Without;
        self
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> Variable {
        self.doc = doc;
        self
    }

    /// Where the value lives among the merged values.
    pub(crate) fn path(&self) -> String {
        match self.key {
            Some(key) => key.to_owned(),
            None => format!("environment_only.{}", self.name.to_ascii_lowercase()),
        }
    }
}
