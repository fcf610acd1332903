//! The configuration file, and files that hold secrets.

use std::path::PathBuf;

use queen_config::{Origin, Sources, Value, load};

use crate::support::{Dir, sources, with_file};

#[test]
fn the_file_sets_what_the_environment_does_not() {
    let loaded = with_file(
        "[server]\nport = 7000\n[postgres]\nhost = \"db\"\npool_size = 0x20\n[postgres.tls]\nenabled = true\n\
         [pop.autopilot]\nmode = true\n[mesh]\npeers = [\"a:1\", \"b\"]\nsecret = \"a secret of some length\"\n\
         [pop.wait]\nmultiplier = 3\n",
        &[("PORT", "8000")],
    )
    .unwrap();
    let get = |name: &str| loaded.effective.settings().iter().find(|s| s.variable.name == name).unwrap();
    assert_eq!(get("PORT").value, Some(Value::Int(8000)));
    assert_eq!(get("PG_HOST").value, Some(Value::Text("db".to_owned())));
    assert_eq!(get("DB_POOL_SIZE").value, Some(Value::Int(32)));
    assert_eq!(get("PG_USE_SSL").value, Some(Value::Bool(true)));
    assert_eq!(get("QUEEN_POP_AUTOPILOT").value, Some(Value::Text("on".to_owned())));
    assert_eq!(get("POP_WAIT_BACKOFF_MULTIPLIER").value, Some(Value::Float(3.0)));
    assert!(matches!(&get("PG_HOST").origin, Origin::File(place) if place.ends_with("queen.toml:4")));
    assert_eq!(loaded.config.http.bind.port(), 8000);
    assert_eq!(loaded.config.broker.pg.host, "db");
}

#[test]
fn wrong_types_are_refused() {
    for (text, expected) in [
        (
            "[server]\nport = \"x\"",
            "server.port = \"x\" (queen.toml:2): not an integer; allowed 1 to 65535, e.g. 6632   [PORT]",
        ),
        (
            "[server]\nport = 1.5",
            "server.port = 1.5 (queen.toml:2): not an integer; allowed 1 to 65535, e.g. 6632   [PORT]",
        ),
        (
            "[log]\njson = 1",
            "log.json = 1 (queen.toml:2): not a boolean; allowed true or false   [QUEEN_LOG_JSON]",
        ),
        (
            "[log]\nfilter = 1",
            "log.filter = 1 (queen.toml:2): not a string; allowed a level (off, error, warn, info, debug, trace) or filter directives, e.g. info,spool=debug   [LOG_LEVEL]",
        ),
        (
            "mesh.peers = [1]",
            "mesh.peers = [1] (queen.toml:1): not an array of strings; allowed host[:port], separated by commas, e.g. queen-1:6633,queen-2:6633   [QUEEN_MESH_PEERS]",
        ),
        (
            "[server.port]\nx = 1",
            "server.port = [server.port] (queen.toml:1): not an integer; allowed 1 to 65535",
        ),
        ("server = 3", "server (queen.toml:1): not a known key"),
    ] {
        let found = with_file(text, &[]).unwrap_err();
        assert!(found.iter().any(|p| p.starts_with(expected)), "{text}: {found:?}");
    }
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_one() {
    for (text, expected) in [
        (
            "[postgres]\npool_sise = 3",
            "postgres.pool_sise (queen.toml:2): not a known key; did you mean postgres.pool_size?",
        ),
        ("[serverr]\nport = 3", "serverr (queen.toml:1): not a known key; did you mean server.id?"),
        ("[wholly]\nother = 3", "wholly (queen.toml:1): not a known key"),
    ] {
        let found = with_file(text, &[]).unwrap_err();
        let head = expected.split("; did").next().unwrap();
        assert!(found.iter().any(|p| p.starts_with(head)), "{text}: {found:?}");
        if text.contains("pool_sise") {
            assert_eq!(found, [expected]);
        }
    }
}

#[test]
fn a_file_that_is_no_toml_says_where() {
    let found = with_file("[server]\nport = \n", &[]).unwrap_err();
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("TOML (queen.toml:2): "), "{found:?}");
}

