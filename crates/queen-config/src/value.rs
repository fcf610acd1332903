//! Values as they are after parsing.

use figment::value::Value as Figment;

use crate::registry::{Default, Variable};

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

impl Value {
    /// The constant default of a variable, if it has one.
    pub(crate) fn default_of(variable: &Variable) -> Option<Value> {
        match variable.default {
            Default::Bool(b) => Some(Value::Bool(b)),
            Default::Int(n) => Some(Value::Int(n)),
            Default::Float(x) => Some(Value::Float(x)),
            Default::Text(t) => Some(Value::Text(t.to_owned())),
            Default::List(l) => Some(Value::List(l.iter().map(|t| (*t).to_owned()).collect())),
            Default::Unset | Default::Derived(_) => None,
        }
    }

    /// The text of an environment variable with this value. Secrets too: mask before showing.
    pub(crate) fn plain(&self) -> String {
        match self {
            Value::Bool(b) => b.to_string(),
            Value::Int(n) => n.to_string(),
            Value::Float(x) => x.to_string(),
            Value::Text(t) => t.clone(),
            Value::List(l) => l.join(","),
        }
    }

    pub(crate) fn into_figment(self) -> Figment {
        match self {
            Value::Bool(b) => Figment::from(b),
            Value::Int(n) => Figment::from(n),
            Value::Float(x) => Figment::from(x),
            Value::Text(t) => Figment::from(t),
            Value::List(l) => Figment::from(l),
        }
    }
}

/// How a secret is shown.
pub(crate) fn masked(text: &str) -> String {
    format!("<set:{} chars>", text.chars().count())
}

/// A value that somebody gave, for a message: quoted, escaped, cut when it is long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 80;
    if text.chars().count() <= SHOWN {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(SHOWN).collect();
    format!("{head:?}...")
}
