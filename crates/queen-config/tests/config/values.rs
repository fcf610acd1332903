//! Single values: spellings, ranges, clamps, emptiness.

use queen_config::{Origin, Value};

use crate::support::{ok, problems};

fn value(name: &str, raw: &str) -> (Option<Value>, Vec<String>) {
    let loaded = ok(&[(name, raw)]);
    let setting = loaded.effective.settings().iter().find(|s| s.variable.name == name);
    (setting.unwrap().value.clone(), loaded.warnings)
}

#[test]
fn accepted_values() {
    let text = |t: &str| Value::Text(t.to_owned());
    let list = |l: &[&str]| Value::List(l.iter().map(|t| (*t).to_owned()).collect());
    for (name, raw, expected) in [
        ("PORT", "8080", Value::Int(8080)),
        ("PORT", " 8080 ", Value::Int(8080)),
        ("QUEEN_LOG_JSON", "true", Value::Bool(true)),
        ("QUEEN_LOG_JSON", "1", Value::Bool(true)),
        ("QUEEN_LOG_JSON", " YES ", Value::Bool(true)),
        ("QUEEN_LOG_JSON", "On", Value::Bool(true)),
        ("QUEEN_APPLY_SCHEMA", "0", Value::Bool(false)),
        ("QUEEN_APPLY_SCHEMA", "No", Value::Bool(false)),
        ("QUEEN_APPLY_SCHEMA", "OFF", Value::Bool(false)),
        ("QUEEN_APPLY_SCHEMA", "False", Value::Bool(false)),
        ("QUEEN_V2_ZSTD_LEVEL", "-7", Value::Int(-7)),
        ("POP_WAIT_BACKOFF_MULTIPLIER", "1.5", Value::Float(1.5)),
        ("DEFAULT_SUBSCRIPTION_MODE", "new-only", text("new")),
        ("DEFAULT_SUBSCRIPTION_MODE", "newonly", text("new")),
        ("DEFAULT_SUBSCRIPTION_MODE", "new_only", text("new")),
        ("DEFAULT_SUBSCRIPTION_MODE", "ALL", text("all")),
        ("QUEEN_POP_AUTOPILOT", "0", text("off")),
        ("QUEEN_POP_AUTOPILOT", "yes", text("on")),
        ("JWT_ALGORITHM", "eddsa", text("EdDSA")),
        ("QUEEN_DB_ROLE", "a, b ,,c", list(&["a", "b", "c"])),
        ("QUEEN_MESH_ADVERTISE_HOST", "[::1]", text("[::1]")),
        ("LOG_LEVEL", "info,queen::pop=debug", text("info,queen::pop=debug")),
        ("QUEEN_ENCRYPTION_KEY", &"0f".repeat(32), text(&"0f".repeat(32))),
        ("PG_HOST", "/run/postgresql", text("/run/postgresql")),
    ] {
        assert_eq!(value(name, raw).0, Some(expected), "{name}={raw}");
    }
}

#[test]
fn refused_values() {
    for (name, raw, expected) in [
        ("DB_POOL_SIZE", "16O", "not an integer; allowed 1 to 10000, e.g. 160   [postgres.pool_size]"),
        ("DB_POOL_SIZE", "0", "allowed 1 to 10000, e.g. 160   [postgres.pool_size]"),
        ("DB_POOL_SIZE", "-3", "allowed 1 to 10000, e.g. 160   [postgres.pool_size]"),
        ("PG_PORT", "70000", "allowed 1 to 65535, e.g. 5432   [postgres.port]"),
        (
            "STATS_INTERVAL_MS",
            "10s",
            "not an integer; allowed at least 1000, e.g. 10000   [stats.interval_ms]",
        ),
        (
            "STATS_INTERVAL_MS",
            "1.5",
            "not an integer; allowed at least 1000, e.g. 10000   [stats.interval_ms]",
        ),
        (
            "STATS_INTERVAL_MS",
            "99999999999999999999",
            "too large; allowed at least 1000, e.g. 10000   [stats.interval_ms]",
        ),
        ("JWT_ENABLED", "maybe", "not a boolean; allowed true/false, 1/0, yes/no, on/off   [auth.enabled]"),
        ("QUEEN_ADMISSION_SHARE_PUSH", "1.4", "allowed 0 to 1, e.g. 0.25   [admission.share.push]"),
        (
            "QUEEN_ADMISSION_SHARE_PUSH",
            "NaN",
            "not a number; allowed 0 to 1, e.g. 0.25   [admission.share.push]",
        ),
        (
            "DEFAULT_SUBSCRIPTION_MODE",
            "latest",
            "not one of the allowed words; allowed new, all, e.g. new   [pop.default_subscription_mode]",
        ),
        (
            "QUEEN_BIND_ADDR",
            "127.0.0.1:80",
            "carries a port; allowed a host name or an IP address, without a port, e.g. 127.0.0.1   [server.bind_addr]",
        ),
        (
            "LOG_LEVEL",
            "debg",
            "not a level and not a filter; allowed a level (off, error, warn, info, debug, trace) or filter \
             directives, e.g. info,spool=debug   [log.filter]",
        ),
        (
            "PG_SSL_ROOT_CERT",
            "/etc/ca.pem",
            "a path instead of the text; allowed PEM text with a CERTIFICATE block, not a path   \
             [postgres.tls.root_cert]",
        ),
        ("QUEEN_V2_ZSTD_LEVEL", "23", "allowed -7 to 22, e.g. 3   [push.zstd_level]"),
        ("QUEEN_ADMISSION_TRACE", "2", "not a boolean; allowed true/false, 1/0, yes/no, on/off"),
    ] {
        assert_eq!(problems(&[(name, raw)]), [format!("{name}={raw:?} (environment): {expected}")]);
    }
}

