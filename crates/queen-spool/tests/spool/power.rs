//! S-24: the power goes. What was done to the file system is recorded; then, for every moment, every state is made that
//! a power cut at that moment may leave, and everything that was answered until then has to be in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use queen_spool::{Entry, Reason, Spool, SpoolOptions};

use crate::recording::{Change, Recording};
use crate::{event, options};

/// What a power cut leaves of bytes that were written and not synced.
#[derive(Debug, Clone, Copy)]
enum Tail {
    Nothing,
    Half,
    Everything,
    /// The length, and no byte of it.
    Zeros,
}

/// A file and what is known to be on the platter of it.
#[derive(Debug, Clone, Default)]
struct Inode {
    bytes: Vec<u8>,
    durable: usize,
}

/// A file system with a journal: names become durable in order, and at the latest with the sync of their directory.
#[derive(Debug, Clone, Default)]
struct Platter {
    inodes: Vec<Inode>,
    /// Which file a writer means that created it under that name.
    writers: BTreeMap<PathBuf, usize>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// Changes of names since the last sync of a directory: a power cut keeps any prefix of them.
    open: Vec<Change>,
}

impl Platter {
    fn rename(names: &mut BTreeMap<PathBuf, usize>, change: &Change, writers: &BTreeMap<PathBuf, usize>) {
        match change {
            Change::Create(path) => {
                names.insert(path.clone(), writers[path]);
            }
            Change::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Change::Remove(path) => {
                names.remove(path);
            }
            _ => {}
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Create(path) => {
                self.writers.insert(path.clone(), self.inodes.len());
                self.inodes.push(Inode::default());
            }
            Change::Append(path, bytes) => self.inodes[self.writers[path]].bytes.extend(bytes),
            Change::Truncate(path, length) => {
                let inode = &mut self.inodes[self.writers[path]];
                inode.bytes.truncate(usize::try_from(*length).unwrap());
                inode.durable = inode.durable.min(inode.bytes.len());
            }
            Change::Sync(path) => {
                let inode = &mut self.inodes[self.writers[path]];
                inode.durable = inode.bytes.len();
            }
            Change::SyncDir(_) => {
                self.durable_names = self.names.clone();
                self.open.clear();
            }
            _ => {}
        }
        if matches!(change, Change::Create(_) | Change::Rename(..) | Change::Remove(_)) {
            Platter::rename(&mut self.names, change, &self.writers);
            self.open.push(change.clone());
        }
    }

    /// Writes what is left to a directory in the place of the recorded one.
    fn leave(&self, names_kept: usize, tail: Tail, root: &Path, to: &Path) {
        let mut names = self.durable_names.clone();
        for change in &self.open[..names_kept] {
            Platter::rename(&mut names, change, &self.writers);
        }
        for (path, inode) in names {
            let Inode { bytes, durable } = &self.inodes[inode];
            let loose = bytes.len() - durable;
            let mut left = bytes.clone();
            match tail {
                Tail::Nothing => left.truncate(*durable),
                Tail::Half => left.truncate(durable + loose / 2),
                Tail::Everything => {}
                Tail::Zeros => left[*durable..].fill(0),
            }
            std::fs::write(to.join(path.strip_prefix(root).unwrap()), left).unwrap();
        }
    }
}

/// Transaction ids that stand in the directory, waiting or in quarantine.
fn present(dir: &Path) -> BTreeSet<String> {
    let spool = Spool::open(options(dir)).unwrap();
    let mut found = BTreeSet::new();
    for name in spool.ready() {
        let mut reader = spool.reader(&name).unwrap();
        while let Entry::Record(_, event) = reader.next_entry().unwrap() {
            found.insert(event.unwrap().transaction_id.to_string());
        }
    }
    let aside = spool.quarantined(None, 0, 1000).unwrap();
    found.extend(aside.events.into_iter().map(|q| q.event.unwrap().transaction_id.to_string()));
    found
}

#[tokio::test]
async fn every_power_cut_leaves_what_was_answered() {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let recorded = tempfile::tempdir_in(&place).unwrap();
    let disk = Recording::default();
    let small = SpoolOptions { events_per_file: 3, ..options(recorded.path()) };
    let spool = Spool::open_on(small, Arc::new(disk.clone())).unwrap();
    // Before which change: what was answered, and what the database had.
    let mut answered: Vec<(usize, String)> = Vec::new();
    let mut stored: Vec<(usize, String)> = Vec::new();
    let at = || disk.changes.lock().unwrap().len();
    let mut next = 0;
    for size in [1, 2, 4, 1, 5, 2] {
        let events: Vec<_> = (next..next + size).map(event).collect();
        next += size;
        let keys: Vec<String> = events.iter().map(|e| e.transaction_id.to_string()).collect();
        assert!(spool.append(events).await.iter().all(Result::is_ok));
        answered.extend(keys.into_iter().map(|key| (at(), key)));
    }
    spool.finalize().await;
    // Of the oldest file everything is stored, of the next one event can not be.
    for (name, bad) in spool.ready().into_iter().take(2).zip([None, Some(1)]) {
        let mut reader = spool.reader(&name).unwrap();
        let mut aside = Vec::new();
        while let Entry::Record(_, event) = reader.next_entry().unwrap() {
            let index = reader.position() - 1;
            if bad == Some(index) {
                aside.push((index, Reason { sqlstate: None, error: "bad".to_owned() }));
            } else {
                stored.push((at(), event.unwrap().transaction_id.to_string()));
            }
        }
        spool.finish(&name, Some(&mut reader), &aside, None).unwrap();
    }
    let kept = spool.quarantined(None, 0, 1).unwrap().events[0].file.clone();
    assert_eq!(spool.requeue(&kept, None).await.unwrap(), 1);
    drop(spool);

    let changes = disk.changes.lock().unwrap().clone();
    let mut platter = Platter::default();
    let mut states = 0;
    for moment in 0..=changes.len() {
        if moment > 0 {
            platter.apply(&changes[moment - 1]);
        }
        let until = |list: &[(usize, String)]| -> BTreeSet<String> {
            list.iter().filter(|(at, _)| *at <= moment).map(|(_, key)| key.clone()).collect()
        };
        let (wanted, gone) = (until(&answered), until(&stored));
        for names_kept in 0..=platter.open.len() {
            for tail in [Tail::Nothing, Tail::Half, Tail::Everything, Tail::Zeros] {
                let dir = tempfile::tempdir_in(&place).unwrap();
                std::fs::create_dir(dir.path().join("failed")).unwrap();
                platter.leave(names_kept, tail, recorded.path(), dir.path());
                let found = present(dir.path());
                let lost: Vec<_> =
                    wanted.iter().filter(|k| !found.contains(*k) && !gone.contains(*k)).collect();
                assert!(
                    lost.is_empty(),
                    "lost {lost:?} after change {moment} ({names_kept} names, {tail:?}): {:?}",
                    changes.get(moment.saturating_sub(1))
                );
                states += 1;
            }
        }
    }
    assert_eq!(answered.len(), 15);
    println!("{states} states after {} changes, nothing lost", changes.len());
    assert!(states > 200);
}
