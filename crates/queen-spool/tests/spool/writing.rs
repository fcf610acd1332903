use std::sync::Arc;
use std::sync::atomic::Ordering;

use queen_spool::{FileState, FsyncMode, OnConflict, OpenError, Refused, Spool, SpoolOptions};

use crate::recording::{Change, Recording};
use crate::{append, event, names, numbers, options, read_all};

#[tokio::test]
async fn events_come_back_in_order_through_rotations_and_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let small = SpoolOptions { events_per_file: 2, ..options(dir.path()) };
    let spool = Spool::open(small.clone()).unwrap();
    append(&spool, 0..5).await;
    let status = spool.status();
    assert_eq!((status.pending, status.pending_files, status.ready_files, status.written), (5, 3, 2, 5));
    assert_eq!(status.oldest.unwrap().0, 1_900_000_000_000_000);
    spool.finalize().await;
    assert_eq!(spool.ready().len(), 3);
    assert!(spool.ready().is_sorted());
    assert_eq!(read_all(&spool), numbers(0..5));
    append(&spool, 5..6).await;
    spool.close();
    assert_eq!(spool.append(vec![event(9)]).await, [Err(Refused::Closed)]);
    drop(spool);
    let again = Spool::open(small).unwrap();
    assert_eq!((again.pending(), again.ready().len()), (6, 4));
    append(&again, 6..7).await;
    again.finalize().await;
    assert_eq!(read_all(&again), numbers(0..7));
}

#[tokio::test]
async fn an_answer_comes_after_the_sync_of_its_bytes_and_of_its_name() {
    for fsync in [FsyncMode::Batch, FsyncMode::Always] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Recording::default();
        let spool =
            Spool::open_on(SpoolOptions { fsync, ..options(dir.path()) }, Arc::new(disk.clone())).unwrap();
        disk.changes.lock().unwrap().clear();
        append(&spool, 0..3).await;
        let changes = disk.changes.lock().unwrap().clone();
        let syncs = changes.iter().filter(|c| matches!(c, Change::Sync(_))).count();
        assert_eq!(syncs, if fsync == FsyncMode::Always { 3 } else { 1 });
        assert!(matches!(changes.last(), Some(Change::Sync(_))), "{changes:?}");
        assert_eq!(changes.iter().filter(|c| **c == Change::SyncDir(dir.path().to_owned())).count(), 1);
    }
}

#[tokio::test]
async fn many_callers_share_syncs() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Recording::default();
    let spool = Arc::new(Spool::open_on(options(dir.path()), Arc::new(disk.clone())).unwrap());
    let calls: Vec<_> = (0..500)
        .map(|n| {
            let spool = spool.clone();
            tokio::spawn(async move { spool.append(vec![event(n)]).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), [Ok(())]);
    }
    let syncs = disk.changes.lock().unwrap().iter().filter(|c| matches!(c, Change::Sync(_))).count();
    assert!(syncs < 500, "{syncs} syncs for 500 events");
    assert_eq!(spool.pending(), 500);
}

#[tokio::test]
async fn a_full_disk_refuses_and_what_was_before_and_comes_after_is_whole() {
    for truncates in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Recording::default();
        let spool = Spool::open_on(options(dir.path()), Arc::new(disk.clone())).unwrap();
        append(&spool, 0..3).await;
        disk.faults.truncate.store(!truncates, Ordering::Relaxed);
        *disk.faults.room.lock().unwrap() = Some(50);
        let results = spool.append(vec![event(100), event(101)]).await;
        assert!(results.iter().all(|r| matches!(r, Err(Refused::Disk(_)))), "{results:?}");
        assert!(!spool.is_writable());
        *disk.faults.room.lock().unwrap() = None;
        append(&spool, 3..6).await;
        assert!(spool.is_writable());
        spool.finalize().await;
        assert_eq!(read_all(&spool), numbers(0..6), "truncates: {truncates}");
        let status = spool.status();
        assert_eq!((status.pending, status.refused, status.written), (6, 2, 6));
        drop(spool);
        assert_eq!(Spool::open(options(dir.path())).unwrap().pending(), 6);
    }
}

#[tokio::test]
async fn a_failed_sync_refuses_and_leaves_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Recording::default();
    let spool = Spool::open_on(options(dir.path()), Arc::new(disk.clone())).unwrap();
    append(&spool, 0..2).await;
    disk.faults.syncs.store(1, Ordering::Relaxed);
    assert!(spool.append(vec![event(100)]).await[0].is_err());
    append(&spool, 2..3).await;
    spool.finalize().await;
    assert_eq!(read_all(&spool), numbers(0..3));
    assert_eq!(spool.ready().len(), 2, "nothing more goes into a file whose sync failed");
}

