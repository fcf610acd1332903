use queen_spool::{Entry, QuarantineError, Reason, Spool, SpoolOptions};

use crate::{append, names, numbers, options, read, read_all};

fn reason(text: &str) -> Reason {
    Reason { sqlstate: Some("23514".to_owned()), error: text.to_owned() }
}

/// Reads a file to its end and ends it with these events aside.
fn finish(spool: &Spool, name: &str, aside: &[u64]) {
    let mut reader = spool.reader(name).unwrap();
    let rest = loop {
        match reader.next_entry().unwrap() {
            Entry::Record(..) => {}
            Entry::Damaged { rest, salvaged } => break Some((rest, salvaged)),
            Entry::End | Entry::Torn => break None,
        }
    };
    let aside: Vec<(u64, Reason)> = aside.iter().map(|n| (*n, reason(&format!("bad {n}")))).collect();
    spool.finish(name, Some(&mut reader), &aside, rest).unwrap();
}

async fn one_file(spool: &Spool, count: usize) -> String {
    append(spool, 0..count).await;
    spool.finalize().await;
    spool.ready().remove(0)
}

#[tokio::test]
async fn exactly_the_bad_events_are_kept_with_their_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    let name = one_file(&spool, 5).await;
    finish(&spool, &name, &[1, 3]);
    let status = spool.status();
    assert_eq!((status.pending, status.quarantined, status.quarantined_files), (0, 2, 1));
    assert_eq!((status.set_aside, status.set_aside_files), (2, 1));
    let page = spool.quarantined(None, 0, 100).unwrap();
    let keys: Vec<_> =
        page.events.iter().map(|q| q.event.as_ref().unwrap().transaction_id.to_string()).collect();
    assert_eq!((keys, page.total), (vec!["t1".to_owned(), "t3".to_owned()], 2));
    assert_eq!(page.events[1].why.error, "bad 3");
    assert_eq!(page.events[1].why.sqlstate.as_deref(), Some("23514"));
    assert_eq!(spool.quarantined(Some(&name), 1, 1).unwrap().events[0].index, 1);
    assert_eq!(names(dir.path()), [".lock", "failed"]);
    drop(spool);
    let again = Spool::open(options(dir.path())).unwrap();
    assert_eq!((again.pending(), again.status().quarantined), (0, 2));
}

#[tokio::test]
async fn a_second_pass_over_a_file_leaves_what_it_says_and_nothing_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    let name = one_file(&spool, 4).await;
    let copy = std::fs::read(dir.path().join(&name)).unwrap();
    finish(&spool, &name, &[1, 2]);
    // As after a crash between the quarantine and the deletion.
    drop(spool);
    std::fs::write(dir.path().join(&name), copy).unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    assert_eq!((spool.pending(), spool.status().quarantined), (4, 2));
    finish(&spool, &name, &[2]);
    assert_eq!(spool.quarantined(None, 0, 9).unwrap().events[0].why.error, "bad 2");
    assert_eq!((spool.pending(), spool.status().quarantined), (0, 1));
}

#[tokio::test]
async fn requeued_events_go_behind_all_others_and_leave_quarantine() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    let name = one_file(&spool, 4).await;
    finish(&spool, &name, &[0, 1, 2]);
    append(&spool, 7..8).await;
    assert!(matches!(
        spool.requeue(&name, Some(&[3])).await,
        Err(QuarantineError::NoSuchEvent { index: 3, events: 3, .. })
    ));
    assert_eq!(spool.requeue(&name, Some(&[1])).await.unwrap(), 1);
    assert_eq!(spool.status().quarantined, 2);
    assert_eq!(
        spool.quarantined(None, 0, 9).unwrap().events[1].why.error,
        "bad 2",
        "reasons stay with their events"
    );
    assert_eq!(spool.requeue(&name, None).await.unwrap(), 2);
    spool.finalize().await;
    assert_eq!(read_all(&spool), ["7", "1", "0", "2"]);
    assert_eq!((spool.status().quarantined, names(&dir.path().join("failed")).len()), (0, 0));
    assert!(matches!(spool.requeue(&name, None).await, Err(QuarantineError::NoSuchFile(_))));
    for odd in ["../x.buf", "", "queen-1.buf", "/etc/passwd"] {
        assert!(matches!(spool.delete(odd), Err(QuarantineError::NoSuchFile(_))), "{odd}");
    }
}

#[tokio::test]
async fn an_operator_deletes_and_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    let name = one_file(&spool, 2).await;
    finish(&spool, &name, &[0]);
    assert_eq!(spool.delete(&name).unwrap(), 1);
    assert_eq!(spool.status().quarantined, 0);
    assert!(names(&dir.path().join("failed")).is_empty());
}

#[tokio::test]
async fn bytes_behind_damage_are_kept_and_what_can_be_read_of_them_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    let name = one_file(&spool, 6).await;
    let path = dir.path().join(&name);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|w| w == b"\"t2\"").unwrap();
    bytes[at] = b'!';
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&spool, &name), numbers(0..2));
    finish(&spool, &name, &[]);
    let kept = spool.quarantined(None, 0, 100).unwrap();
    let payloads: Vec<_> = kept.events.iter().map(|q| q.event.as_ref().unwrap().payload.clone()).collect();
    assert_eq!(payloads, ["3", "4", "5"]);
    assert!(kept.events.iter().all(|q| q.why.error.contains("behind a damaged record")));
    let rest = name.replace(".buf", ".rest");
    assert!(bytes.ends_with(&std::fs::read(dir.path().join("failed").join(&rest)).unwrap()));
    assert_eq!(spool.requeue(&name, None).await.unwrap(), 3);
    assert_eq!(spool.delete(&rest).unwrap(), 3);
    assert_eq!((spool.pending(), spool.status().quarantined_files), (3, 0));
}

#[tokio::test]
async fn without_a_quarantine_the_file_stays_and_is_passed_over() {
    // A plain file in the place of the folder refuses even root, who may write everywhere else.
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(options(dir.path())).unwrap();
    let name = one_file(&spool, 3).await;
    std::fs::remove_dir(dir.path().join("failed")).unwrap();
    std::fs::write(dir.path().join("failed"), "in the way").unwrap();
    finish(&spool, &name, &[1]);
    let bad = name.replace(".buf", ".bad");
    assert_eq!(names(dir.path()), [".lock", "failed", bad.as_str()]);
    assert_eq!((spool.ready().len(), spool.pending(), spool.status().quarantined), (0, 0, 3));
    assert_eq!(spool.quarantined(Some(&bad), 0, 9).unwrap().total, 3);
    drop(spool);
    let spool = Spool::open(options(dir.path())).unwrap();
    assert_eq!((spool.pending(), spool.status().quarantined), (0, 3));
    std::fs::remove_file(dir.path().join("failed")).unwrap();
    assert_eq!(spool.requeue(&bad, None).await.unwrap(), 3);
    assert_eq!((spool.pending(), spool.status().quarantined), (3, 0));
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_set_aside_whole() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(SpoolOptions { events_per_file: 1, ..options(dir.path()) }).unwrap();
    append(&spool, 0..2).await;
    spool.finalize().await;
    let name = spool.ready().remove(0);
    spool.set_aside(&name, std::io::Error::other("unreadable")).unwrap();
    assert_eq!(read_all(&spool), ["1"]);
    let rest = name.replace(".buf", ".rest");
    assert_eq!(names(&dir.path().join("failed")), [rest.as_str()]);
    assert_eq!(spool.requeue(&rest, None).await.unwrap(), 1);
}
