//! S-14 and S-15 on a file system that is really full, or really not writable: a small one in memory, mounted in a name
//! space of its own. Where the machine does not allow that the test says so and counts as skipped.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use queen_core::Mode;
use queen_types::PushStatus;

use crate::{Scene, consume, keys};

/// Names the mount point inside the name space.
const INSIDE: &str = "QUEEN_TEST_SMALL_DISK";

/// Runs the test of this name again, in a name space where `dir` is a file system of that size. False: the machine does
/// not allow it.
async fn inside(test: &str, dir: &Path, size: &str) -> anyhow::Result<bool> {
    let mount = |rest: &str| format!("mount -t tmpfs -o size={size} tmpfs '{}' {rest}", dir.display());
    let unshare = |script: String| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
        command
    };
    let allowed = unshare(mount("")).status().is_ok_and(|status| status.success());
    if !allowed {
        println!("skipped (1): {test}: no file system may be mounted in a name space here");
        return Ok(false);
    }
    let program = std::env::current_exe()?;
    let script = mount(&format!("&& exec '{}' --exact {test} --nocapture", program.display()));
    // In there one cannot become the user of a cluster of its own.
    let db = queen_testkit::db().await?.options();
    let server = format!("host={} port={} user={}", db.host, db.port, db.user);
    let output = unshare(script).env(INSIDE, dir).env(queen_testkit::VARIABLE, server).output()?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success() && text.contains("1 passed"), "inside the name space: {text}");
    Ok(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn s14_a_full_disk_fails_pushes_and_spoils_nothing() -> anyhow::Result<()> {
    let Some(disk) = std::env::var_os(INSIDE) else {
        let dir = tempfile::tempdir()?;
        inside("full_disk::s14_a_full_disk_fails_pushes_and_spoils_nothing", dir.path(), "2m").await?;
        return Ok(());
    };
    let disk = Path::new(&disk).to_owned();
    let spool = disk.join("spool");
    let s = Scene::with(|options| options.files.dir = spool.clone()).await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    s.push_all(&["a", "b"], PushStatus::Buffered).await?;
    // Somebody else fills it up but for a corner in which no record of the next push fits.
    std::fs::write(disk.join("ballast"), vec![1; 1024 * 1024])?;
    let mut filler = std::fs::File::create(disk.join("filler"))?;
    while std::io::Write::write_all(&mut filler, &[1; 4096]).is_ok() {}
    let large = |key: &str| {
        let payload = format!("\"{}\"", "x".repeat(16 * 1024));
        queen_core::api::PushItem { payload: payload.into(), ..queen_tests::build::item("q", "p", key) }
    };
    let results = s.push(vec![large("c"), large("d")]).await;
    assert!(results.iter().all(|r| r.status == PushStatus::Failed && r.error.is_some()), "{results:?}");
    assert!(!s.broker.can_buffer());
    std::fs::remove_file(disk.join("ballast"))?;
    s.push_all(&["e", "f"], PushStatus::Buffered).await?;
    assert!(s.broker.can_buffer());
    s.broker.set_maintenance(Mode::Push, false).await;
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["a", "b", "e", "f"]);
    assert_eq!(s.broker.buffered().quarantined, 0);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s15_a_directory_that_becomes_read_only_fails_pushes_and_the_process_stays() -> anyhow::Result<()> {
    let Some(disk) = std::env::var_os(INSIDE) else {
        let dir = tempfile::tempdir()?;
        let test = "full_disk::s15_a_directory_that_becomes_read_only_fails_pushes_and_the_process_stays";
        inside(test, dir.path(), "2m").await?;
        return Ok(());
    };
    let spool = Path::new(&disk).join("spool");
    let s = Scene::with(|options| options.files.dir = spool.clone()).await?;
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).arg(&spool).status();
        assert!(status.is_ok_and(|s| s.success()), "{program} {arguments:?}");
    };
    s.push_all(&["a"], PushStatus::Queued).await?;
    // A file system with open files cannot be made read-only; one that is put over it can be.
    run("mount", &["-t", "tmpfs", "-o", "ro", "tmpfs"]);
    s.cut().await;
    s.push_all(&["b"], PushStatus::Failed).await?;
    assert!(!s.broker.can_buffer());
    run("umount", &[]);
    s.push_all(&["c"], PushStatus::Buffered).await?;
    s.proxy.restore();
    s.drained().await?;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["a", "c"]);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s15_a_file_in_the_place_of_the_directory_refuses_the_start() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("spool");
    std::fs::write(&file, "x")?;
    let refused = Scene::with(|options| options.files.dir = file.clone()).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("spool")));
    // Whoever does not insist on it does without.
    let s = Scene::with(|options| {
        options.files.dir = file.clone();
        options.required = false;
    })
    .await?;
    assert!(!s.broker.can_buffer());
    s.cut().await;
    s.push_all(&["a"], PushStatus::Failed).await?;
    s.broker.shutdown().await;
    Ok(())
}
