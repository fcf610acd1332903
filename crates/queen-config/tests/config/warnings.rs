//! Names that are not ours, service links, aliases that disagree, names of no effect.

use queen_config::Value;

use crate::support::ok;

fn warnings(pairs: &[(&str, &str)]) -> Vec<String> {
    ok(pairs).warnings
}

#[test]
fn a_plain_start_is_quiet() {
    assert_eq!(warnings(&[]), Vec::<String>::new());
    assert_eq!(ok(&[]).notes, Vec::<String>::new());
}

#[test]
fn unknown_names_are_told_with_the_nearest_known_one() {
    for (name, expected) in [
        (
            "QUEEN_STMT_TIMEOUT",
            Some("QUEEN_STMT_TIMEOUT is not a known variable; did you mean QUEEN_STMT_TIMEOUT_MS?"),
        ),
        ("QUEEN_JSON_LOG", Some("QUEEN_JSON_LOG is not a known variable; did you mean QUEEN_LOG_JSON?")),
        (
            "QUEEN_SPOOL_BYTES_MAX",
            Some("QUEEN_SPOOL_BYTES_MAX is not a known variable; did you mean QUEEN_SPOOL_MAX_BYTES?"),
        ),
        ("QUEEN_WHOLLY_UNHEARD_OF", Some("QUEEN_WHOLLY_UNHEARD_OF is not a known variable")),
        ("PG_HOSTT", Some("PG_HOSTT is not a known variable; did you mean PG_HOST?")),
        ("PG_PASSWRD", Some("PG_PASSWRD is not a known variable; did you mean PG_PASSWORD?")),
        ("DB_POOLSIZE", Some("DB_POOLSIZE is not a known variable; did you mean DB_POOL_SIZE?")),
        ("FILE_BUFFER_DIRS", Some("FILE_BUFFER_DIRS is not a known variable; did you mean FILE_BUFFER_DIR?")),
        ("PG_SOMETHING_ELSE", None),
        ("JWT_LIBRARY_PATH", None),
        ("PATH", None),
        ("OTEL_SERVICE_NAME", None),
        ("QUEEN_SERVER", None),
        ("QUEEN_TOKEN", None),
        ("QUEEN_CONTEXT", None),
        ("QUEEN_CONFIG", None),
    ] {
        assert_eq!(warnings(&[(name, "x")]), expected.into_iter().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn names_of_features_to_come_are_known() {
    let set = &[
        ("QUEEN_POP_FUSION_SHARDS", "5"),
        ("QUEEN_STREAMS_MAX_KEY_BYTES", "600"),
        ("STATS_INTERVAL_MS", "10000"),
    ];
    assert_eq!(
        warnings(set),
        ["of features that this version does not have: QUEEN_POP_FUSION_SHARDS, QUEEN_STREAMS_MAX_KEY_BYTES"]
    );
}

#[test]
fn names_without_effect_are_told_once() {
    assert_eq!(
        warnings(&[
            ("POP_WAIT_MAX_INTERVAL_MS", "50"),
            ("QUEEN_V2_FUSION_FRAMES", "9"),
            ("QUEEN_V2_BUNDLE_MAX", "2")
        ]),
        [
            "without effect in this product: POP_WAIT_MAX_INTERVAL_MS, QUEEN_V2_FUSION_FRAMES, QUEEN_V2_BUNDLE_MAX"
        ]
    );
}

#[test]
fn dead_names_say_what_to_use() {
    for (name, expected) in [
        ("QUEEN_VEGAS_ALPHA", "QUEEN_VEGAS_ALPHA is set: it has no effect; use QUEEN_ADMISSION_*"),
        ("QUEEN_SEG_PUSH_MAX", "QUEEN_SEG_PUSH_MAX is set: it has no effect; use QUEEN_ADMISSION_*"),
        (
            "QUEEN_KV_ENABLED",
            "QUEEN_KV_ENABLED is set: no boot switch exists; runtime switch POST /api/v1/system/kv-timers",
        ),
        (
            "QUEEN_EPHEMERAL_ENABLED",
            "QUEEN_EPHEMERAL_ENABLED is set: no boot switch exists; runtime switch POST /api/v1/system/ephemeral",
        ),
        ("QUEEN_STATIC_DIR", "QUEEN_STATIC_DIR is set: it has no effect; the dashboard is embedded"),
    ] {
        assert_eq!(warnings(&[(name, "1")]), [expected]);
    }
}

#[test]
fn service_links_are_recognised() {
    let loaded = ok(&[
        ("QUEEN_MESH_PORT", "tcp://10.0.0.7:6633"),
        ("QUEEN_MESH_SERVICE_HOST", "10.0.0.7"),
        ("QUEEN_MESH_SERVICE_PORT", "6633"),
        ("QUEEN_MESH_SERVICE_PORT_MESH", "6633"),
        ("QUEEN_MESH_PORT_6633_TCP", "tcp://10.0.0.7:6633"),
        ("QUEEN_MESH_PORT_6633_TCP_ADDR", "10.0.0.7"),
        ("QUEEN_WEB_PORT", "tcp://10.0.0.8:80"),
        ("PG_PORT", "tcp://10.0.0.9:5432"),
    ]);
    assert_eq!(
        loaded.warnings,
        [
            "PG_PORT=\"tcp://10.0.0.9:5432\" (environment): looks like a Kubernetes service link; set \
             enableServiceLinks: false or make the Service headless; ignored   [postgres.port]",
            "QUEEN_MESH_PORT=\"tcp://10.0.0.7:6633\" (environment): looks like a Kubernetes service link; set \
             enableServiceLinks: false or make the Service headless; ignored   [mesh.port]",
        ]
    );
    assert_eq!(loaded.config.broker.pg.port, 5432);
    let mesh = loaded.effective.settings().iter().find(|s| s.variable.name == "QUEEN_MESH_PORT").unwrap();
    assert_eq!(mesh.value, Some(Value::Int(6633)));
}

#[test]
fn aliases_that_disagree_are_told_and_equal_ones_are_not() {
    assert_eq!(
        warnings(&[("PG_DATABASE", "a"), ("PG_DB", "b")]),
        ["PG_DATABASE and PG_DB are both set and differ; PG_DATABASE is in force"]
    );
    assert_eq!(
        warnings(&[("LOG_LEVEL", "info"), ("RUST_LOG", "warn")]),
        ["RUST_LOG and LOG_LEVEL are both set and differ; RUST_LOG is in force"]
    );
    assert_eq!(warnings(&[("PG_DATABASE", "a"), ("PG_DB", "a")]), Vec::<String>::new());
    assert_eq!(warnings(&[("QUEEN_SERVER_ID", "a"), ("HOSTNAME", "b")]), Vec::<String>::new());
}

#[test]
fn an_old_name_is_worth_a_note() {
    let loaded = ok(&[("QUEEN_UDP_NOTIFY_PORT", "6633")]);
    assert_eq!(loaded.notes, ["QUEEN_UDP_NOTIFY_PORT is an old name of QUEEN_MESH_PORT"]);
    assert_eq!(loaded.warnings, Vec::<String>::new());
}
