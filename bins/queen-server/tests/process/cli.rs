use crate::program::run;
use crate::settings::spool;

#[test]
fn migrate_says_that_there_is_none_whatever_the_configuration() {
    let (code, out, err) = run(&["migrate", "--from", "x"], &[("PORT", "not a port")]);
    assert_eq!(code, Some(1));
    assert!(err.contains("offline migration is not supported"), "{err}");
    assert!(out.contains("migrate: ") && out.contains("offline migration is not supported"), "{out}");
}

#[test]
fn a_bad_configuration_names_every_variable() {
    let (code, out, err) = run(&[], &[("PORT", "seven"), ("DB_POOL_SIZE", "16O")]);
    assert_eq!(code, Some(1));
    for part in ["2 problems", "PORT=\"seven\"", "DB_POOL_SIZE=\"16O\""] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert!(out.contains("ERROR boot: "), "{out}");
}

#[test]
fn config_check_and_print_look_only() {
    let (code, out, _) = run(&["config", "check"], &[("PORT", "7001")]);
    assert_eq!((code, out.lines().next()), (Some(0), Some("configuration: no problems")));
    let (code, out, _) = run(&["config", "check"], &[("PORT", "seven")]);
    assert!(code == Some(1) && out.contains("PORT=\"seven\""), "{out}");
    let (code, out, _) =
        run(&["config", "print", "--format", "env"], &[("PORT", "7001"), ("PG_PASSWORD", "s3cret")]);
    assert!(code == Some(0) && out.contains("PORT=7001") && !out.contains("s3cret"), "{out}");
    let (code, out, _) = run(&["config", "schema"], &[]);
    assert!(code == Some(0) && out.contains("QUEEN_MAX_BODY_BYTES"));
}

#[test]
fn help_version_and_mistakes() {
    let (code, out, _) = run(&["--version"], &[]);
    assert_eq!((code, out.trim()), (Some(0), concat!("queen-server ", env!("CARGO_PKG_VERSION"))));
    let (code, out, _) = run(&["--help"], &[]);
    assert!(code == Some(0) && out.contains("queen-server dev"));
    let (code, _, err) = run(&["serve"], &[]);
    assert!(code == Some(1) && err.contains("\"serve\""), "{err}");
}

#[test]
fn without_a_database_it_does_not_start() {
    // Nobody can listen on port 1 but root, and nobody does.
    let (code, _, err) = run(
        &[],
        &[
            ("PG_HOST", "127.0.0.1"),
            ("PG_PORT", "1"),
            ("QUEEN_BOOT_WITHOUT_DB", "off"),
            ("FILE_BUFFER_DIR", &spool(1)),
        ],
    );
    assert_eq!(code, Some(1));
    assert!(err.contains("cannot start on the database 127.0.0.1:1/postgres"), "{err}");
    assert!(err.contains("Connection refused"), "{err}");
}

#[test]
fn dev_without_postgresql_says_what_to_install() {
    let dir = tempfile::tempdir().unwrap();
    // With binaries in the usual places there is nothing to say.
    if std::path::Path::new("/usr/lib/postgresql").exists() {
        println!("skipped: PostgreSQL is installed where it is always looked for");
        return;
    }
    let (code, _, err) = run(&["dev", "--data", dir.path().to_str().unwrap()], &[("PATH", "/nonexistent")]);
    assert!(code == Some(1) && err.contains("apt-get install postgresql"), "{err}");
}
