//! Walks over the partitions of a queue: what no mark announced is found here.
//!
//! A ring is walked when it is new, and again when a pop finds nothing ready and the last walk is so long ago that
//! walking takes a small share of the time. Parked pops are looked after by the floor, in one statement for all of them,
//! so one that is going to park contents itself with a walk of the last second. A walk is a task of its own, so that
//! nobody waits for more than its first page with something in it, and a pop that goes away does not end it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use queen_hotlist::RingId;
use queen_storage::StorageError;
use queen_types::{Group, QueueId};
use tokio::sync::watch;

use super::Hot;
use crate::broker::Inner;
use crate::options::BrokerOptions;

/// What a pop that can wait contents itself with: the floor will look before long.
const RECENT: Duration = Duration::from_secs(1);
/// Rows of the first page, and of the others: the first pop does not wait for many.
const ROWS: [usize; 2] = [256, 10_000];

/// The walks of one queue's rings.
#[derive(Default)]
pub(crate) struct Walks {
    by_group: Mutex<HashMap<Group, Arc<Walker>>>,
}

/// The walks of one ring.
struct Walker {
    last: Mutex<Last>,
    progress: watch::Sender<Progress>,
}

#[derive(Default)]
struct Last {
    /// The ring it was.
    ring: Option<RingId>,
    ended: Option<Instant>,
    cost: Duration,
    running: bool,
}

/// How far a walk has come.
#[derive(Debug, Clone, Default)]
pub(crate) enum Progress {
    /// Some pages are on the ring.
    Running,
    /// All pages are.
    #[default]
    Done,
    /// It could not be read to its end.
    Failed(Arc<StorageError>),
}

/// A walk under way, to wait for.
pub(crate) struct Underway {
    progress: watch::Receiver<Progress>,
    /// It is of the ring asked for, and not of an earlier life of it.
    pub(crate) ours: bool,
}

impl Underway {
    /// Waits for a page; false when the walk has ended and everything is on the ring.
    pub(crate) async fn page(&mut self) -> Result<bool, Arc<StorageError>> {
        if matches!(&*self.progress.borrow(), Progress::Running) && self.progress.changed().await.is_err() {
            return Ok(false);
        }
        match &*self.progress.borrow_and_update() {
            Progress::Running => Ok(true),
            Progress::Done => Ok(false),
            Progress::Failed(error) => Err(error.clone()),
        }
    }
}

impl Last {
    fn is_due(&self, ring: RingId, options: &BrokerOptions, can_wait: bool) -> bool {
        let (true, Some(ended)) = (self.ring == Some(ring), self.ended) else { return true };
        let pause = self.cost.saturating_mul(options.walk_pause_factor).min(options.walk_pause_max);
        ended.elapsed() >= if can_wait { pause.max(RECENT) } else { pause }
    }
}

impl Walks {
    fn of(&self, group: &Group) -> Arc<Walker> {
        let mut by_group = self.by_group.lock();
        if let Some(walker) = by_group.get(group) {
            return walker.clone();
        }
        let walker = Arc::new(Walker { last: Mutex::default(), progress: watch::Sender::default() });
        by_group.insert(group.clone(), walker.clone());
        walker
    }

    /// Notes that a ring was looked over by other means.
    pub(super) fn seen(&self, group: &Group, ring: RingId) {
        let walker = self.of(group);
        let mut last = walker.last.lock();
        // A ring that has not been walked yet needs all of its partitions, not the first few.
        if last.ring == Some(ring) && !last.running {
            last.ended = Some(Instant::now());
        }
    }

    /// Makes the next walk of every ring due.
    pub(super) fn owe_all(&self) {
        for walker in self.by_group.lock().values() {
            walker.last.lock().ended = None;
        }
    }

    pub(super) fn forget_all_but(&self, keep: impl Fn(&Group) -> bool) {
        self.by_group.lock().retain(|group, walker| keep(group) || walker.last.lock().running);
    }
}

/// The walk of a ring that is under way, started if it is due. `None`: the last one is recent.
pub(crate) fn underway(
    inner: &Arc<Inner>,
    hot: &Arc<Hot>,
    ring: RingId,
    queue: QueueId,
    group: &Group,
    can_wait: bool,
) -> Result<Option<Underway>, Arc<StorageError>> {
    let walker = hot.walks.of(group);
    let mut last = walker.last.lock();
    if !last.running && !last.is_due(ring, &inner.options, can_wait) {
        // An outage must not look like an idle queue.
        return match &*walker.progress.borrow() {
            Progress::Failed(error) => Err(error.clone()),
            Progress::Running | Progress::Done => Ok(None),
        };
    }
    if !last.running {
        last.running = true;
        last.ring = Some(ring);
        walker.progress.send_replace(Progress::Running);
        let (inner_task, hot, group, walker) = (inner.clone(), hot.clone(), group.clone(), walker.clone());
        inner.spawn(async move {
            let mut end = End { walker, started: Instant::now(), progress: None };
            let result = walk(&inner_task, &hot, ring, queue, &group, &end.walker).await;
            end.progress = Some(match result {
                Ok(()) => Progress::Done,
                Err(error) => {
                    tracing::warn!(target: "pop", %error, queue = %hot.queue, %group, "a walk over a queue failed");
                    Progress::Failed(Arc::new(error))
                }
            });
        });
    }
    Ok(Some(Underway { progress: walker.progress.subscribe(), ours: last.ring == Some(ring) }))
}

/// Ends a walk whatever happens to its task.
struct End {
    walker: Arc<Walker>,
    started: Instant,
    progress: Option<Progress>,
}

impl Drop for End {
    fn drop(&mut self) {
        let mut last = self.walker.last.lock();
        last.running = false;
        last.cost = self.started.elapsed();
        last.ended = self.progress.is_some().then(Instant::now);
        drop(last);
        self.walker.progress.send_replace(self.progress.take().unwrap_or_default());
    }
}

async fn walk(
    inner: &Arc<Inner>,
    hot: &Arc<Hot>,
    ring: RingId,
    queue: QueueId,
    group: &Group,
    walker: &Walker,
) -> Result<(), StorageError> {
    let mut after = None;
    let mut beyond = Vec::new();
    for rows in ROWS.into_iter().chain(std::iter::repeat(ROWS[1])) {
        let page = inner.storage.walk(queue, group, after.as_ref(), rows).await?;
        let now = inner.hot.now();
        inner.hot.change(hot, |list| {
            for found in &page {
                if found.beyond {
                    beyond.push(found.partition);
                } else {
                    super::enter(list, ring, found, now);
                }
            }
        });
        if page.len() < rows {
            break;
        }
        walker.progress.send_replace(Progress::Running);
        after = page.last().map(|found| found.name.clone());
    }
    if !beyond.is_empty() {
        inner.storage.clamp_cursors(&beyond, group).await?;
    }
    Ok(())
}
