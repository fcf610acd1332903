//! Acknowledging: lock the cursors, resolve the transaction ids, decide, write, all in one transaction.
//!
//! The decision ([`decide`]) is a pure function from the row and the resolved items to the new row and the answers.

pub(crate) mod dead_letter;
mod decide;
mod full;
mod resolve;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use queen_pg::{Row, Step, ToSql, Tx, step};
use queen_types::{AckStatus, Group, LeaseId, Offset, PartitionId, RetryBackoff, TenantId, Uuid};

pub use decide::{
    ALREADY_COMMITTED, Answer, Cursor, Decision, INVALID_LEASE, Item, Policy, Resolved, UNRESOLVABLE, decide,
};
pub use full::{FullAck, FullAcked};

use crate::{Storage, StorageError, sql};
use dead_letter::DeadLetterRow;

/// One acknowledgment, its partition known to be a UUID.
#[derive(Debug, Clone)]
pub struct AckRequest {
    /// Partition.
    pub partition: PartitionId,
    /// Group.
    pub group: Group,
    /// Key of the message.
    pub transaction_id: String,
    /// What became of it.
    pub status: AckStatus,
    /// The lease it was delivered under.
    pub lease: Option<LeaseId>,
    /// Text for the dead-letter record.
    pub error: Option<String>,
}

/// What one ack call did beside its answers.
#[derive(Debug, Clone, Default)]
pub struct AckEffects {
    /// Leases that are gone: the partitions are claimable again, at once or at the instant given.
    pub released: Vec<Released>,
    /// Dead letters filed.
    pub dead_letters: u64,
    /// Messages given up without a dead letter.
    pub dropped: u64,
    /// Messages that a dead letter or drop passed unmentioned.
    pub skipped: u64,
    /// Round trip of the call that committed, that call alone; `None` when there was nothing to write.
    pub commit: Option<Duration>,
}

/// A lease that an ack released.
#[derive(Debug, Clone)]
pub struct Released {
    /// Its partition.
    pub partition: PartitionId,
    /// Its group.
    pub group: Group,
    /// Name of the queue.
    pub queue: String,
    /// The lease that it was.
    pub lease: Option<LeaseId>,
    /// Everything that was leased is done.
    pub covered: bool,
    /// Not claimable for so long, milliseconds; `None` = at once.
    pub delay_ms: Option<i64>,
}

/// Key of a cursor row. Rows are locked in this order, as in every actor.
pub(crate) type CursorKey = (PartitionId, Group);

/// A locked row with its configuration.
pub(crate) struct Locked {
    pub(crate) cursor: Cursor,
    pub(crate) policy: Policy,
    pub(crate) tenant: TenantId,
    pub(crate) queue: String,
    /// Every offset of the partition below is deleted.
    pub(crate) log_start: Offset,
}

/// Items of one call that are decided together: those of one cursor under one lease id, in request order.
pub(crate) struct Bundle {
    pub(crate) key: CursorKey,
    pub(crate) lease: Option<LeaseId>,
    /// Positions in the request.
    pub(crate) items: Vec<usize>,
}

impl Storage {
    /// Settles messages; one answer per request, in order.
    ///
    /// # Errors
    /// See [`StorageError`]; nothing changed then, unless the outcome is unknown.
    pub async fn ack(
        &self,
        tenant: TenantId,
        requests: &[AckRequest],
    ) -> Result<(Vec<Answer>, AckEffects), StorageError> {
        let bundles = bundle(requests);
        let mut conn = self.inner.pool.get().await?;
        let mut tx = conn.begin();
        let mut work = Work::open(&mut tx, requests, &bundles).await?;
        for bundle in &bundles {
            work.settle(requests, bundle, tenant, bundle.lease.as_ref());
        }
        let (answers, effects) = work.finish(tx, requests).await?;
        Ok((answers, effects))
    }
}

/// Groups requests by cursor and lease id, first appearance first.
pub(crate) fn bundle(requests: &[AckRequest]) -> Vec<Bundle> {
    let mut index: BTreeMap<(CursorKey, Option<LeaseId>), usize> = BTreeMap::new();
    let mut bundles: Vec<Bundle> = Vec::new();
    for (i, request) in requests.iter().enumerate() {
        let key = (request.partition, request.group.clone());
        let slot = *index.entry((key.clone(), request.lease.clone())).or_insert_with(|| {
            bundles.push(Bundle { key, lease: request.lease.clone(), items: Vec::new() });
            bundles.len() - 1
        });
        bundles[slot].items.push(i);
    }
    bundles
}

