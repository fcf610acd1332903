//! What is shown of the configuration in force.

use queen_config::{Format, check_text, load};

use crate::support::{ok, refused, sources, with_file};

#[test]
fn the_banner_names_values_and_origins_and_masks_secrets() {
    let loaded = ok(&[
        ("PORT", "7001"),
        ("PG_PASSWORD", "hunter2"),
        ("HOSTNAME", "web-1"),
        ("QUEEN_SERVER_ID", ""),
        ("STATS_INTERVAL_MS", "5000"),
    ]);
    let banner = loaded.effective.banner();
    assert_eq!(
        banner[0],
        "config: server port=7001 (env PORT) bind_addr=127.0.0.1 (env QUEEN_BIND_ADDR) max_body_bytes=67108864 \
         id=web-1 (env HOSTNAME) boot_without_db=true shutdown_timeout_ms=25000 drain_delay_ms=0 QUEEN_CONFIG_FILE=<unset>"
    );
    assert!(banner[1].starts_with(
        "config: postgres host=localhost port=5432 user=postgres password=<set:7 chars> (env PG_PASSWORD) "
    ));
    assert!(
        banner.iter().any(|line| {
            line.starts_with("config: jobs interval_ms=5000 batch_size=1000 ")
                && line.contains(" interval_ms=5000 (env STATS_INTERVAL_MS) ")
        }),
        "{banner:?}"
    );
    assert!(!banner.join("\n").contains("hunter2"));
}

#[test]
fn a_secret_shows_in_no_form() {
    let loaded = ok(&[
        ("PG_PASSWORD", "hunter2"),
        ("JWT_SECRET", "hunter2hunter2hunter2hunter2hunter2"),
        ("QUEEN_SYNC_SECRET", "hunter2hunter2hunter2"),
        ("QUEEN_ENCRYPTION_KEY", &"ab".repeat(32)),
        ("QUEEN_ENCRYPTION_OLD_KEYS", &"cd".repeat(32)),
    ]);
    for format in [Format::Toml, Format::Env, Format::Json] {
        let text = loaded.effective.print(format);
        for secret in ["hunter2", "abab", "cdcd"] {
            assert!(!text.contains(secret), "{format:?}");
        }
    }
    assert!(!format!("{:?}", loaded.config).contains("hunter2"));
    assert!(!format!("{:?}", loaded.effective).contains("hunter2"));
    let refused = refused(&[("PG_PASSWORD", "hunter2"), ("PORT", "x")]);
    assert!(!format!("{refused:?}{refused}").contains("hunter2"));
}

#[test]
fn the_printed_file_reads_back_as_the_same_configuration() {
    let pairs = [
        ("PORT", "7001"),
        ("QUEEN_DB_ROLE", "a,b"),
        ("POP_WAIT_BACKOFF_MULTIPLIER", "3"),
        ("PG_USER", "o\"x\\"),
    ];
    let first = ok(&pairs);
    let again = with_file(&first.effective.print(Format::Toml), &[]).unwrap();
    for (a, b) in first.effective.settings().iter().zip(again.effective.settings()) {
        assert_eq!(a.value, b.value, "{}", a.variable.name);
    }
}

#[test]
fn the_printed_json_is_json_with_sources() {
    let loaded = ok(&[("PORT", "7001"), ("PG_PASSWORD", "x")]);
    let json: serde_json::Value = serde_json::from_str(&loaded.effective.print(Format::Json)).unwrap();
    let of = |name: &str| json.as_array().unwrap().iter().find(|s| s["name"] == name).unwrap().clone();
    assert_eq!(
        of("PORT"),
        serde_json::json!({"name": "PORT", "key": "server.port", "value": 7001, "source": "env PORT"})
    );
    assert_eq!(of("PG_PASSWORD")["value"], "<set:1 chars>");
    assert_eq!(of("QUEEN_KV_POOL_SIZE")["source"], "derived");
    assert_eq!(of("JWT_ISSUER")["value"], serde_json::Value::Null);
    assert_eq!(of("QUEEN_APPLY_SCHEMA")["value"], true);
}

#[test]
fn the_printed_environment_has_a_line_a_variable() {
    let text = ok(&[("PORT", "7001")]).effective.print(Format::Env);
    assert!(text.contains("\nQUEEN_LOG_JSON=false  # default\n"), "{text}");
    assert!(text.starts_with("PORT=7001  # env PORT\n"), "{text}");
}

#[test]
fn check_says_what_is_wrong_and_what_to_know() {
    assert_eq!(check_text(&load(&sources(&[]))), "configuration: no problems");
    let warned = check_text(&load(&sources(&[("DB_POOL_SIZE", "6")])));
    assert!(warned.starts_with("configuration: no problems\nwarning: DB_POOL_SIZE=\"6\""), "{warned}");
    let wrong = check_text(&load(&sources(&[("PORT", "x"), ("DB_POOL_SIZE", "6")])));
    assert!(wrong.starts_with("configuration: 1 problem, not starting\n  PORT="), "{wrong}");
    assert!(wrong.contains("\nwarning: DB_POOL_SIZE="), "{wrong}");
}
