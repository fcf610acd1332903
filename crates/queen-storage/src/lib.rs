//! One typed call for every operation of the log, on PostgreSQL.
//!
//! Rows in, rows out: this crate knows tables and statements, and nothing of JSON, HTTP or waiting. Each operation is
//! one file here, one folder under `schema/statements/`. Pure decisions (what an ack does to a cursor) are functions
//! without a database beside them.

mod error;
mod ids;
mod push;
mod segment;
pub mod sql;

pub mod ack;
pub mod admin;
pub mod groups;
mod lease;
pub mod maintenance;
pub mod messages;
pub mod metrics;
pub mod pop;
mod state;
pub mod stats;
pub mod traces;
mod transaction;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use queen_pg::Pool;
use queen_segment::{Limits, Packer};
use queen_types::{PartitionId, QueueName, TenantId, Timestamp};

pub use error::StorageError;
pub use ids::PartitionKey;
pub use lease::Extended;
pub use push::{DedupStats, FrameVerdict, Lane, NewFrame, Pushed};
pub use state::FlagRow;
pub use transaction::{TxnFailure, TxnPush, TxnPushed, TxnSuccess};

/// How segments are written.
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// zstd level of segments, -7..22. Higher costs CPU on push and saves WAL.
    pub zstd_level: i32,
    /// Bounds of one segment.
    pub limits: Limits,
    /// A claim that only hands out leases does not wait for the server's disk: a crash of the server may forget the
    /// leases of its last moments, whose messages are then delivered again.
    pub relaxed_leases: bool,
    /// Memory for the hashes of stored transaction ids, in bytes; 0: none are remembered, and every push searches.
    pub dedup_cache_bytes: usize,
}

impl Default for StorageOptions {
    fn default() -> Self {
        StorageOptions {
            zstd_level: queen_segment::DEFAULT_LEVEL,
            limits: Limits::default(),
            relaxed_leases: true,
            dedup_cache_bytes: 64 * 1024 * 1024,
        }
    }
}

/// The log. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    options: StorageOptions,
    ids: ids::IdCache,
    known: push::Known,
    marks: maintenance::Marks,
    /// Partitions made since the last row of metrics.
    created: Mutex<HashMap<(TenantId, QueueName), i64>>,
    packers: Mutex<Vec<Packer>>,
    /// Up to when the tables that `metrics/purge.sql` names were purged, in its order.
    purged: Mutex<[Timestamp; 6]>,
}

/// The beginning of every list that is ordered by time.
pub(crate) const BEGINNING: Timestamp = Timestamp(i64::MIN);

/// Packers kept for reuse: as many as pack at the same time on a busy machine; each holds about a segment of memory.
const PACKERS_KEPT: usize = 4;

/// Queues whose new partitions are counted between two rows of metrics.
const CREATED_MAX: usize = 10_000;

impl Storage {
    /// A log over a pool whose database has the schema.
    pub fn new(pool: Pool, options: StorageOptions) -> Storage {
        Storage {
            inner: Arc::new(Inner {
                pool,
                known: push::Known::new(options.dedup_cache_bytes),
                options,
                marks: maintenance::Marks::default(),
                created: Mutex::default(),
                ids: ids::IdCache::default(),
                packers: Mutex::new(Vec::new()),
                purged: Mutex::new([BEGINNING; 6]),
            }),
        }
    }

    /// The pool that every operation takes its connection from.
    pub fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    /// The id of a partition, when it exists. Creates nothing.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn partition_id(&self, key: &PartitionKey) -> Result<Option<PartitionId>, StorageError> {
        if let Some(id) = self.inner.ids.get(key) {
            return Ok(Some(id));
        }
        let mut conn = self.inner.pool.get().await?;
        let found = ids::resolve(&mut ids::On::Conn(&mut conn), &[key]).await?;
        let id = found.first().copied().flatten();
        if let Some(id) = id {
            self.inner.ids.put(key.clone(), id);
        }
        Ok(id)
    }

    /// Drops what is remembered of a queue, after its deletion.
    pub fn forget_queue(&self, tenant: TenantId, queue: &QueueName) {
        self.inner.ids.forget_queue(tenant, queue);
    }

    /// Drops what is remembered of a partition that a statement did not find.
    pub fn forget_partition(&self, key: &PartitionKey) {
        self.inner.ids.forget(key);
    }

    /// Counts a new partition for the metrics of its queue, which somebody takes every minute or drops.
    fn count_created(&self, key: &PartitionKey) {
        let mut created = self.inner.created.lock();
        if created.len() < CREATED_MAX {
            *created.entry((key.tenant, key.queue.clone())).or_default() += 1;
        }
    }

    fn with_packer<T>(&self, work: impl FnOnce(&mut Packer) -> T) -> T {
        let kept = self.inner.packers.lock().pop();
        let mut packer = kept.unwrap_or_else(|| Packer::new(self.inner.options.zstd_level));
        let result = work(&mut packer);
        let mut packers = self.inner.packers.lock();
        if packers.len() < PACKERS_KEPT {
            packers.push(packer);
        }
        result
    }
}
