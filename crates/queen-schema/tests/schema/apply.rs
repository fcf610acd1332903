use crate::support::{admin, as_role, catalogue_rows, database, role, server, shape, texts};
use queen_pg::{PgOptions, Pool};
use queen_schema::{ApplyOptions, SCHEMA_VERSION, apply, check, fingerprint};
use std::process::Command;

fn options() -> ApplyOptions {
    ApplyOptions { product_version: "1.2.3".to_owned(), ..ApplyOptions::default() }
}

/// Compares with the checked-in text, or writes it when `QUEEN_UPDATE_SNAPSHOTS` is set.
pub(crate) fn equals_snapshot(shape: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schema/catalogue.txt");
    if std::env::var_os("QUEEN_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, shape).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    for (found, expected) in shape.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "run again with QUEEN_UPDATE_SNAPSHOTS=1 if this is wanted");
    }
    assert_eq!(shape.lines().count(), expected.lines().count());
}

#[tokio::test]
async fn a_virgin_database_gets_the_whole_schema() {
    let pool = database().await;
    assert!(check(&pool, &options()).await.unwrap().len() > 20);
    let applied = apply(&pool, &options()).await.unwrap();
    assert!(applied.statements_run > 20, "{applied:?}");
    assert!(applied.server_version >= 140_000, "{applied:?}");
    equals_snapshot(&shape(&pool).await);
    assert!(check(&pool, &options()).await.unwrap().is_empty());

    let mut admin = admin(&pool).await;
    let row = "SELECT (value->>'version') || ' ' || (value->>'product') || ' ' || (value->>'fingerprint') \
               FROM queen.system_state WHERE key = 'schema_version'";
    let expected = format!("{SCHEMA_VERSION} 1.2.3 {}", fingerprint().unwrap());
    assert_eq!(texts(&mut admin, row).await, [expected]);
    let number = "SELECT jsonb_typeof(value->'version') FROM queen.system_state WHERE key = 'schema_version'";
    assert_eq!(texts(&mut admin, number).await, ["number"]);
    // The applier's session is gone, and its lock.
    let sessions = "SELECT pid::text FROM pg_stat_activity WHERE application_name = 'queen-schema-apply' \
                    AND datname = current_database()";
    for _ in 0..500 {
        if texts(&mut admin, sessions).await.is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the applier's session is still there");
}

#[tokio::test]
async fn nothing_is_in_public_and_nothing_is_granted_to_public() {
    let pool = database().await;
    apply(&pool, &options()).await.unwrap();
    let mut admin = admin(&pool).await;
    let in_public = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace \
         UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace \
         UNION ALL SELECT extname::text FROM pg_extension WHERE extname <> 'plpgsql'";
    assert_eq!(texts(&mut admin, in_public).await, Vec::<String>::new());
    let to_public = "SELECT c.relname::text FROM pg_class AS c, aclexplode(c.relacl) AS a \
         WHERE a.grantee = 0 AND c.relnamespace::regnamespace::text LIKE 'queen%' \
         UNION ALL SELECT n.nspname::text FROM pg_namespace AS n, aclexplode(n.nspacl) AS a \
         WHERE a.grantee = 0 AND n.nspname LIKE 'queen%'";
    assert_eq!(texts(&mut admin, to_public).await, Vec::<String>::new());
    let stranger = as_role(&pool, &role(&pool).await);
    let refused = stranger.get().await.unwrap().query("SELECT FROM queen.queues", &[]).await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("42501"));
}

#[tokio::test]
async fn a_second_apply_changes_no_catalogue_row() {
    let pool = database().await;
    let grants = ApplyOptions { grant_roles: vec![role(&pool).await], ..options() };
    apply(&pool, &grants).await.unwrap();
    let before = catalogue_rows(&pool).await;
    assert!(before.len() > 100);
    for other_product in ["1.2.3", "1.2.4"] {
        let again = ApplyOptions { product_version: other_product.to_owned(), ..grants.clone() };
        assert_eq!(apply(&pool, &again).await.unwrap().statements_run, 0);
    }
    assert_eq!(catalogue_rows(&pool).await, before);
}

#[tokio::test]
async fn databases_with_odd_settings_get_the_same_schema() {
    let mut kinds = vec![
        "TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING 'UTF8'",
        "TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING 'SQL_ASCII'",
        "TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING 'LATIN1'",
    ];
    let pool = database().await;
    let icu = "SELECT 1::text FROM pg_collation WHERE collname = 'tr-x-icu' \
               AND current_setting('server_version_num')::int >= 150000";
    if !texts(&mut admin(&pool).await, icu).await.is_empty() {
        kinds.push("TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR' LC_COLLATE 'C' LC_CTYPE 'C' ENCODING 'UTF8'");
    }
    for kind in kinds {
        let pool = server().database(kind).await;
        let database = pool.options().database.clone();
        for setting in [
            "timezone TO 'Asia/Tokyo'",
            "datestyle TO 'German'",
            "default_transaction_isolation TO 'serializable'",
            "search_path TO public, queen",
            "standard_conforming_strings TO off",
            "default_tablespace TO ''",
            "lock_timeout TO 1",
            "statement_timeout TO 1000",
        ] {
            admin(&pool).await.batch(&format!("ALTER DATABASE {database} SET {setting}")).await.unwrap();
        }
        apply(&pool, &options()).await.unwrap_or_else(|error| panic!("{kind}: {error}"));
        equals_snapshot(&shape(&pool).await);
        assert_eq!(apply(&pool, &options()).await.unwrap().statements_run, 0, "{kind}");
    }
}

#[tokio::test]
async fn a_restored_dump_is_complete() {
    let source = database().await;
    apply(&source, &options()).await.unwrap();
    admin(&source).await.batch("INSERT INTO queen.queues (name) VALUES ('orders')").await.unwrap();
    let file = std::env::temp_dir().join(format!("queen-schema-dump-{}", std::process::id()));
    let tool = |name: &str, pool: &Pool| {
        let options = pool.options();
        let mut command = Command::new(server().cluster.binaries().program(name));
        command.args(["-h", &options.host, "-U", &options.user, "-p", &options.port.to_string()]);
        command.args(["-d", &options.database]);
        command
    };
    let dumped = tool("pg_dump", &source)
        .args(["-Fc", "-n", "queen", "-n", "queen_streams", "-f"])
        .arg(&file)
        .status()
        .unwrap();
    assert!(dumped.success());
    let target = database().await;
    let restored =
        tool("pg_restore", &target).args(["--no-owner", "--no-privileges"]).arg(&file).status().unwrap();
    assert!(restored.success());
    std::fs::remove_file(&file).unwrap();

    assert_eq!(apply(&target, &options()).await.unwrap().statements_run, 0);
    equals_snapshot(&shape(&target).await);
    let names = texts(&mut admin(&target).await, "SELECT name::text FROM queen.queues").await;
    assert_eq!(names, ["orders"]);
}

#[tokio::test]
async fn an_unreachable_database_is_transient_and_a_missing_one_is_not() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let nowhere = PgOptions { host: "127.0.0.1".to_owned(), port, ..PgOptions::default() };
    let error = apply(&Pool::new(nowhere).unwrap(), &options()).await.unwrap_err();
    assert_eq!(error.class(), queen_pg::FailureClass::Transient, "{error}");

    let missing = PgOptions { database: "nowhere".to_owned(), ..server().options() };
    let error = apply(&Pool::new(missing).unwrap(), &options()).await.unwrap_err();
    assert_ne!(error.class(), queen_pg::FailureClass::Transient, "{error}");
}