/// An ack in progress: locked rows, resolved items, and what has been decided.
pub(crate) struct Work {
    rows: BTreeMap<CursorKey, Locked>,
    /// Rows that were decided on, with what is to be written.
    writes: BTreeMap<CursorKey, Write>,
    resolved: Vec<Resolved>,
    pub(crate) answers: Vec<Answer>,
    dead: Vec<DeadLetterRow>,
    pub(crate) effects: AckEffects,
}

#[derive(Default)]
struct Write {
    release: bool,
    reset: bool,
    retired: Offset,
    delay_ms: Option<i64>,
}

impl Work {
    /// Locks the cursors that the bundles name and resolves every item.
    pub(crate) async fn open(
        tx: &mut Tx<'_>,
        requests: &[AckRequest],
        bundles: &[Bundle],
    ) -> Result<Work, StorageError> {
        let mut keys: Vec<CursorKey> = bundles.iter().map(|b| b.key.clone()).collect();
        keys.sort_unstable();
        keys.dedup();
        let partitions: Vec<Uuid> = keys.iter().map(|(partition, _)| partition.0).collect();
        let groups: Vec<&str> = keys.iter().map(|(_, group)| group.as_str()).collect();
        let answers = tx
            .run(&[
                step(sql::ACK_LOCK, &[&partitions, &groups]),
                step(sql::ACK_SPAN, &[&partitions, &groups]),
            ])
            .await?;
        let [locked, spans] = answers.as_slice() else { return Err(StorageError::Misaligned("ack")) };
        let mut rows = BTreeMap::new();
        for row in locked {
            let key = keyed(&keys, row)?.clone();
            rows.insert(key, read_locked(row)?);
        }
        let resolved = resolve::resolve(tx, requests, &keys, &rows, spans).await?;
        Ok(Work {
            rows,
            writes: BTreeMap::new(),
            resolved,
            answers: vec![Answer::default(); requests.len()],
            dead: Vec::new(),
            effects: AckEffects::default(),
        })
    }

    /// The row of a cursor, when it exists.
    pub(crate) fn row(&self, key: &CursorKey) -> Option<&Locked> {
        self.rows.get(key)
    }

    /// Whether an item resolved to nothing at all.
    pub(crate) fn is_unresolvable(&self, item: usize) -> bool {
        matches!(self.resolved[item], Resolved::Nowhere)
    }

    /// Decides one bundle against the row as the bundles before it left it.
    pub(crate) fn settle(
        &mut self,
        requests: &[AckRequest],
        bundle: &Bundle,
        tenant: TenantId,
        lease: Option<&LeaseId>,
    ) {
        let refuse = |answers: &mut Vec<Answer>, why: &str| {
            for i in &bundle.items {
                answers[*i] = Answer::refused(why);
            }
        };
        let Some(locked) = self.rows.get_mut(&bundle.key) else {
            return refuse(&mut self.answers, "consumer not found");
        };
        if locked.tenant != tenant {
            return refuse(&mut self.answers, "partition not owned by tenant");
        }
        let items: Vec<Item<'_>> = bundle
            .items
            .iter()
            .map(|i| Item {
                status: requests[*i].status,
                // A bundle before this one may have passed it.
                resolved: match self.resolved[*i] {
                    Resolved::Above(at) if at <= locked.cursor.committed => Resolved::Below,
                    resolved => resolved,
                },
                error: requests[*i].error.as_deref(),
            })
            .collect();
        let decision =
            decide(&locked.cursor, &locked.policy, lease.map(LeaseId::as_str), &items, rand::random());
        let write = self.writes.entry(bundle.key.clone()).or_default();
        write.release |= decision.release;
        write.reset |= decision.reset_attempt;
        write.retired += decision.cursor.committed - locked.cursor.committed;
        write.delay_ms = decision.delay_ms.or(write.delay_ms);
        if decision.release {
            self.effects.released.push(Released {
                partition: bundle.key.0,
                group: bundle.key.1.clone(),
                queue: locked.queue.clone(),
                lease: locked.cursor.worker.as_deref().map(LeaseId::from_client),
                covered: locked.cursor.batch_end.is_none_or(|end| decision.cursor.committed >= end),
                delay_ms: decision.delay_ms,
            });
        }
        self.effects.skipped += decision.skipped;
        self.effects.dropped += u64::from(decision.dropped);
        if let Some(dead) = &decision.dead_letter {
            self.effects.dead_letters += 1;
            self.dead.push(DeadLetterRow::of_offset(
                bundle.key.0,
                &bundle.key.1,
                dead.offset,
                &requests[bundle.items[dead.item]].transaction_id,
                &dead.error,
                dead.retries,
            ));
        }
        locked.cursor = decision.cursor;
        for (i, answer) in bundle.items.iter().zip(decision.answers) {
            self.answers[*i] = answer;
        }
    }

