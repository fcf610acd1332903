//! A manifest against its row.

use super::manifest::{Dependency, Manifest};
use super::table::{FREE, GUARDED, Layer, ROWS, Row, TEST_SUPPORT};

/// What the manifest uses and may not. Each text names the crate, the dependency and what is allowed.
pub(crate) fn check(manifest: &Manifest) -> Vec<String> {
    let name = manifest.name.as_str();
    if FREE.contains(&name) {
        return Vec::new();
    }
    let Some(row) = ROWS.iter().find(|row| row.name == name) else {
        return vec![format!("{name} has no row in the table of layers; add one")];
    };
    manifest.dependencies.iter().filter_map(|dependency| check_one(row, dependency)).collect()
}

fn check_one(row: &Row, dependency: &Dependency) -> Option<String> {
    let package = dependency.package.as_str();
    let is_ours = package.starts_with("queen-") || ROWS.iter().any(|row| row.name == package);
    if is_ours {
        return check_ours(row, dependency);
    }
    // What only tests use does not reach the product.
    if dependency.is_dev || !GUARDED.contains(&package) || row.outside.contains(&package) {
        return None;
    }
    let only = row.outside.iter().find_map(|allowed| allowed.strip_prefix(package)?.strip_prefix(':'));
    let Some(feature) = only else {
        let allowed = list(row.outside);
        return Some(format!(
            "{} depends on {package}; of the guarded packages it may use {allowed}",
            row.name
        ));
    };
    let features = dependency.features.as_deref();
    if features.is_some_and(|features| features.iter().all(|other| other == feature)) {
        return None;
    }
    let given = features.map_or("the workspace's or default features".to_owned(), |given| given.join(", "));
    Some(format!("{} depends on {package} with {given}; it may use its feature {feature} alone", row.name))
}

fn check_ours(row: &Row, dependency: &Dependency) -> Option<String> {
    let package = dependency.package.as_str();
    let for_tests = dependency.is_dev && TEST_SUPPORT.contains(&package) && row.layer >= Layer::TwoA;
    if for_tests || row.queen.contains(&package) {
        return None;
    }
    let how = if dependency.is_dev { "depends in its tests on" } else { "depends on" };
    Some(format!("{} {how} {package}; of this workspace it may use {}", row.name, list(row.queen)))
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::manifest::parse;
    use super::*;

    fn problems(name: &str, rest: &str) -> Vec<String> {
        check(&parse(&format!("[package]\nname = \"{name}\"\n{rest}")).unwrap())
    }

    /// Each text has to be found in the one complaint.
    fn complains(name: &str, rest: &str, texts: &[&str]) {
        let found = problems(name, rest);
        assert_eq!(found.len(), 1, "{found:?}");
        for text in texts {
            assert!(found[0].contains(text), "{} lacks {text}", found[0]);
        }
    }

    #[test]
    fn what_a_row_allows_passes() {
        let rest = "[dependencies]\nqueen-types.workspace = true\nqueen-pg = { path = \"../queen-pg\" }\n\
                    tokio-postgres.workspace = true\nthiserror = \"2\"\n[dev-dependencies]\nanyhow = \"1\"\n\
                    queen-testkit.workspace = true";
        assert_eq!(problems("queen-storage", rest), Vec::<String>::new());
        assert_eq!(
            problems("queen-tests", "[dependencies]\nqueen-core = \"1\"\nhyper = \"1\""),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_crate_of_a_higher_layer_is_refused() {
        let rest = "[dependencies]\nqueen-core.workspace = true";
        complains(
            "queen-storage",
            rest,
            &["queen-storage", "queen-core", "queen-types, queen-segment, queen-dedup, queen-pg"],
        );
    }

    #[test]
    fn a_neighbour_that_the_row_does_not_name_is_refused() {
        complains(
            "queen-wire",
            "[dependencies]\nqueen-segment.workspace = true",
            &["queen-segment", "queen-types"],
        );
        complains("queenctl", "[dependencies]\nqueen-core.workspace = true", &["queenctl", "queen-wire"]);
    }

    #[test]
    fn low_crates_have_no_runtime_socket_or_database() {
        for package in ["tokio", "hyper", "tokio-postgres", "deadpool-postgres", "figment", "anyhow"] {
            let rest = format!("[dependencies]\n{package}.workspace = true");
            complains("queen-fusion", &rest, &["queen-fusion", package, "may use none"]);
        }
    }

    #[test]
    fn admission_has_tokios_locks_and_nothing_else_of_it() {
        let allowed =
            "[dependencies]\ntokio = { version = \"1\", default-features = false, features = [\"sync\"] }";
        assert_eq!(problems("queen-admission", allowed), Vec::<String>::new());
        let more = "[dependencies]\ntokio = { version = \"1\", features = [\"sync\", \"net\"] }";
        complains(
            "queen-admission",
            more,
            &["queen-admission", "tokio with sync, net", "feature sync alone"],
        );
        let inherited = "[dependencies]\ntokio.workspace = true";
        complains("queen-admission", inherited, &["the workspace's or default features"]);
    }

    #[test]
    fn only_the_stores_name_the_database_client() {
        complains(
            "queen-core",
            "[dependencies]\ntokio-postgres.workspace = true",
            &["tokio-postgres", "tokio-util"],
        );
        complains("queen-server", "[dependencies]\ntokio-postgres.workspace = true", &["queen-server"]);
    }

    #[test]
    fn of_the_libraries_only_the_edge_names_hyper() {
        complains("queen-core", "[dependencies]\nhyper.workspace = true", &["queen-core", "hyper"]);
        assert_eq!(problems("queen-http", "[dependencies]\nhyper.workspace = true"), Vec::<String>::new());
    }

    #[test]
    fn libraries_have_no_anyhow_outside_tests() {
        complains("queen-core", "[dependencies]\nanyhow.workspace = true", &["queen-core", "anyhow"]);
        assert_eq!(
            problems("queen-core", "[dev-dependencies]\nanyhow.workspace = true"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn tests_of_pure_crates_do_not_build_the_testkit() {
        complains("queen-fusion", "[dev-dependencies]\nqueen-testkit.workspace = true", &["in its tests"]);
    }

    #[test]
    fn other_names_and_other_sections_hide_nothing() {
        complains(
            "queen-core",
            "[dependencies]\npg = { package = \"tokio-postgres\", version = \"1\" }",
            &["tokio-postgres"],
        );
        complains("queen-core", "[build-dependencies]\nhyper = \"1\"", &["hyper"]);
        complains("queen-core", "[target.'cfg(unix)'.dependencies]\nhyper = \"1\"", &["hyper"]);
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        complains("queen-new", "", &["queen-new has no row"]);
    }

    #[test]
    fn the_table_points_down_only() {
        for row in ROWS {
            for used in row.queen {
                let used = ROWS.iter().find(|other| other.name == *used).unwrap();
                assert!(used.layer <= row.layer, "{} is above {}", used.name, row.name);
                assert_ne!(used.name, row.name);
            }
            for package in row.outside {
                let package = package.split(':').next().unwrap();
                assert!(GUARDED.contains(&package), "{package} needs no permission");
            }
        }
    }
}
