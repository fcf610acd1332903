//! Every session has the settings that the statements rely on, whatever the database and the role say.
#![allow(clippy::unwrap_used)]

mod support;

use queen_pg::{PgOptions, PgTimestamp, Pool};
use queen_types::Timestamp;
use support::{admin, database, text};

#[tokio::test]
async fn session_settings_win_over_those_of_database_and_role() {
    let options = database().await;
    let mut admin = admin().await;
    let role = support::unique("role");
    admin.batch(&format!("CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'secret'")).await.unwrap();
    for setting in [
        "timezone TO 'Asia/Tokyo'",
        "default_transaction_isolation TO 'repeatable read'",
        "search_path TO public, pg_catalog",
        "plan_cache_mode TO force_custom_plan",
        "jit TO on",
        "statement_timeout TO 0",
        "idle_in_transaction_session_timeout TO 0",
    ] {
        admin.batch(&format!("ALTER DATABASE {} SET {setting}", options.database)).await.unwrap();
        admin.batch(&format!("ALTER ROLE {role} SET {setting}")).await.unwrap();
    }
    let options = PgOptions { user: role, password: Some("secret".to_owned()), ..options };
    let app = options.application_name.clone();
    let pool = Pool::new(options).unwrap();
    for (mut conn, application_name) in
        [(pool.get().await.unwrap(), app.as_str()), (pool.connect("queen-own").await.unwrap(), "queen-own")]
    {
        let expected = [
            ("TimeZone", "UTC"),
            ("transaction_isolation", "read committed"),
            ("search_path", "pg_catalog"),
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("jit", "off"),
            ("statement_timeout", "35s"),
            ("idle_in_transaction_session_timeout", "1min"),
            ("application_name", application_name),
        ];
        for (name, value) in expected {
            let rows = conn.query("SELECT current_setting($1)", &[&name]).await.unwrap();
            assert_eq!(rows[0].get::<_, &str>(0), value, "{name}");
        }
        assert!(text(&mut conn, "SELECT timestamptz '2031-04-05 06:07:08Z'::text").await.ends_with("+00"));
    }
}

#[tokio::test]
async fn the_unix_socket_works_whatever_tls_says() {
    let cluster = &support::server().cluster;
    let options = PgOptions {
        host: cluster.socket_dir().display().to_string(),
        tls: queen_pg::TlsMode::PublicRoots,
        ..support::options()
    };
    let mut conn = Pool::new(options).unwrap().get().await.unwrap();
    assert_eq!(conn.execute("SELECT 1 WHERE true", &[]).await.unwrap(), 1);
}

#[tokio::test]
async fn simple_queries_answer_in_text() {
    let mut conn = admin().await;
    let messages = conn.simple_query("SHOW server_version_num").await.unwrap();
    let version = messages.iter().find_map(|message| match message {
        queen_pg::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    assert!(version.unwrap().parse::<u32>().unwrap() >= 140_000);
}

fn at(text: &str) -> PgTimestamp {
    PgTimestamp(Timestamp::parse(text).unwrap())
}

#[tokio::test]
async fn timestamps_go_both_ways() {
    let mut conn = admin().await;
    for instant in [
        at("2031-04-05T06:07:08.123456Z"),
        at("1999-12-31T23:59:59.999999Z"),
        at("0001-01-01T00:00:00Z"),
        PgTimestamp(Timestamp::EPOCH),
        PgTimestamp(Timestamp(i64::MAX)),
        PgTimestamp(Timestamp(i64::MIN)),
    ] {
        let rows = conn.query("SELECT $1::timestamptz, $1::timestamptz::text", &[&instant]).await.unwrap();
        assert_eq!(rows[0].get::<_, PgTimestamp>(0), instant);
        let shown: &str = rows[0].get(1);
        match instant.0.0 {
            i64::MAX => assert_eq!(shown, "infinity"),
            i64::MIN => assert_eq!(shown, "-infinity"),
            0 => assert_eq!(shown, "1970-01-01 00:00:00+00"),
            _ => assert!(!shown.contains("infinity"), "{shown}"),
        }
    }
}

#[tokio::test]
async fn timestamps_travel_in_arrays_and_as_null() {
    let mut conn = admin().await;
    let instants = vec![Some(at("2031-04-05T06:07:08Z")), None, Some(PgTimestamp(Timestamp(i64::MAX)))];
    let none: Option<PgTimestamp> = None;
    let rows = conn
        .query(
            "SELECT $1::timestamptz[], $2::timestamptz, (SELECT count(*) FROM unnest($1::timestamptz[]) AS u (at) \
             WHERE at > now())",
            &[&instants, &none],
        )
        .await
        .unwrap();
    assert_eq!(rows[0].get::<_, Vec<Option<PgTimestamp>>>(0), instants);
    assert_eq!(rows[0].get::<_, Option<PgTimestamp>>(1), None);
    assert_eq!(rows[0].get::<_, i64>(2), 2);

    let plain = vec![at("2031-04-05T06:07:08Z"), at("2031-04-05T06:07:09Z")];
    let rows =
        conn.query("SELECT max(at) FROM unnest($1::timestamptz[]) AS u (at)", &[&plain]).await.unwrap();
    assert_eq!(rows[0].get::<_, PgTimestamp>(0), plain[1]);
}

#[tokio::test]
async fn instants_before_the_calendar_are_refused() {
    let mut conn = admin().await;
    for far in [i64::MIN + 1, -210_866_803_200_000_001] {
        let instant = PgTimestamp(Timestamp(far));
        assert!(conn.query("SELECT $1::timestamptz", &[&instant]).await.is_err(), "{far}");
    }
    assert_eq!(support::number(&mut conn, "SELECT 1::bigint").await, 1);
}
