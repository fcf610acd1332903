//! The broker's memory of stored hashes, around [`queen_dedup`]: what is asked before an insert, what is learned from
//! it, and what is read back from the log before the first push to a partition.
//!
//! Nothing here decides anything, and no failure here is a failure of a push: what is not known is searched.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use queen_dedup::{Before, Commit, Coverage, DedupCache, Page, Tick};
use queen_pg::{Conn, PgTimestamp};
use queen_types::{Offset, PartitionId, Timestamp, Uuid};

use super::insert::{Answers, Outgoing, Via, Written};
use crate::{Storage, StorageError, sql};

/// Seconds before the start of this broker that a stored hash may lie back.
const TICKS_BEFORE: u32 = 1 << 31;
/// Bytes of hashes that one statement reads back, over all its partitions.
const PAGE_BYTES: usize = 1 << 20;
/// Rows that one statement reads back, over all its partitions.
const PAGE_ROWS: usize = 65_536;
/// Statements that one push spends at most on reading back.
const PAGES_MAX: usize = 256;
/// How long one push reads back at most; what is left then is searched.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the memory of stored hashes does, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DedupStats {
    /// Bytes in use.
    pub bytes: usize,
    /// Partitions of which something is known.
    pub partitions: usize,
    /// Segments that were appended without a search.
    pub clear: u64,
    /// Segments for which PostgreSQL searched a part of the log.
    pub searched: u64,
    /// Segments of which nothing was known.
    pub unknown: u64,
    /// Statements that read hashes back.
    pub pages: u64,
    /// Parts of the memory that were dropped for its budget.
    pub evicted: u64,
}

pub(crate) struct Known {
    /// `None`: switched off.
    state: Option<Mutex<State>>,
    since: Instant,
    clear: AtomicU64,
    searched: AtomicU64,
    unknown: AtomicU64,
    pages: AtomicU64,
}

struct State {
    cache: DedupCache,
    /// When the server was started whose log the cache knows. A server that was promoted or restored has another one,
    /// and its log may have lost its end.
    server: PgTimestamp,
}

impl State {
    /// Forgets everything if it is of another server.
    fn of_server(&mut self, server: PgTimestamp) -> &mut DedupCache {
        if self.server != server {
            self.cache.clear();
            self.server = server;
        }
        &mut self.cache
    }
}

/// The answer to a bundle: how to append it, and from which server that is known.
pub(crate) struct Plan {
    pub(crate) via: Via,
    pub(crate) server: PgTimestamp,
}

impl Known {
    /// With a budget in bytes; 0 switches it off.
    pub(crate) fn new(budget: usize) -> Known {
        let state = State { cache: DedupCache::new(budget), server: PgTimestamp(Timestamp(0)) };
        Known {
            state: (budget > 0).then(|| Mutex::new(state)),
            since: Instant::now(),
            clear: AtomicU64::new(0),
            searched: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            pages: AtomicU64::new(0),
        }
    }

    fn now(&self) -> Tick {
        Tick(TICKS_BEFORE.saturating_add(u32::try_from(self.since.elapsed().as_secs()).unwrap_or(u32::MAX)))
    }

    pub(crate) fn stats(&self) -> DedupStats {
        let cache = self.state.as_ref().map(|state| state.lock().cache.stats()).unwrap_or_default();
        DedupStats {
            bytes: cache.bytes,
            partitions: cache.partitions,
            clear: self.clear.load(Ordering::Relaxed),
            searched: self.searched.load(Ordering::Relaxed),
            unknown: self.unknown.load(Ordering::Relaxed),
            pages: self.pages.load(Ordering::Relaxed),
            evicted: cache.evicted,
        }
    }

    /// Fills in what is known of every segment. A partition in `fresh` was just created, so nothing is stored in it.
    /// All segments are asked for at once: those of one partition have to get one answer.
    pub(crate) fn ask(&self, outgoing: &mut [Outgoing], fresh: &HashSet<PartitionId>) -> Plan {
        let mut server = PgTimestamp(Timestamp(0));
        let mut via = Via::Clear;
        if let Some(state) = &self.state {
            let mut state = state.lock();
            server = state.server;
            let now = self.now();
            for out in outgoing.iter_mut() {
                out.known = state.cache.ask(out.partition, &out.segment.hashes, now);
            }
        }
        for out in outgoing.iter() {
            let known = out.known;
            let unknown = known == Coverage::NONE && !fresh.contains(&out.partition);
            if unknown || known.maybe.is_some() || known.shared {
                via = Via::Search;
            }
        }
        Plan { via, server }
    }