#[tokio::test]
async fn bounds_of_size_and_of_free_space_refuse_early() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(SpoolOptions { max_bytes: 600, ..options(dir.path()) }).unwrap();
    append(&spool, 0..4).await;
    assert!(matches!(spool.append(vec![event(4)]).await[0], Err(Refused::Ceiling { max: 600, .. })));
    drop(spool);

    let disk = Recording::default();
    let reserve = SpoolOptions { min_free_bytes: 1000, ..options(dir.path()) };
    let spool = Spool::open_on(reserve, Arc::new(disk.clone())).unwrap();
    *disk.faults.free.lock().unwrap() = Some(999);
    let refused = spool.append(vec![event(5)]).await;
    assert_eq!(refused, [Err(Refused::Full { free: 999, reserve: 1000 })]);
    assert!(!spool.probe().await);
    *disk.faults.free.lock().unwrap() = Some(1000);
    assert!(spool.probe().await);
    append(&spool, 5..6).await;
}

#[tokio::test]
async fn a_directory_that_vanishes_accepts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    append(&spool, 0..1).await;
    std::fs::remove_dir_all(dir.path()).unwrap();
    assert!(spool.append(vec![event(1)]).await[0].is_err());
    assert!(spool.append(vec![event(2)]).await[0].is_err());
    assert!(!spool.probe().await);
}

#[test]
fn a_directory_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let mine = |id: &str| SpoolOptions { server_id: id.to_owned(), ..options(dir.path()) };
    let first = Spool::open(mine("a")).unwrap();
    // Of the same process: a directory of its own inside.
    let second = Spool::open(mine("b")).unwrap();
    assert!(second.dir() != first.dir() && second.dir().starts_with(first.dir()));
    drop((first, second));
    // Of another process: the lock tells who it is.
    let held = std::process::Command::new("flock")
        .args([dir.path().join(".lock").to_str().unwrap(), "sleep", "60"])
        .spawn();
    let Ok(mut held) = held else { panic!("flock is part of util-linux") };
    let text = format!(
        r#"{{"serverId":"other","instanceId":"00000000-0000-0000-0000-000000000007","pid":{}}}"#,
        held.id()
    );
    let begin = std::time::Instant::now();
    let refused = loop {
        std::fs::write(dir.path().join(".lock"), &text).unwrap();
        match Spool::open(mine("c")) {
            Err(error) => break error,
            Ok(spool) => drop(spool),
        }
        assert!(begin.elapsed().as_secs() < 10, "the lock is never taken");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert!(
        matches!(&refused, OpenError::Held { holder, .. } if holder.contains("server other")),
        "{refused}"
    );
    let aside = SpoolOptions { on_conflict: OnConflict::Subdir, ..mine("c/../d") };
    let spool = Spool::open(aside).unwrap();
    assert_eq!(spool.dir(), dir.path().join("server-c_.._d"));
    held.kill().unwrap();
    held.wait().unwrap();
}

#[tokio::test]
async fn files_of_an_owner_that_is_gone_are_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let first = Spool::open(options(dir.path())).unwrap();
    let second = Spool::open(options(dir.path())).unwrap();
    append(&second, 0..3).await;
    drop(second);
    drop(first);
    let heir = Spool::open(options(dir.path())).unwrap();
    assert_eq!(heir.pending(), 3);
    assert_eq!(read_all(&heir), numbers(0..3));
}

#[test]
fn a_place_that_is_no_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = Spool::open(options(&file)).err().unwrap();
    assert!(matches!(error, OpenError::Unusable { .. }) && error.to_string().contains("file"), "{error}");
}

#[tokio::test]
async fn a_plain_record_reads_as_the_public_one() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    append(&spool, 0..1).await;
    assert_eq!(spool.status().files[0].state, FileState::Active);
    spool.finalize().await;
    let bytes = std::fs::read(spool.dir().join(&spool.ready()[0])).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("tenant"), "of the default tenant nothing is said");
    assert_eq!(names(dir.path()).len(), 3, "the file, the lock, and failed/");
}

/// Whatever stands in the records: a start does not read them.
#[tokio::test]
async fn a_start_counts_by_the_lengths_of_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    append(&spool, 0..1000).await;
    spool.close();
    let path = dir.path().join(names(dir.path()).into_iter().find(|n| n.ends_with(".buf")).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() - 5;
    bytes[at] ^= 1;
    // The beginning of one more, whose write was cut off.
    bytes.extend_from_slice(&[200, 0, 0, 0, 1, 2, 3, 4, b'{']);
    std::fs::write(&path, &bytes).unwrap();
    // A file of the public broker beside it.
    let body = br#"{"queue":"q","partition":"p","transactionId":"t","payload":1}"#;
    let mut public = Vec::new();
    for _ in 0..3 {
        public.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
        public.extend_from_slice(body);
    }
    std::fs::write(dir.path().join("queen-1700000000000-00000000.buf"), public).unwrap();
    let again = Spool::open(options(dir.path())).unwrap();
    let status = again.status();
    assert_eq!((status.pending, status.pending_files), (1003, 2));
    assert_eq!(status.oldest.unwrap().0, 1_900_000_000_000_000);
}