    /// Writes what was decided and commits.
    pub(crate) async fn finish(
        mut self,
        mut tx: Tx<'_>,
        _requests: &[AckRequest],
    ) -> Result<(Vec<Answer>, AckEffects), StorageError> {
        dead_letter::snapshot(&mut tx, &mut self.dead).await?;
        let columns = Columns::of(&self);
        let params: [&(dyn ToSql + Sync); 9] = columns.params();
        let letters = dead_letter::Columns::of(&self.dead);
        let letter_params = letters.params();
        let mut steps: Vec<Step<'_>> = Vec::with_capacity(2);
        if !self.writes.is_empty() {
            steps.push(step(sql::ACK_APPLY, &params));
        }
        if !self.dead.is_empty() {
            steps.push(step(sql::ACK_DEAD_LETTER, &letter_params));
        }
        let writes = !steps.is_empty();
        let began = Instant::now();
        tx.commit_with(&steps).await?;
        self.effects.commit = writes.then(|| began.elapsed());
        Ok((self.answers, self.effects))
    }
}

struct Columns<'a> {
    partitions: Vec<Uuid>,
    groups: Vec<&'a str>,
    committed: Vec<Offset>,
    release: Vec<bool>,
    retries: Vec<i32>,
    retry_offset: Vec<Option<Offset>>,
    reset: Vec<bool>,
    retired: Vec<Offset>,
    delay: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn of(work: &'a Work) -> Self {
        let mut columns = Columns {
            partitions: Vec::new(),
            groups: Vec::new(),
            committed: Vec::new(),
            release: Vec::new(),
            retries: Vec::new(),
            retry_offset: Vec::new(),
            reset: Vec::new(),
            retired: Vec::new(),
            delay: Vec::new(),
        };
        for (key, write) in &work.writes {
            let Some(locked) = work.rows.get(key) else { continue };
            columns.partitions.push(key.0.0);
            columns.groups.push(key.1.as_str());
            columns.committed.push(locked.cursor.committed);
            columns.release.push(write.release);
            columns.retries.push(locked.cursor.retries);
            columns.retry_offset.push(locked.cursor.retry_offset);
            columns.reset.push(write.reset);
            columns.retired.push(write.retired);
            columns.delay.push(write.delay_ms.unwrap_or(-1));
        }
        columns
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 9] {
        [
            &self.partitions,
            &self.groups,
            &self.committed,
            &self.release,
            &self.retries,
            &self.retry_offset,
            &self.reset,
            &self.retired,
            &self.delay,
        ]
    }
}

/// The key that a row's request number stands for.
pub(crate) fn keyed<'k>(keys: &'k [CursorKey], row: &Row) -> Result<&'k CursorKey, StorageError> {
    let request: i32 = row.get(0);
    usize::try_from(request).ok().and_then(|i| keys.get(i)).ok_or(StorageError::Misaligned("ack"))
}

fn read_locked(row: &Row) -> Result<Locked, StorageError> {
    let backoff: &str = row.get("retry_backoff");
    Ok(Locked {
        cursor: Cursor {
            committed: row.get("committed"),
            batch_end: row.get("batch_end"),
            worker: row.get("worker_id"),
            live: row.get("live"),
            retries: row.get("batch_retry_count"),
            retry_offset: row.get("retry_offset"),
        },
        policy: Policy {
            retry_limit: row.get("retry_limit"),
            dead_letters: row.get("dead_letters"),
            backoff: RetryBackoff::parse(backoff).unwrap_or_default(),
            delay_ms: row.get("retry_delay"),
            delay_max_ms: row.get("retry_delay_max"),
            jitter: row.get("retry_jitter"),
            redeliver_skipped: row.get("redeliver_skipped"),
        },
        tenant: TenantId(row.get("tenant_id")),
        queue: row.get("queue"),
        log_start: row.get("log_start"),
    })
}
