//! Pushes that the database cannot take now: accepted on disk, replayed later.

mod accept;
mod ordered;
mod replay;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use queen_spool::{OpenError, QuarantineError, Spool, SpoolOptions, Status};
use tokio::sync::{Notify, watch};

use crate::StartError;
use crate::{Broker, Error};

pub(crate) use accept::Outcome;
pub(crate) use replay::run;

/// How a broker buffers pushes on disk.
#[derive(Debug, Clone)]
pub struct BufferOptions {
    /// The directory and its files. The server id in there is replaced by the broker's.
    pub files: SpoolOptions,
    /// Where to go when that directory cannot be used; somebody who named one wants no other.
    pub fallback: Option<PathBuf>,
    /// Without a directory the broker does not start. Off: pushes fail in an outage.
    pub required: bool,
    /// Between the beginnings of two cycles of the replay; none runs while nothing is buffered.
    pub flush: Duration,
    /// Events of one replay transaction, at least 1.
    pub batch: usize,
    /// Pushes to a partition with buffered messages go behind these.
    pub ordered: bool,
}

impl BufferOptions {
    /// The defaults of the product for a directory.
    pub fn at(dir: impl Into<PathBuf>) -> BufferOptions {
        BufferOptions {
            files: SpoolOptions::at(dir),
            fallback: None,
            required: true,
            flush: Duration::from_millis(100),
            batch: 100,
            ordered: false,
        }
    }
}

/// The spool of one broker, if it has one, and what is known of the database through it.
pub(crate) struct Buffer {
    spool: Option<Arc<Spool>>,
    flush: Duration,
    batch: usize,
    /// The last thing that was heard of the database was good.
    healthy: AtomicBool,
    /// The replay waits after too many failures in a row.
    pausing: AtomicBool,
    /// Something was spooled.
    news: Notify,
    /// The replay must not wait any longer: a flag changed, or somebody asks for it.
    hurry: Notify,
    /// Cycles of the replay.
    cycles: watch::Sender<u64>,
    drained: AtomicU64,
    /// Kept only where the order of partitions is.
    ordered: Option<Mutex<ordered::Keys>>,
}

/// What became of asking for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Messages that were replayed meanwhile.
    pub drained: u64,
    /// Messages that still wait.
    pub pending: u64,
    /// Messages in quarantine.
    pub quarantined: u64,
}

impl Buffer {
    /// Opens the directory of the options, or does without one where that is allowed.
    pub(crate) async fn open(options: Option<BufferOptions>, server_id: &str) -> Result<Buffer, StartError> {
        let Some(options) = options else { return Ok(Buffer::of(None, &BufferOptions::at(""), None)) };
        let mut files = options.files.clone();
        server_id.clone_into(&mut files.server_id);
        let (fallback, required, is_ordered) = (options.fallback.clone(), options.required, options.ordered);
        let opened = tokio::task::spawn_blocking(move || {
            let spool = open(files, fallback, required)?;
            let keys = spool.as_ref().filter(|_| is_ordered).map(ordered::Keys::of);
            Ok::<_, StartError>((spool, keys.map(Mutex::new)))
        });
        let (spool, keys) = opened.await.map_err(|error| StartError::Config(error.to_string()))??;
        Ok(Buffer::of(spool.map(Arc::new), &options, keys))
    }

