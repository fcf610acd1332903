//! The maintenance modes. The flag in memory is what counts; its row is for restarts and for other brokers. A flip that
//! could not be written is not undone by an older row: it is written as soon as the database takes it.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use queen_storage::StorageError;
use tokio::sync::{Notify, watch};

use crate::Broker;
use crate::broker::Inner;
use crate::supervise::Beat;

/// When the rows are read first after a start.
const FIRST: Duration = Duration::from_secs(5);
/// Pause after the first attempt at writing a flip that failed; each further one doubles it.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a caller waits for the row.
const PATIENCE: Duration = Duration::from_secs(6);

/// Which mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every push goes to the spool, and nothing is replayed.
    Push,
    /// Every pop is empty.
    Pop,
    /// Every transaction is refused, to be tried again.
    Transactions,
}

const MODES: [Mode; 3] = [Mode::Push, Mode::Pop, Mode::Transactions];

impl Mode {
    /// Key of its row.
    fn key(self) -> &'static str {
        match self {
            Mode::Push => "maintenance_mode",
            Mode::Pop => "pop_maintenance_mode",
            Mode::Transactions => "transaction_maintenance_mode",
        }
    }
}

/// All modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// Pushes are spooled.
    pub push: bool,
    /// Pops are empty.
    pub pop: bool,
    /// Transactions are refused.
    pub transactions: bool,
}

#[derive(Default)]
struct Flag {
    on: AtomicBool,
    /// Flips of this broker, so that a row that was read before one is not taken for news.
    flips: AtomicU64,
    /// The row does not have it yet.
    owed: AtomicBool,
}

pub(crate) struct Maintenance {
    push: Flag,
    pop: Flag,
    transactions: Flag,
    /// Transactions that have begun and not ended.
    under_way: AtomicUsize,
    /// The rows were read, or a flip came first.
    known: watch::Sender<bool>,
    /// A flip is owed to the database.
    owed: Notify,
}

impl Maintenance {
    pub(crate) fn new() -> Maintenance {
        Maintenance {
            push: Flag::default(),
            pop: Flag::default(),
            transactions: Flag::default(),
            under_way: AtomicUsize::new(0),
            known: watch::Sender::new(false),
            owed: Notify::new(),
        }
    }

    fn flag(&self, mode: Mode) -> &Flag {
        match mode {
            Mode::Push => &self.push,
            Mode::Pop => &self.pop,
            Mode::Transactions => &self.transactions,
        }
    }

    /// Whether pushes go to the spool.
    pub(crate) fn push(&self) -> bool {
        self.push.on.load(Ordering::Relaxed)
    }

    /// Whether pops are empty.
    pub(crate) fn pop(&self) -> bool {
        self.pop.on.load(Ordering::Relaxed)
    }

    /// Whether transactions are refused.
    pub(crate) fn transactions(&self) -> bool {
        self.transactions.on.load(Ordering::Relaxed)
    }

    /// Counts a transaction until what this gives is dropped; `None` while there may be none.
    pub(crate) fn begin_transaction(&self) -> Option<UnderWay<'_>> {
        // Counted before it is asked, so whoever switches the mode and then finds none under way is right.
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let counted = UnderWay(&self.under_way);
        (!self.transactions.on.load(Ordering::SeqCst)).then_some(counted)
    }

    /// Whether the flags were read since the start: before that nothing may be replayed.
    pub(crate) fn is_known(&self) -> bool {
        *self.known.borrow()
    }

    /// Waits until they were.
    pub(crate) async fn known(&self) {
        let _ = self.known.subscribe().wait_for(|known| *known).await;
    }
}

/// A transaction that is under way.
pub(crate) struct UnderWay<'m>(&'m AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Inner {
    /// Puts a value in force here; what follows from a change happens at once.
    fn put(&self, mode: Mode, enabled: bool) {
        if self.modes.flag(mode).on.swap(enabled, Ordering::SeqCst) == enabled {
            return;
        }
        match mode {
            Mode::Push => self.buffer.hurry(),
            Mode::Pop if enabled => self.gates.wake_everybody(),
            Mode::Pop | Mode::Transactions => {}
        }
        let (mode, event) = match mode {
            Mode::Push => ("push", "push_maintenance"),
            Mode::Pop => ("pop", "pop_maintenance"),
            Mode::Transactions => ("transaction", "transaction_maintenance"),
        };
        tracing::warn!(target: "maintenance", event, enabled, "{mode} maintenance is switched");
    }