#[test]
fn a_named_file_has_to_exist_and_the_fallback_need_not() {
    let missing = PathBuf::from("/nonexistent/queen.toml");
    let fallback = Sources { fallback_file: Some(missing.clone()), ..sources(&[]) };
    assert!(load(&fallback).is_ok());
    let named = Sources { config_file: Some(missing.clone()), ..sources(&[]) };
    let report = load(&named).unwrap_err().to_string();
    assert!(
        report.contains("--config = \"/nonexistent/queen.toml\" (command line): cannot be read: "),
        "{report}"
    );
    let by_env = sources(&[("QUEEN_CONFIG_FILE", "/nonexistent/queen.toml")]);
    let report = load(&by_env).unwrap_err().to_string();
    assert!(
        report.contains("QUEEN_CONFIG_FILE = \"/nonexistent/queen.toml\" (environment): cannot be read"),
        "{report}"
    );
}

#[test]
fn the_command_line_wins_over_the_variable_and_that_over_the_fallback() {
    let dir = Dir::new();
    let paths = [1, 2, 3].map(|n| dir.write(&format!("{n}.toml"), &format!("server.port = {n}\n")));
    let mut sources = sources(&[]);
    let port = |sources: &Sources| load(sources).unwrap().config.http.bind.port();
    sources.fallback_file = Some(paths[0].clone());
    assert_eq!(port(&sources), 1);
    sources.env.insert("QUEEN_CONFIG_FILE".to_owned(), paths[1].display().to_string());
    assert_eq!(port(&sources), 2);
    sources.config_file = Some(paths[2].clone());
    assert_eq!(port(&sources), 3);
}

#[test]
fn secrets_come_from_files_of_their_own() {
    let dir = Dir::new();
    for (stored, expected) in
        [("geheim\n", "geheim"), ("geheim\r\n", "geheim"), ("geheim\n\n", "geheim\n"), ("geheim", "geheim")]
    {
        let path = dir.write("password", stored).display().to_string();
        let by_env = load(&sources(&[("PG_PASSWORD_FILE", path.as_str())])).unwrap();
        assert_eq!(by_env.config.broker.pg.password.as_deref(), Some(expected), "{stored:?}");
        let by_file = with_file(&format!("[postgres]\npassword_file = {path:?}\n"), &[]).unwrap();
        assert_eq!(by_file.config.broker.pg.password.as_deref(), Some(expected), "{stored:?}");
    }
}

#[test]
fn a_secret_and_its_file_do_not_go_together() {
    let dir = Dir::new();
    let path = dir.write("password", "x").display().to_string();
    let report =
        load(&sources(&[("PG_PASSWORD_FILE", path.as_str()), ("PG_PASSWORD", "y")])).unwrap_err().to_string();
    assert!(
        report.contains(
            " (environment): PG_PASSWORD is set too; allowed only one of the two   [postgres.password_file]"
        ),
        "{report}"
    );
    let found =
        with_file(&format!("[postgres]\npassword = \"y\"\npassword_file = {path:?}\n"), &[]).unwrap_err();
    assert!(found[0].contains("the secret and its file are both named"), "{found:?}");
    let missing = load(&sources(&[("JWT_SECRET_FILE", "/nonexistent/s")])).unwrap_err().to_string();
    assert!(
        missing.contains("JWT_SECRET_FILE=\"/nonexistent/s\" (environment): cannot be read: "),
        "{missing}"
    );
}

#[test]
fn a_bad_secret_in_a_file_is_reported_by_the_files_name() {
    let dir = Dir::new();
    let path = dir.write("key", "hunter2\n").display().to_string();
    let report = load(&sources(&[("QUEEN_ENCRYPTION_KEY_FILE", path.as_str())])).unwrap_err().to_string();
    assert!(report.contains(&format!(
        "QUEEN_ENCRYPTION_KEY_FILE={path:?} (environment): not a key; allowed exactly 64"
    )));
    assert!(!report.contains("hunter2"), "{report}");
}

#[cfg(unix)]
#[test]
fn a_secret_in_a_file_that_others_may_read_is_warned_about() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    let path = dir.write("queen.toml", "[postgres]\npassword = \"geheim\"\n");
    let sources = Sources { config_file: Some(path.clone()), ..sources(&[]) };
    let warnings = |mode| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        load(&sources).unwrap().warnings
    };
    assert_eq!(warnings(0o600), Vec::<String>::new());
    let open = warnings(0o644);
    assert!(open[0].contains("holds postgres.password and others may read it"), "{open:?}");
}
