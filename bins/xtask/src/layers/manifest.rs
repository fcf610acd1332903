//! What a manifest depends on.

use anyhow::Context;
use toml::{Table, Value};

/// A crate and its dependencies.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug)]
pub(crate) struct Dependency {
    /// The package, whatever the manifest calls it.
    pub(crate) package: String,
    pub(crate) is_dev: bool,
    /// The features, if the manifest alone decides about them; those of the workspace come from elsewhere.
    pub(crate) features: Option<Vec<String>>,
}

/// Reads a manifest of a package.
pub(crate) fn parse(text: &str) -> anyhow::Result<Manifest> {
    let table: Table = text.parse()?;
    let package = table.get("package").and_then(Value::as_table).context("no [package]")?;
    let name = package.get("name").and_then(Value::as_str).context("no package name")?.to_owned();
    let mut dependencies = sections_of(&table);
    for target in table.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values) {
        dependencies.extend(target.as_table().map(sections_of).unwrap_or_default());
    }
    Ok(Manifest { name, dependencies })
}

fn sections_of(table: &Table) -> Vec<Dependency> {
    let sections = [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)];
    let mut found = Vec::new();
    for (section, is_dev) in sections {
        let entries = table.get(section).and_then(Value::as_table);
        found.extend(entries.into_iter().flatten().map(|(key, value)| dependency(key, value, is_dev)));
    }
    found
}

fn dependency(key: &str, value: &Value, is_dev: bool) -> Dependency {
    let package = value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned();
    let default_features = value.get("default-features").and_then(Value::as_bool).unwrap_or(true);
    let from_workspace = value.get("workspace").and_then(Value::as_bool).unwrap_or(false);
    let features = value
        .get("features")
        .and_then(Value::as_array)
        .map(|features| features.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>());
    // tokio has no default features; asking for them to be off is the way to be sure with any package.
    let alone = !from_workspace && (!default_features || package == "tokio");
    Dependency { package, is_dev, features: if alone { Some(features.unwrap_or_default()) } else { None } }
}