    /// Takes in what became of segments whose transaction is committed.
    pub(crate) fn learn(&self, outgoing: &[Outgoing], answers: &Answers, via: Via) {
        for (out, written) in outgoing.iter().zip(&answers.written) {
            let counter = match (written, via) {
                (Written::At(_), Via::Clear) => &self.clear,
                (Written::Gone | Written::Unclear | Written::Sealed, _) => continue,
                _ if out.known == Coverage::NONE => &self.unknown,
                _ => &self.searched,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let (Some(state), Some(server)) = (&self.state, answers.server) else { return };
        let now = self.now();
        let mut state = state.lock();
        let cache = state.of_server(server);
        for ((out, written), learned) in outgoing.iter().zip(&answers.written).zip(&answers.learned) {
            match written {
                Written::At(base) => {
                    let before = learned.before.as_ref();
                    let before = before.map(|(from, hashes)| Before { from: *from, hashes });
                    let hashes = &out.segment.hashes;
                    let commit = Commit { base: *base, hashes, before, window: learned.window };
                    cache.extend(out.partition, commit, now);
                }
                Written::Gone => cache.forget(out.partition),
                Written::Repeats(_) | Written::Sealed | Written::Unclear => {}
            }
            if learned.short {
                cache.fell_short(out.partition, now);
            }
        }
    }

    /// Forgets partitions in which something may have been stored that was not heard of.
    pub(crate) fn forget(&self, partitions: impl Iterator<Item = PartitionId>) {
        if let Some(state) = &self.state {
            let mut state = state.lock();
            partitions.for_each(|partition| state.cache.forget(partition));
        }
    }

    /// Which of the partitions nothing is known of.
    fn unknown(&self, partitions: impl Iterator<Item = PartitionId>) -> Vec<(PartitionId, Offset)> {
        let Some(state) = &self.state else { return Vec::new() };
        let state = state.lock();
        partitions.filter(|p| !state.cache.knows(*p)).map(|p| (p, Offset::MAX)).collect()
    }
}

impl Storage {
    /// What the memory of stored hashes does.
    pub fn dedup_stats(&self) -> DedupStats {
        self.inner.known.stats()
    }

    /// Reads the windows of partitions back of which nothing is known. A failure is logged and leaves them unknown; the
    /// connection may be lost with it.
    pub(crate) async fn read_back(&self, conn: &mut Conn, partitions: impl Iterator<Item = PartitionId>) {
        let mut left = self.inner.known.unknown(partitions);
        left.sort_unstable();
        left.dedup();
        let start = Instant::now();
        for _ in 0..PAGES_MAX {
            if left.is_empty() || start.elapsed() > PATIENCE {
                break;
            }
            left = match self.read_page(conn, &left).await {
                Ok(more) => more,
                Err(error) => {
                    tracing::warn!(%error, "stored hashes could not be read back; pushes search for them");
                    break;
                }
            };
        }
    }

    /// Reads one page of each partition; those come back that have more.
    async fn read_page(
        &self,
        conn: &mut Conn,
        asked: &[(PartitionId, Offset)],
    ) -> Result<Vec<(PartitionId, Offset)>, StorageError> {
        let Some(state) = &self.inner.known.state else { return Ok(Vec::new()) };
        let partitions: Vec<Uuid> = asked.iter().map(|(partition, _)| partition.0).collect();
        let upto: Vec<Offset> = asked.iter().map(|(_, upto)| *upto).collect();
        let share = |whole: usize| i64::try_from((whole / asked.len()).max(64)).unwrap_or(i64::MAX);
        let (bytes, rows) = (share(PAGE_BYTES), share(PAGE_ROWS));
        let rows = conn.query(sql::PUSH_HASHES, &[&partitions, &upto, &bytes, &rows]).await?;
        self.inner.known.pages.fetch_add(1, Ordering::Relaxed);
        let now = self.inner.known.now();
        let mut state = state.lock();
        let mut more = Vec::new();
        for row in rows {
            let index: i32 = row.get("ord");
            let at = usize::try_from(index).ok().and_then(|at| asked.get(at));
            let (partition, _) = *at.ok_or(StorageError::Misaligned("hashes"))?;
            let window: i32 = row.get("dedup_window");
            let age: Option<i32> = row.get("age");
            let page = Page {
                from: row.get("from_offset"),
                upto: row.get("upto"),
                hashes: row.get("hashes"),
                age: age.and_then(|age| u32::try_from(age).ok()).unwrap_or(0),
                window: u32::try_from(window).unwrap_or(0),
            };
            let cache = state.of_server(row.get("server"));
            if cache.fill(partition, page, now) {
                // What does not fit any more would push out what others need.
                if row.get("more") && cache.bytes() <= cache.budget() / 10 * 9 {
                    more.push((partition, page.from));
                }
            } else if !cache.knows(partition) {
                // A log with a hole in its hashes. It is not read again and again: the hole stays unknown.
                cache.fill(partition, Page { from: page.upto, hashes: &[], ..page }, now);
            }
        }
        Ok(more)
    }
}
