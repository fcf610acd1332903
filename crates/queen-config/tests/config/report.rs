//! The report of problems, as an operator reads it.

use queen_config::{Layer, Sources, load};

use crate::support::{Dir, problems, refused, sources, with_file};

#[test]
fn the_report_has_the_shape_of_the_documentation() {
    let dir = Dir::new();
    let lines = ["\n".repeat(12), "[admission.share]\npush = 1.4\n".to_owned()].concat();
    let path = dir.write("queen.toml", &lines);
    let sources = Sources {
        config_file: Some(path.clone()),
        ..sources(&[("DB_POOL_SIZE", "16O"), ("JWT_ENABLED", "maybe")])
    };
    let report = load(&sources).unwrap_err().to_string();
    assert_eq!(
        report.replace(&path.display().to_string(), "queen.toml"),
        "configuration: 3 problems, not starting\n\
         \x20 DB_POOL_SIZE=\"16O\" (environment): not an integer; allowed 1 to 10000, e.g. 160   [postgres.pool_size]\n\
         \x20 JWT_ENABLED=\"maybe\" (environment): not a boolean; allowed true/false, 1/0, yes/no, on/off   [auth.enabled]\n\
         \x20 admission.share.push = 1.4 (queen.toml:14): allowed 0 to 1, e.g. 0.25   [QUEEN_ADMISSION_SHARE_PUSH]\n\
         3 problems; `queen-server config print` shows the effective configuration"
    );
}

#[test]
fn one_problem_is_singular() {
    let report = refused(&[("PORT", "x")]).to_string();
    assert!(report.starts_with("configuration: 1 problem, not starting\n  PORT=\"x\""), "{report}");
    assert!(
        report.ends_with("\n1 problem; `queen-server config print` shows the effective configuration"),
        "{report}"
    );
}

#[test]
fn problems_of_every_layer_come_by_layer_then_by_name() {
    let found = with_file(
        "[stats]\ninterval_ms = \"x\"\n[log]\njson = 3\n",
        &[
            ("QUEEN_LOG_JSON", "nope"),
            ("PORT", "0"),
            ("QUEEN_TENANCY_HEADER", "1"),
            ("STATS_INTERVAL_MS", "5000"),
        ],
    )
    .unwrap_err();
    let names: Vec<&str> = found.iter().map(|p| p.split(['=', ' ']).next().unwrap()).collect();
    assert_eq!(names, ["PORT", "QUEEN_LOG_JSON", "log.json", "stats.interval_ms", "QUEEN_TENANCY_HEADER"]);
}

#[test]
fn a_problem_carries_the_fields_of_its_event() {
    let errors = refused(&[("PG_PORT", "70000")]);
    let problem = &errors.problems[0];
    assert_eq!(problem.layer, Layer::Environment);
    assert_eq!(
        (problem.name.as_str(), problem.given.as_str(), problem.source.as_str(), problem.other.as_deref()),
        ("PG_PORT", "\"70000\"", "environment", Some("postgres.port"))
    );
}

#[test]
fn a_secret_is_counted_and_never_shown() {
    let report =
        refused(&[("QUEEN_ENCRYPTION_KEY", "hunter2hunter2"), ("JWT_SECRET", "hunter2")]).to_string();
    assert!(
        report.contains(
            "QUEEN_ENCRYPTION_KEY=<set, 14 characters> (environment): not a key; allowed exactly 64 hexadecimal \
             digits   [encryption.key]"
        ),
        "{report}"
    );
    assert!(!report.contains("hunter2"), "{report}");
    let file =
        with_file("[encryption]\nkey = \"hunter2\"\nold_keys = [\"hunter3\"]\n", &[]).unwrap_err().join("\n");
    assert!(file.contains("encryption.key = <set, "), "{file}");
    assert!(!file.contains("hunter"), "{file}");
}

#[test]
fn a_given_value_cannot_break_the_report() {
    let problems = problems(&[("PORT", "1\nPG_HOST=\"x\" (environment)")]);
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with(r#"PORT="1\nPG_HOST=\"x\" (environment)" (environment): not an integer"#)
    );
    let long = "x".repeat(5000);
    assert!(problems_len(&long) < 300);
}

fn problems_len(raw: &str) -> usize {
    problems(&[("PORT", raw)])[0].len()
}

#[test]
fn a_value_that_is_not_unicode_is_named() {
    let mut sources = sources(&[]);
    sources.not_unicode.insert("PG_HOST".to_owned());
    sources.not_unicode.insert("SOMETHING_ELSE".to_owned());
    let errors = load(&sources).unwrap_err();
    assert_eq!(errors.problems.len(), 1);
    assert!(errors.to_string().contains("PG_HOST=\"\" (environment): not Unicode text"), "{errors}");
}
