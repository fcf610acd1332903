//! From what somebody wrote to a value: types, ranges, spellings.

use toml::de::{DeInteger, DeValue};

use crate::check;
use crate::registry::{Check, Default, Empty, Kind, Variable};
use crate::value::Value;

/// A value that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// The value; `None` when what was written counts as not set.
    pub(crate) value: Option<Value>,
    /// What to warn about, as the end of a sentence that begins with the value.
    pub(crate) warning: Option<String>,
}

/// Why a value was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What is wrong; empty when the allowed range says it.
    pub(crate) reason: String,
    /// What is allowed.
    pub(crate) allowed: String,
}

impl Refused {
    fn because(variable: &Variable, reason: impl Into<String>) -> Refused {
        Refused { reason: reason.into(), allowed: allowed_with_example(variable) }
    }
}

type Outcome = Result<Accepted, Refused>;

fn accept(value: Value) -> Outcome {
    Ok(Accepted { value: Some(value), warning: None })
}

/// Reads the text of an environment variable or of a secret's file.
pub(crate) fn from_text(variable: &Variable, raw: &str) -> Outcome {
    if raw.trim().is_empty() {
        match (variable.empty, raw.is_empty()) {
            (Empty::Unset, _) => return Ok(Accepted { value: None, warning: None }),
            (Empty::Fatal, _) => return Err(Refused::because(variable, "empty")),
            (Empty::Value, _) => {}
        }
    }
    let word = raw.trim();
    match variable.kind {
        Kind::Bool => boolean(word)
            .map_or_else(|| Err(Refused::because(variable, "not a boolean")), |b| accept(Value::Bool(b))),
        Kind::Int { .. } => match word.parse::<i128>() {
            Ok(n) => ranged_int(variable, n),
            Err(_) => Err(Refused::because(variable, "not an integer")),
        },
        Kind::Float { .. } => match word.parse::<f64>() {
            Ok(x) if x.is_finite() => ranged_float(variable, x),
            _ => Err(Refused::because(variable, "not a number")),
        },
        Kind::Choice(words) => choose(variable, words, word),
        Kind::List => {
            let entries = raw.split(',').map(str::trim).filter(|entry| !entry.is_empty());
            list(variable, entries.map(str::to_owned).collect())
        }
        Kind::Text | Kind::Pem(_) => text(variable, raw),
    }
}

/// Reads a value of the configuration file.
pub(crate) fn from_toml(variable: &Variable, value: &DeValue<'_>) -> Outcome {
    match (variable.kind, value) {
        (Kind::Bool, DeValue::Boolean(b)) => accept(Value::Bool(*b)),
        (Kind::Bool, _) => {
            Err(Refused { reason: "not a boolean".to_owned(), allowed: "allowed true or false".to_owned() })
        }
        (Kind::Int { .. }, DeValue::Integer(n)) => match integer(n) {
            Some(n) => ranged_int(variable, n),
            None => Err(Refused::because(variable, "not an integer")),
        },
        (Kind::Int { .. }, _) => Err(Refused::because(variable, "not an integer")),
        (Kind::Float { .. }, DeValue::Float(x)) => match x.as_str().replace('_', "").parse::<f64>() {
            Ok(x) if x.is_finite() => ranged_float(variable, x),
            _ => Err(Refused::because(variable, "not a number")),
        },
        (Kind::Float { .. }, DeValue::Integer(n)) => match integer(n) {
            Some(n) => ranged_float(variable, n as f64),
            None => Err(Refused::because(variable, "not a number")),
        },
        (Kind::Float { .. }, _) => Err(Refused::because(variable, "not a number")),
        // `on` and `off` of a choice are booleans to whoever writes the file.
        (Kind::Choice(words), DeValue::Boolean(b)) => {
            choose(variable, words, if *b { "true" } else { "false" })
        }
        (Kind::List, DeValue::Array(entries)) => {
            let texts: Option<Vec<String>> =
                entries.iter().map(|entry| entry.get_ref().as_str().map(str::to_owned)).collect();
            match texts {
                Some(texts) => list(variable, texts),
                None => Err(Refused::because(variable, "not an array of strings")),
            }
        }
        (_, DeValue::String(s)) => from_text(variable, s),
        (Kind::List, _) => Err(Refused::because(variable, "not an array of strings")),
        _ => Err(Refused::because(variable, "not a string")),
    }
}