    fn of(
        spool: Option<Arc<Spool>>,
        options: &BufferOptions,
        ordered: Option<Mutex<ordered::Keys>>,
    ) -> Buffer {
        Buffer {
            spool,
            flush: options.flush,
            batch: options.batch.max(1),
            healthy: AtomicBool::new(true),
            pausing: AtomicBool::new(false),
            news: Notify::new(),
            hurry: Notify::new(),
            cycles: watch::Sender::new(0),
            drained: AtomicU64::new(0),
            ordered,
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.spool.is_some()
    }

    /// Whether an event would be taken at this moment.
    pub(crate) fn is_writable(&self) -> bool {
        self.spool.as_ref().is_some_and(|spool| spool.is_writable())
    }

    pub(crate) fn pending(&self) -> u64 {
        self.spool.as_ref().map_or(0, |spool| spool.pending())
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    /// Notes how the database took the last thing it was asked to store.
    pub(crate) fn heard(&self, healthy: bool) {
        // A look before the write keeps the line of the cache where it is.
        if self.is_healthy() == healthy || self.healthy.swap(healthy, Ordering::Relaxed) == healthy {
            return;
        }
        let pending = self.pending();
        if healthy {
            tracing::info!(target: "spool", event = "spool_left", pending, "database recovered, leaving buffered mode");
        } else {
            tracing::warn!(target: "spool", event = "spool_entered", pending, "database down, entering buffered mode");
        }
    }

    /// The replay looks at the flags again, and at the files.
    pub(crate) fn hurry(&self) {
        self.hurry.notify_one();
        self.news.notify_one();
    }

    /// Waits until nothing is left to replay, or the replay fails, or the time is up.
    pub(crate) async fn settled(&self, most: Duration) {
        let mut cycles = self.cycles.subscribe();
        let done =
            async { while self.pending() > 0 && self.is_healthy() && cycles.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(most, done).await;
    }

    /// Answers what waits and closes the file that is written.
    pub(crate) async fn close(&self) {
        let Some(spool) = self.spool.clone() else { return };
        let pending = spool.pending();
        if pending > 0 {
            tracing::warn!(target: "shutdown", event = "spool_undrained", pending, "spool has undrained events at shutdown");
        }
        let _ = tokio::task::spawn_blocking(move || spool.close()).await;
    }
}

fn open(files: SpoolOptions, fallback: Option<PathBuf>, required: bool) -> Result<Option<Spool>, StartError> {
    let error = match (Spool::open(files.clone()), fallback) {
        (Ok(spool), _) => return Ok(Some(spool)),
        (Err(error @ OpenError::Unusable { .. }), Some(dir)) => {
            tracing::warn!(target: "spool", %error, instead = %dir.display(), "another spool directory is used");
            match Spool::open(SpoolOptions { dir, ..files }) {
                Ok(spool) => return Ok(Some(spool)),
                Err(error) => error,
            }
        }
        (Err(error), _) => error,
    };
    if required || matches!(error, OpenError::Held { .. }) {
        return Err(StartError::Spool(error));
    }
    tracing::error!(target: "spool", %error, "there is no spool: pushes fail while the database is away");
    Ok(None)
}

/// What the operator's routes need of the spool.
impl Broker {
    /// Everything that is buffered, in numbers and by file; all zero without a spool.
    pub fn buffered(&self) -> Status {
        self.inner.buffer.spool.as_ref().map(|spool| spool.status()).unwrap_or_default()
    }

    /// Whether a push would be taken at this moment although the database is away.
    pub fn can_buffer(&self) -> bool {
        self.inner.buffer.is_writable()
    }

    /// Whether the replay waits after too many failures in a row.
    pub fn is_replay_pausing(&self) -> bool {
        self.inner.buffer.pausing.load(Ordering::Relaxed)
    }

    /// The replay's last word on the database. With nothing to replay a successful look at the database counts too.
    pub fn is_database_hint_good(&self) -> bool {
        self.inner.buffer.is_healthy()
    }

    /// As [`Broker::is_database_hint_good`], and the database answers at this moment. At most 2 s.
    pub async fn is_database_healthy(&self) -> bool {
        let alive = self.database_alive().await;
        let buffer = &self.inner.buffer;
        if alive && buffer.pending() == 0 {
            buffer.heard(true);
        }
        alive && buffer.is_healthy()
    }

    /// A page of the messages that can not be stored.
    ///
    /// # Errors
    /// See [`QuarantineError`].
    pub async fn quarantined(
        &self,
        file: Option<String>,
        offset: u64,
        limit: u64,
    ) -> Result<queen_spool::Listing, QuarantineError> {
        self.on_spool(move |spool| spool.quarantined(file.as_deref(), offset, limit))
            .await
            .unwrap_or_else(|| Ok(queen_spool::Listing::default()))
    }

    /// Puts quarantined messages back behind everything that is buffered; without `indexes` all of the file. How many.
    ///
    /// # Errors
    /// See [`QuarantineError`].
    pub async fn requeue(&self, file: &str, indexes: Option<&[u64]>) -> Result<u64, QuarantineError> {
        let buffer = &self.inner.buffer;
        let Some(spool) = &buffer.spool else { return Err(QuarantineError::NoSuchFile(file.to_owned())) };
        let requeued = spool.requeue(file, indexes).await?;
        buffer.news.notify_one();
        Ok(requeued)
    }

    /// Deletes a file of the quarantine with its messages. How many.
    ///
    /// # Errors
    /// See [`QuarantineError`].
    pub async fn delete_quarantined(&self, file: &str) -> Result<u64, QuarantineError> {
        let name = file.to_owned();
        self.on_spool(move |spool| spool.delete(&name))
            .await
            .unwrap_or_else(|| Err(QuarantineError::NoSuchFile(file.to_owned())))
    }

    /// Replays now, and waits for it at most that long.
    ///
    /// # Errors
    /// [`Error::Refused`] while push maintenance is on.
    pub async fn replay_now(&self, most: Duration) -> Result<Drained, Error> {
        if self.inner.modes.push() {
            return Err(Error::Refused(
                "push maintenance is on; nothing is replayed before it is off".to_owned(),
            ));
        }
        let buffer = &self.inner.buffer;
        let before = buffer.drained.load(Ordering::Relaxed);
        let mut cycles = buffer.cycles.subscribe();
        buffer.hurry();
        let done = async { while buffer.pending() > 0 && cycles.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(most, done).await;
        let status = self.buffered();
        Ok(Drained {
            drained: buffer.drained.load(Ordering::Relaxed).saturating_sub(before),
            pending: status.pending,
            quarantined: status.quarantined,
        })
    }

    /// Does something that blocks; `None` without a spool.
    async fn on_spool<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Spool) -> T + Send + 'static,
    ) -> Option<T> {
        let spool = self.inner.buffer.spool.clone()?;
        tokio::task::spawn_blocking(move || work(&spool)).await.ok()
    }
}
