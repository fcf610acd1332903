//! From variables to the options of each crate.

use std::time::Duration;

use queen_config::{Sources, load};
use queen_pg::TlsMode;
use queen_types::SubscriptionMode;

use crate::support::{ok, problems};

#[test]
fn defaults_are_those_of_the_crates() {
    let config = load(&Sources::from_pairs([("QUEEN_SERVER_ID", "q-1")])).unwrap().config;
    let broker = queen_core::BrokerOptions::default();
    let expected = queen_core::BrokerOptions {
        server_id: "q-1".to_owned(),
        pg: queen_pg::PgOptions { application_name: "queen/q-1".to_owned(), ..broker.pg.clone() },
        // Whoever starts a broker as a library wants to know at once.
        degraded_start: true,
        // And a spool needs a directory.
        buffer: Some(queen_core::BufferOptions {
            fallback: Some(std::env::temp_dir().join("queen-buffers")),
            ..queen_core::BufferOptions::at("/var/lib/queen/buffers")
        }),
        ..broker
    };
    assert_eq!(format!("{:?}", config.broker), format!("{expected:?}"));
    assert_eq!(config.broker.pg.password, expected.pg.password);
    assert_eq!(format!("{:?}", config.http), format!("{:?}", queen_http::HttpOptions::default()));
    assert_eq!(config.log, queen_telemetry::LogOptions::default());
}

#[test]
fn every_live_variable_arrives() {
    let config = ok(&[
        ("PORT", "7001"),
        ("QUEEN_BIND_ADDR", "::1"),
        ("QUEEN_MAX_BODY_BYTES", "1000"),
        ("QUEEN_SERVER_ID", "q-9"),
        ("QUEEN_SHUTDOWN_TIMEOUT_MS", "1500"),
        ("QUEEN_DRAIN_DELAY_MS", "250"),
        ("QUEEN_BOOT_WITHOUT_DB", "off"),
        ("PG_HOST", "127.0.0.1"),
        ("PG_PORT", "5433"),
        ("PG_USER", "u"),
        ("PG_PASSWORD", ""),
        ("PG_DB", "d"),
        ("DB_POOL_SIZE", "17"),
        ("QUEEN_STMT_TIMEOUT_MS", "1000"),
        ("QUEEN_POOL_WAIT_MS", "2000"),
        ("QUEEN_PG_CONNECT_TIMEOUT_MS", "3000"),
        ("QUEEN_APPLY_SCHEMA", "no"),
        ("QUEEN_SCHEMA_MISMATCH", "warn"),
        ("QUEEN_DB_ROLE", "app,ops"),
        ("PG_USE_SSL", "on"),
        ("DEFAULT_TIMEOUT", "4000"),
        ("QUEEN_POP_MAX_TIMEOUT_MS", "0"),
        ("DEFAULT_SUBSCRIPTION_MODE", "all"),
        ("QUEEN_V2_ZSTD_LEVEL", "-2"),
        ("QUEEN_ACK_REGISTRY", "off"),
        ("QUEEN_ACK_REGISTRY_MB", "3"),
        ("QUEEN_ACK_FUSION", "0"),
        ("QUEEN_DEDUP_CACHE_MB", "3"),
        ("QUEEN_ADMISSION_MIN", "3"),
        ("QUEEN_ADMISSION_INIT", "5"),
        ("QUEEN_ADMISSION_MAX", "7"),
        ("QUEEN_ADMISSION_POOL_RESERVE", "2"),
        ("QUEEN_ADMISSION_SHARE_PUSH", "0.1"),
        ("QUEEN_ADMISSION_SHARE_POP", "0.2"),
        ("QUEEN_ADMISSION_SHARE_ACK", "0.15"),
        ("QUEEN_ADMISSION_SHARE_MAINT", "0.02"),
        ("QUEEN_ADMISSION_TICK_MS", "200"),
        ("QUEEN_ADMISSION_TRAIN_GAP_US", "400"),
        ("QUEEN_ADMISSION_NOSYNC_BUDGET", "6"),
        ("QUEEN_ADMISSION_WAIT_MS", "900"),
        ("QUEEN_ADMISSION_TRACE", "on"),
        ("LOG_LEVEL", "debug"),
        ("QUEEN_LOG_JSON", "1"),
    ])
    .config;
    assert_eq!(config.http.bind.to_string(), "[::1]:7001");
    assert_eq!(config.http.max_body_bytes, 1000);
    assert_eq!(config.http.pop_default_timeout, Duration::from_secs(4));
    assert_eq!(config.http.pop_max_timeout, Duration::ZERO);
    assert_eq!(config.http.shutdown_timeout, Duration::from_millis(1500));
    assert_eq!(config.http.drain_delay, Duration::from_millis(250));
    assert!(!config.broker.degraded_start && ok(&[]).config.broker.degraded_start);
    let broker = config.broker;
    assert_eq!(broker.server_id, "q-9");
    assert!(!broker.apply_schema && broker.schema_mismatch_warn);
    assert_eq!(broker.grant_roles, ["app", "ops"]);
    assert_eq!(broker.default_subscription, SubscriptionMode::All);
    assert_eq!((broker.pop_max_timeout, broker.zstd_level), (Duration::ZERO, -2));
    assert_eq!(
        (broker.ack_registry, broker.ack_registry_max_bytes, broker.ack_fusion),
        (false, 3 * 1024 * 1024, false)
    );
    assert_eq!(broker.dedup_cache_bytes, 3 << 20);
    assert_eq!(ok(&[("QUEEN_DEDUP_CACHE", "off")]).config.broker.dedup_cache_bytes, 0);
    assert!(broker.admission_trace);
    assert_eq!(
        broker.admission,
        queen_core::AdmissionOptions {
            pool_size: 17,
            pool_reserve: Some(2),
            min: Some(3),
            init: Some(5),
            max: 7,
            train_gap: Duration::from_micros(400),
            tick: Duration::from_millis(200),
            shares: queen_core::PerLane { push: 0.1, pop: 0.2, ack: 0.15, maint: 0.02 },
            nosync_budget: 6,
            wait: Duration::from_millis(900),
            ..queen_core::AdmissionOptions::default()
        }
    );
    let pg = broker.pg;
    assert_eq!(
        (pg.host.as_str(), pg.port, pg.user.as_str(), pg.database.as_str()),
        ("127.0.0.1", 5433, "u", "d")
    );
    assert_eq!((pg.password, pg.pool_size, pg.tls), (None, 17, TlsMode::PublicRoots));
    assert_eq!(pg.statement_timeout, Duration::from_secs(1));
    assert_eq!(pg.pool_wait, Duration::from_secs(2));
    assert_eq!(pg.connect_timeout, Duration::from_secs(3));
    assert_eq!(pg.application_name, "queen/q-9");
    assert_eq!((config.log.filter.as_str(), config.log.json), ("debug", true));
}

