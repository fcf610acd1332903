//! The layers on top of each other: defaults below the file below the environment; derived values fill what is left.

use figment::value::{Dict, Map, Value as Figment};
use figment::{Error, Metadata, Profile, Provider};

use crate::findings::{Origin, Values};
use crate::registry::{Variable, variables};
use crate::value::Value;

/// One layer as figment wants it: nested tables instead of dotted keys.
struct Layer<'v> {
    name: &'static str,
    values: &'v Values,
}

impl Provider for Layer<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let mut root = Dict::new();
        for variable in variables() {
            if let Some((value, _)) = self.values.get(variable.name) {
                insert(&mut root, &variable.path(), value.clone().into_figment());
            }
        }
        Ok(Profile::Default.collect(root))
    }
}

fn insert(table: &mut Dict, path: &str, value: Figment) {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = table.entry(head.to_owned()).or_insert_with(|| Figment::from(Dict::new()));
            if let Figment::Dict(_, inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// The values in force, each with its origin.
#[derive(Debug, Clone)]
pub(crate) struct Merged {
    figment: figment::Figment,
    values: Values,
}

impl Merged {
    /// The environment over the file over the defaults.
    pub(crate) fn of(file: Values, env: Values) -> Merged {
        let mut defaults = Values::new();
        for variable in variables() {
            if let Some(value) = Value::default_of(variable) {
                defaults.insert(variable.name, (value, Origin::Default));
            }
        }
        let figment = figment::Figment::from(Layer { name: "defaults", values: &defaults })
            .merge(Layer { name: "file", values: &file })
            .merge(Layer { name: "environment", values: &env });
        let mut values = defaults;
        values.extend(file);
        values.extend(env);
        Merged { figment, values }
    }

    /// Fills what nothing has set.
    pub(crate) fn derive(&mut self, name: &'static str, value: Value) {
        if self.values.contains_key(name) {
            return;
        }
        let derived = Values::from([(name, (value, Origin::Derived))]);
        self.figment = self.figment.clone().join(Layer { name: "derived", values: &derived });
        self.values.extend(derived);
    }

    /// One table of the file's layout as a struct.
    pub(crate) fn section<'de, T: serde::Deserialize<'de>>(&self, table: &str) -> Result<T, Box<Error>> {
        self.figment.extract_inner(table).map_err(Box::new)
    }

    pub(crate) fn get(&self, variable: &Variable) -> Option<&(Value, Origin)> {
        self.values.get(variable.name)
    }

    /// Where a value comes from; [`Origin::Default`] also for one that is not set.
    pub(crate) fn origin(&self, name: &str) -> Origin {
        self.values.get(name).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Whether an operator set it, in whichever layer.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        matches!(self.origin(name), Origin::Environment(_) | Origin::File(_))
    }

    pub(crate) fn boolean(&self, name: &str) -> bool {
        matches!(self.values.get(name), Some((Value::Bool(true), _)))
    }

    pub(crate) fn int(&self, name: &str) -> i64 {
        match self.values.get(name) {
            Some((Value::Int(n), _)) => *n,
            _ => 0,
        }
    }

    pub(crate) fn float(&self, name: &str) -> f64 {
        match self.values.get(name) {
            Some((Value::Float(x), _)) => *x,
            _ => 0.0,
        }
    }

    /// A text that is set and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some((Value::Text(t), _)) if !t.is_empty() => Some(t),
            _ => None,
        }
    }

    pub(crate) fn list(&self, name: &str) -> &[String] {
        match self.values.get(name) {
            Some((Value::List(l), _)) => l,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(pairs: &[(&'static str, i64)], origin: &Origin) -> Values {
        pairs.iter().map(|(name, n)| (*name, (Value::Int(*n), origin.clone()))).collect()
    }

    #[test]
    fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
        #[derive(serde::Deserialize)]
        struct Stats {
            interval_ms: u64,
            metrics_flush_ms: u64,
            retained_bytes_interval_ms: u64,
        }
        let file = layer(
            &[("STATS_INTERVAL_MS", 1), ("METRICS_FLUSH_MS", 2)],
            &Origin::File("queen.toml:1".to_owned()),
        );
        let env = layer(&[("STATS_INTERVAL_MS", 3)], &Origin::Environment("STATS_INTERVAL_MS".to_owned()));
        let merged = Merged::of(file, env);
        let stats: Stats = merged.section("stats").unwrap();
        assert_eq!(stats.interval_ms, 3);
        assert_eq!(stats.metrics_flush_ms, 2);
        assert_eq!(stats.retained_bytes_interval_ms, 600_000);
        assert_eq!(merged.origin("METRICS_FLUSH_MS"), Origin::File("queen.toml:1".to_owned()));
        assert_eq!(merged.origin("RETAINED_BYTES_INTERVAL_MS"), Origin::Default);
    }

    #[test]
    fn a_derived_value_never_replaces_one_that_is_set() {
        let env = layer(&[("QUEEN_KV_POOL_SIZE", 9)], &Origin::Environment("QUEEN_KV_POOL_SIZE".to_owned()));
        let mut merged = Merged::of(Values::new(), env);
        merged.derive("QUEEN_KV_POOL_SIZE", Value::Int(16));
        merged.derive("QUEEN_HOTLIST_SHARDS", Value::Int(8));
        assert_eq!(merged.int("QUEEN_KV_POOL_SIZE"), 9);
        assert_eq!(merged.origin("QUEEN_HOTLIST_SHARDS"), Origin::Derived);
        assert_eq!(merged.section::<u64>("hotlist.shards").unwrap(), 8);
    }
}