#[test]
fn empty_bind_addresses_are_fatal() {
    for name in ["QUEEN_BIND_ADDR", "QUEEN_MESH_BIND_ADDR"] {
        let problems = problems(&[(name, "")]);
        assert!(
            problems.iter().any(|p| p.starts_with(&format!("{name}=\"\" (environment): empty;"))),
            "{problems:?}"
        );
    }
}

#[test]
fn clamped_values_are_moved_with_a_warning() {
    for (name, raw, in_force, allowed) in [
        ("STATS_INTERVAL_MS", "10", 1000, "at least 1000"),
        ("DB_POOL_SIZE", "2", 4, "4 to 10000"),
        ("RETENTION_PARALLELISM", "99", 16, "1 to 16"),
        ("QUEEN_SWEEPER_PARALLELISM", "-1", 1, "1 to 8"),
        ("DEFAULT_TIMEOUT", "0", 1, "at least 1"),
        ("QUEEN_HOTLIST_RESEED_WINDOW_MS", "604800001", 604_800_000, "0 to 604800000"),
    ] {
        let (value, warnings) = value(name, raw);
        assert_eq!(value, Some(Value::Int(in_force)), "{name}");
        let begin = format!("{name}={raw:?} (environment): {in_force} in force; allowed {allowed}   [");
        assert!(warnings.iter().any(|w| w.starts_with(&begin)), "{warnings:?}");
    }
}

#[test]
fn low_and_high_values_are_warned_about() {
    let (pool, warnings) = value("DB_POOL_SIZE", "6");
    assert_eq!(pool, Some(Value::Int(6)));
    assert_eq!(
        warnings,
        ["DB_POOL_SIZE=\"6\" (environment): is low; at least 8 advised   [postgres.pool_size]"]
    );
    let (_, warnings) = value("QUEEN_KV_MAX_KEY_BYTES", "4096");
    assert!(warnings[0].contains("is high; at most 2048 advised"), "{warnings:?}");
}

#[test]
fn empty_is_unset() {
    for (name, default) in [
        ("PORT", Value::Int(6632)),
        ("QUEEN_LOG_JSON", Value::Bool(false)),
        ("PG_HOST", Value::Text("localhost".to_owned())),
        ("PG_USER", Value::Text("postgres".to_owned())),
        ("PG_DATABASE", Value::Text("postgres".to_owned())),
        ("QUEEN_MESH_PEERS", Value::List(Vec::new())),
        ("DEFAULT_SUBSCRIPTION_MODE", Value::Text("new".to_owned())),
    ] {
        for raw in ["", "   "] {
            assert_eq!(value(name, raw), (Some(default.clone()), Vec::new()), "{name}={raw:?}");
        }
    }
    assert_eq!(value("JWT_SKIP_PATHS", "").0, Some(Value::List(Vec::new())));
    assert_eq!(value("PG_PASSWORD", "").0, Some(Value::Text(String::new())));
    assert_eq!(value("PG_PASSWORD", " x ").0, Some(Value::Text(" x ".to_owned())));
    assert_eq!(value("PG_SSL_ROOT_CERT", "").0, None);
}

#[test]
fn a_literal_line_break_in_pem_text_is_one() {
    let pem = r"-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----";
    let (value, _) = value("PG_SSL_ROOT_CERT", pem);
    assert_eq!(value, Some(Value::Text(pem.replace(r"\n", "\n"))));
}

#[test]
fn aliases() {
    for (pairs, name, expected, used) in [
        (&[("PG_DB", "b")][..], "PG_DATABASE", "b", "PG_DB"),
        (&[("PG_DB", "b"), ("PG_DATABASE", "a")], "PG_DATABASE", "a", "PG_DATABASE"),
        (&[("PG_DB", "b"), ("PG_DATABASE", "")], "PG_DATABASE", "b", "PG_DB"),
        (&[("RUST_LOG", "warn"), ("LOG_LEVEL", "debug")], "LOG_LEVEL", "warn", "RUST_LOG"),
        (&[("POP_DEFAULT_TIMEOUT_MS", "7")], "DEFAULT_TIMEOUT", "7", "POP_DEFAULT_TIMEOUT_MS"),
        (&[("HOSTNAME", "web-1"), ("QUEEN_SERVER_ID", "")], "QUEEN_SERVER_ID", "web-1", "HOSTNAME"),
        (&[("HOSTNAME", "web-1"), ("QUEEN_SERVER_ID", "q-1")], "QUEEN_SERVER_ID", "q-1", "QUEEN_SERVER_ID"),
        (&[("QUEEN_UDP_NOTIFY_PORT", "7000")], "QUEEN_MESH_PORT", "7000", "QUEEN_UDP_NOTIFY_PORT"),
    ] {
        let loaded = ok(pairs);
        let setting = loaded.effective.settings().iter().find(|s| s.variable.name == name).unwrap();
        assert_eq!(setting.shown(), expected, "{pairs:?}");
        assert_eq!(setting.origin, Origin::Environment(used.to_owned()), "{pairs:?}");
    }
}