#[test]
fn every_variable_of_the_spool_arrives() {
    let broker = ok(&[
        ("FILE_BUFFER_DIR", "/s"),
        ("FILE_BUFFER_FLUSH_MS", "7"),
        ("FILE_BUFFER_MAX_BATCH", "8"),
        ("FILE_BUFFER_EVENTS_PER_FILE", "9"),
        ("QUEEN_SPOOL_MAX_BYTES", "10"),
        ("QUEEN_SPOOL_MIN_FREE_BYTES", "11"),
        ("QUEEN_SPOOL_FSYNC", "always"),
        ("QUEEN_SPOOL_FSYNC_MS", "12"),
        ("QUEEN_SPOOL_REQUIRED", "no"),
        ("QUEEN_SPOOL_ON_CONFLICT", "subdir"),
        ("QUEEN_SPOOL_ORDERED", "yes"),
        ("QUEEN_SPOOL_DELETE_UNMOVABLE", "1"),
        ("QUEEN_FUSION_MAX_BYTES", "13"),
    ])
    .config
    .broker;
    let expected = queen_core::BufferOptions {
        files: queen_core::SpoolOptions {
            events_per_file: 9,
            max_bytes: 10,
            min_free_bytes: 11,
            fsync: queen_core::FsyncMode::Always,
            fsync_gap: Duration::from_millis(12),
            on_conflict: queen_core::OnConflict::Subdir,
            delete_unmovable: true,
            ..queen_core::SpoolOptions::at("/s")
        },
        // Whoever named a directory wants no other.
        fallback: None,
        required: false,
        flush: Duration::from_millis(7),
        batch: 8,
        ordered: true,
    };
    assert_eq!(format!("{:?}", broker.buffer), format!("{:?}", Some(expected)));
    assert_eq!(broker.fusion_max_bytes, 13);
    assert_eq!(
        format!("{:?}", ok(&[("QUEEN_SPOOL_FSYNC", "never")]).config.broker.buffer.unwrap().files.fsync),
        "Never"
    );
}

#[test]
fn trust_follows_three_variables() {
    let pem = "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----";
    let mode = |ssl: &str, ca: &str, verify: &str| {
        let pairs = [("PG_USE_SSL", ssl), ("PG_SSL_ROOT_CERT", ca), ("PG_SSL_REJECT_UNAUTHORIZED", verify)];
        ok(&pairs).config.broker.pg.tls
    };
    assert_eq!(mode("0", pem, "1"), TlsMode::Plaintext);
    assert_eq!(mode("1", "", "1"), TlsMode::PublicRoots);
    assert_eq!(mode("1", pem, "1"), TlsMode::SuppliedCa(pem.to_owned()));
    assert_eq!(mode("1", pem, "0"), TlsMode::SuppliedCa(pem.to_owned()));
    assert_eq!(mode("1", "", "0"), TlsMode::AcceptAny);
}

#[test]
fn a_listener_may_be_named_by_a_host() {
    let bind = ok(&[("QUEEN_BIND_ADDR", "localhost"), ("PORT", "1")]).config.http.bind;
    assert!(bind.ip().is_loopback());
    let found = problems(&[("QUEEN_BIND_ADDR", "no-such-host.invalid")]);
    assert!(found[0].starts_with("QUEEN_BIND_ADDR=\"no-such-host.invalid\" (env"), "{found:?}");
    assert!(found[0].contains("does not resolve"), "{found:?}");
}