    /// Reads the rows and takes over what they say, except where a flip of this broker is not written yet.
    pub(crate) async fn adopt_flags(&self) -> Result<(), StorageError> {
        let flips = MODES.map(|mode| self.modes.flag(mode).flips.load(Ordering::SeqCst));
        let rows = self.storage.flags(&MODES.map(Mode::key)).await?;
        for (mode, flips) in MODES.into_iter().zip(flips) {
            let flag = self.modes.flag(mode);
            if flag.owed.load(Ordering::SeqCst) || flag.flips.load(Ordering::SeqCst) != flips {
                continue;
            }
            self.put(mode, rows.iter().any(|row| row.key == mode.key() && row.enabled));
        }
        self.modes.known.send_replace(true);
        Ok(())
    }

    /// Writes the row of a flip.
    async fn write_flag(&self, mode: Mode) -> Result<(), StorageError> {
        let flag = self.modes.flag(mode);
        loop {
            let flips = flag.flips.load(Ordering::SeqCst);
            self.storage.set_flag(mode.key(), flag.on.load(Ordering::SeqCst)).await?;
            if flag.flips.load(Ordering::SeqCst) == flips {
                flag.owed.store(false, Ordering::SeqCst);
                return Ok(());
            }
        }
    }

    fn owes(&self) -> impl Iterator<Item = Mode> {
        MODES.into_iter().filter(|mode| self.modes.flag(*mode).owed.load(Ordering::SeqCst))
    }
}

/// Writes what is owed and reads what others wrote, until the broker is gone.
pub(crate) async fn run(inner: Weak<Inner>, every: Duration, beat: Beat) {
    let Some((schema, maintenance)) =
        inner.upgrade().map(|inner| (inner.schema.clone(), inner.modes.clone()))
    else {
        return std::future::pending().await;
    };
    beat.idle();
    schema.applied().await;
    let mut next = if maintenance.is_known() { FIRST.min(every) } else { Duration::ZERO };
    let mut pause = PAUSE;
    loop {
        beat.within(next);
        tokio::select! {
            () = tokio::time::sleep(next) => {}
            () = maintenance.owed.notified() => {}
        }
        let Some(inner) = inner.upgrade() else { return };
        beat.within(PATIENCE);
        let done = async {
            for mode in inner.owes().collect::<Vec<_>>() {
                inner.write_flag(mode).await?;
            }
            inner.adopt_flags().await
        };
        match done.await {
            Ok(()) => (next, pause) = (every, PAUSE),
            Err(error) => {
                tracing::debug!(target: "maintenance", %error, retry_in = ?pause, "the flags could not be written or read");
                (next, pause) = (pause.min(every), (pause * 2).min(PAUSE_MAX));
            }
        }
    }
}

impl Broker {
    /// The modes in force here.
    pub fn maintenance(&self) -> Modes {
        let maintenance = &self.inner.modes;
        let (push, pop) = (maintenance.push(), maintenance.pop());
        Modes { push, pop, transactions: maintenance.transactions() }
    }

    /// The modes as the database has them at this moment, put in force here; those in force when it is away.
    pub async fn fresh_maintenance(&self) -> Modes {
        let adopted = tokio::time::timeout(PATIENCE, self.inner.adopt_flags()).await;
        if !matches!(adopted, Ok(Ok(()))) {
            tracing::debug!(target: "maintenance", "the flags could not be read; what is in force is told");
        }
        self.maintenance()
    }

    /// Switches a mode; in force here on return. True when its row was written too; otherwise that is tried until it is,
    /// and no older row undoes the switch.
    ///
    /// # Cancel safety
    /// The switch is in force all the same; its row is written with the next reading of the rows at the latest.
    pub async fn set_maintenance(&self, mode: Mode, enabled: bool) -> bool {
        let inner = &self.inner;
        let flag = inner.modes.flag(mode);
        flag.owed.store(true, Ordering::SeqCst);
        flag.flips.fetch_add(1, Ordering::SeqCst);
        inner.put(mode, enabled);
        inner.modes.known.send_replace(true);
        let written = tokio::time::timeout(PATIENCE, inner.write_flag(mode)).await;
        let mirrored = matches!(written, Ok(Ok(())));
        if !mirrored {
            inner.modes.owed.notify_one();
        }
        mirrored
    }

    /// Waits until the pushes that were on their way to the database have ended, however they did, and with
    /// [`Mode::Transactions`] the transactions, too.
    pub async fn pushes_landed(&self, most: Duration) -> bool {
        let landed = async {
            let modes = &self.inner.modes;
            let busy = || modes.transactions() && modes.under_way.load(Ordering::SeqCst) > 0;
            while !self.inner.fusion.is_idle() || busy() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(most, landed).await.is_ok()
    }
}
