//! One cycle of retention: the work list is looked at page by page, and what may go is deleted in steps. Whatever a
//! cycle leaves is found by the next.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use queen_admission::{Lane, Slot};
use queen_storage::StorageError;
use queen_storage::maintenance::{Due, Step, Task};
use queen_types::{PartitionId, TenantId, Timestamp};

use crate::broker::Inner;

/// Segments of the first step on a partition: most have few to delete, and a step reads as many as it may delete.
const FIRST_STEP: u32 = 32;
/// Partitions of one look.
const LOOK: usize = 500;
/// Batches of unused partitions of one cycle.
const CLEANUP_BATCHES: usize = 20;

/// What a cycle did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) due: usize,
    pub(crate) put_back: usize,
    pub(crate) deleted: Step,
    pub(crate) hashes: i64,
    pub(crate) dead_letters: i64,
    pub(crate) partitions: usize,
    pub(crate) history: i64,
}

impl Report {
    fn is_nothing(&self) -> bool {
        self.deleted.segments == 0
            && self.hashes == 0
            && self.dead_letters == 0
            && self.partitions == 0
            && self.history == 0
    }
}

/// Runs a cycle. `due` is the work list, if anything is on it; `tail`: also what is looked for less often, hashes, dead letters and unused partitions.
///
/// # Cancel safety
/// Each step commits by itself; a dropped cycle is continued by the next.
pub(crate) async fn cycle(inner: &Inner, due: Option<&Due>, tail: bool) -> Result<Report, StorageError> {
    let moved = inner.held.take();
    if due.is_none() && moved.is_empty() && !tail {
        return Ok(Report::default());
    }
    let work = async {
        let mut report = Report::default();
        segments(inner, moved, &mut report).await?;
        if tail {
            rest(inner, &mut report).await?;
        }
        Ok::<_, StorageError>(report)
    };
    let report =
        Box::pin(inner.storage.exclusively(Task::Retention, work)).await?.transpose()?.unwrap_or_default();
    count(&report);
    Ok(report)
}

async fn slot(inner: &Inner) -> Result<Slot, StorageError> {
    inner.admission.enter(Lane::Maint, TenantId::DEFAULT).await
}

async fn segments(
    inner: &Inner,
    mut moved: Vec<PartitionId>,
    report: &mut Report,
) -> Result<(), StorageError> {
    let options = &inner.options.upkeep;
    let mut seen: HashSet<PartitionId> = HashSet::new();
    let mut list: Option<Due> = None;
    loop {
        let page = {
            let _slot = slot(inner).await?;
            inner.storage.retention_due(list.as_ref()).await?
        };
        let (now, mut partitions) = match page {
            Some(mut due) => {
                let partitions = std::mem::take(&mut due.partitions);
                (list.insert(due).now, partitions)
            }
            None if moved.is_empty() => return Ok(()),
            None => (inner.storage.now().await?, Vec::new()),
        };
        // What was looked at in this cycle and is due again was locked by somebody, and is left to the next one.
        partitions.retain(|id| !seen.contains(id));
        partitions.append(&mut moved);
        if partitions.is_empty() || seen.len() >= options.due_cap() {
            return Ok(());
        }
        seen.extend(&partitions);
        report.due += partitions.len();
        for page in partitions.chunks(LOOK) {
            let look = {
                let _slot = slot(inner).await?;
                inner.storage.retention_look(page, now, options.retention_interval).await?
            };
            report.put_back += look.deferred;
            inner.held.hold(&look.held);
            let mut steps = stream::iter(look.deletable.into_iter().map(|id| partition(inner, id, now)))
                .buffer_unordered(options.retention_parallelism.clamp(1, 16));
            while let Some(deleted) = steps.next().await {
                report.deleted.add(deleted?);
            }
        }
    }
}

/// Deletes what may go of one partition.
async fn partition(inner: &Inner, id: PartitionId, now: Timestamp) -> Result<Step, StorageError> {
    let batch = inner.options.upkeep.retention_batch.max(1);
    let mut deleted = Step::default();
    let mut size = FIRST_STEP.min(batch);
    loop {
        let step = {
            let _slot = slot(inner).await?;
            inner.storage.retention_step(id, now, size).await?
        };
        deleted.add(step);
        if step.segments < i64::from(size) {
            return Ok(deleted);
        }
        size = batch;
    }
}

async fn rest(inner: &Inner, report: &mut Report) -> Result<(), StorageError> {
    let options = &inner.options.upkeep;
    let batch = options.retention_batch.max(1);
    let due = {
        let _slot = slot(inner).await?;
        inner.storage.hashes_due().await?
    };
    for id in due {
        loop {
            let _slot = slot(inner).await?;
            let rows = inner.storage.hashes_step(id, batch).await?;
            report.hashes += rows;
            if rows < i64::from(batch) {
                break;
            }
        }
    }
    let due = {
        let _slot = slot(inner).await?;
        inner.storage.dead_letters_due().await?
    };
    for mut due in due {
        loop {
            let _slot = slot(inner).await?;
            let rows = inner.storage.dead_letters_step(&mut due, batch).await?;
            report.dead_letters += rows;
            if rows < i64::from(batch) {
                break;
            }
        }
    }
    if let Some(days) = options.partition_cleanup_days {
        let mut from = None;
        for _ in 0..CLEANUP_BATCHES {
            let _slot = slot(inner).await?;
            let (deleted, next) = inner.storage.delete_unused_partitions(days.max(1), from).await?;
            report.partitions += deleted.len();
            for unused in &deleted {
                inner.tally.partition_deleted(unused.tenant, &unused.queue);
            }
            if next.is_none() {
                break;
            }
            from = next;
        }
    }
    let _slot = slot(inner).await?;
    report.history = inner.storage.purge_metrics(options.metrics_days.max(1)).await?;
    Ok(())
}

fn count(report: &Report) {
    let deleted = report.deleted;
    for (rule, messages) in
        [("age", deleted.age), ("completed", deleted.completed), ("max_wait", deleted.evicted)]
    {
        metrics::counter!("queen_retention_deleted_messages_total", "rule" => rule)
            .increment(u64::try_from(messages).unwrap_or(0));
    }
    metrics::counter!("queen_evicted_unconsumed_total")
        .increment(u64::try_from(deleted.unconsumed).unwrap_or(0));
    if !report.is_nothing() {
        tracing::info!(
            target: "retention", due = report.due, backed_off = report.put_back,
            segments_deleted = deleted.segments, messages_deleted = deleted.messages,
            max_wait_evicted = deleted.evicted, unconsumed = deleted.unconsumed, txns_purged = report.hashes,
            dead_letters = report.dead_letters, partitions_deleted = report.partitions,
            metrics_purge = report.history, "deleted"
        );
    }
}

/// Mends the notes that retention goes by, a page at a time.
pub(crate) async fn walk(inner: &Inner) -> Result<(), StorageError> {
    let (mut at, mut wrong) = (None, 0);
    loop {
        let (next, found) = {
            let _slot = slot(inner).await?;
            inner.storage.mend_marks(at).await?
        };
        wrong += found;
        match next {
            Some(next) => at = Some(next),
            None => break,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    if wrong > 0 {
        tracing::info!(target: "retention", partitions = wrong, "notes on partitions were mended");
    }
    Ok(())
}