fn boolean(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn integer(n: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(&n.as_str().replace('_', ""), n.radix()).ok()
}

fn ranged_int(variable: &Variable, n: i128) -> Outcome {
    let Kind::Int { fatal, clamp, warn_below, warn_above } = variable.kind else {
        return Err(Refused::because(variable, "not an integer"));
    };
    if n < fatal.0.into() || n > fatal.1.into() {
        // Bounds as wide as the type only say that it did not fit.
        let reason = if fatal == (i64::MIN, i64::MAX) { "too large" } else { "" };
        return Err(Refused::because(variable, reason));
    }
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    let (min, max) = clamp.unwrap_or((i64::MIN, i64::MAX));
    let in_force = n.clamp(min, max);
    let warning = if in_force != n {
        Some(format!("{in_force} in force; allowed {}", clamp_range(min, max)))
    } else if warn_below.is_some_and(|floor| n < floor) {
        Some(format!("is low; at least {} advised", warn_below.unwrap_or(n)))
    } else if warn_above.is_some_and(|ceiling| n > ceiling) {
        Some(format!("is high; at most {} advised", warn_above.unwrap_or(n)))
    } else {
        None
    };
    Ok(Accepted { value: Some(Value::Int(in_force)), warning })
}

fn ranged_float(variable: &Variable, x: f64) -> Outcome {
    let Kind::Float { fatal, clamp_min } = variable.kind else {
        return Err(Refused::because(variable, "not a number"));
    };
    if x < fatal.0 || x > fatal.1 {
        return Err(Refused::because(variable, ""));
    }
    match clamp_min.filter(|min| x < *min) {
        Some(min) => Ok(Accepted {
            value: Some(Value::Float(min)),
            warning: Some(format!("{min} in force; allowed at least {min}")),
        }),
        None => accept(Value::Float(x)),
    }
}

fn choose(variable: &Variable, words: &[(&'static str, &[&str])], given: &str) -> Outcome {
    let is = |spelling: &&str| spelling.eq_ignore_ascii_case(given);
    let found = words.iter().find(|(word, others)| is(word) || others.iter().any(is));
    match found {
        Some((word, _)) => accept(Value::Text((*word).to_owned())),
        None => Err(Refused::because(variable, "not one of the allowed words")),
    }
}

fn list(variable: &Variable, entries: Vec<String>) -> Outcome {
    for entry in &entries {
        check::text(variable.check, entry).map_err(|reason| Refused::because(variable, reason))?;
    }
    accept(Value::List(entries))
}

fn text(variable: &Variable, raw: &str) -> Outcome {
    if let Kind::Pem(label) = variable.kind {
        // Environment files hold one line a variable, so a line break may be written as two characters.
        let pem = raw.replace("\\n", "\n");
        check::pem(&pem, label).map_err(|reason| Refused::because(variable, reason))?;
        return accept(Value::Text(pem));
    }
    // A password may begin or end with spaces; nothing else may.
    let kept = if variable.secret { raw } else { raw.trim() };
    check::text(variable.check, kept).map_err(|reason| Refused::because(variable, reason))?;
    accept(Value::Text(kept.to_owned()))
}

/// What a variable may be, without an example: `1 to 10000`.
pub(crate) fn allowed(variable: &Variable) -> String {
    match (variable.kind, variable.check) {
        (Kind::Bool, _) => "true/false, 1/0, yes/no, on/off".to_owned(),
        (Kind::Int { fatal, clamp, .. }, _) => match clamp {
            Some((min, max)) if fatal == (i64::MIN, i64::MAX) => clamp_range(min, max),
            _ => clamp_range(fatal.0, fatal.1),
        },
        (Kind::Float { fatal, clamp_min: None }, _) => format!("{} to {}", fatal.0, fatal.1),
        (Kind::Float { clamp_min: Some(min), .. }, _) => format!("at least {min}"),
        (Kind::Choice(words), _) => words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", "),
        (Kind::Pem(label), _) => format!("PEM text with a {label} block, not a path"),
        (_, Check::Host) => "a host name or an IP address, without a port".to_owned(),
        (_, Check::ServerId) => "1 to 128 bytes, no control characters".to_owned(),
        (_, Check::LogFilter) => {
            "a level (off, error, warn, info, debug, trace) or filter directives".to_owned()
        }
        (_, Check::Hex64) => "exactly 64 hexadecimal digits".to_owned(),
        (_, Check::Url) => "an http or https address".to_owned(),
        (Kind::List, Check::Peers) => "host[:port], separated by commas".to_owned(),
        (Kind::List, _) => "texts separated by commas".to_owned(),
        (Kind::Text, _) => "any text".to_owned(),
    }
}

fn clamp_range(min: i64, max: i64) -> String {
    if max == i64::MAX { format!("at least {min}") } else { format!("{min} to {max}") }
}

/// `allowed 1 to 10000, e.g. 160`.
fn allowed_with_example(variable: &Variable) -> String {
    let allowed = allowed(variable);
    match example(variable) {
        Some(example) => format!("allowed {allowed}, e.g. {example}"),
        None => format!("allowed {allowed}"),
    }
}

fn example(variable: &Variable) -> Option<String> {
    if !variable.example.is_empty() {
        return Some(variable.example.to_owned());
    }
    match variable.default {
        Default::Int(n) => Some(n.to_string()),
        Default::Float(x) => Some(x.to_string()),
        Default::Text(t) if !variable.secret => Some(t.to_owned()),
        _ => None,
    }
}
