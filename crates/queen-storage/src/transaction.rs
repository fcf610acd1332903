//! Pushes and acks that commit together or not at all.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use queen_dedup::Coverage;
use queen_pg::Tx;
use queen_segment::split;
use queen_types::{LeaseId, MessageId, Offset, PartitionId, TenantId};

use crate::ack::{self, AckEffects, AckRequest, Answer, Bundle, Work};
use crate::ids::{On, PartitionKey, resolve_or_create};
use crate::push::{Answers, InsertParams, NewFrame, Outgoing, Via, Written, read_answers, steps};
use crate::{Storage, StorageError};

/// One message of a transaction.
#[derive(Debug, Clone)]
pub struct TxnPush {
    /// Where it goes.
    pub key: PartitionKey,
    /// The message.
    pub frame: NewFrame,
}

/// What became of one push of a committed transaction.
#[derive(Debug, Clone, Copy)]
pub struct TxnPushed {
    /// Id of the message that stands for it.
    pub message_id: MessageId,
    /// Its partition.
    pub partition: PartitionId,
    /// It repeats an earlier push of the same transaction.
    pub duplicate: bool,
}

/// A committed transaction.
#[derive(Debug)]
pub struct TxnSuccess {
    /// One per push.
    pub pushes: Vec<TxnPushed>,
    /// One per ack.
    pub acks: Vec<Answer>,
    /// What the acks did.
    pub effects: AckEffects,
}

/// Why a transaction was rolled back. Nothing of it is visible.
#[derive(Debug)]
pub enum TxnFailure {
    /// These pushes repeat stored messages.
    Duplicate(Vec<(usize, MessageId)>),
    /// This ack was refused.
    AckRejected {
        /// Position among the acks.
        ack: usize,
        /// Why.
        error: String,
    },
    /// The database did not do it.
    Storage(StorageError),
}

impl From<StorageError> for TxnFailure {
    fn from(error: StorageError) -> Self {
        TxnFailure::Storage(error)
    }
}

impl From<queen_pg::PgError> for TxnFailure {
    fn from(error: queen_pg::PgError) -> Self {
        TxnFailure::Storage(error.into())
    }
}

/// Pushes of one transaction, one lane per partition, repeats taken out.
pub(crate) struct Lanes<'a> {
    pub(crate) keys: Vec<&'a PartitionKey>,
    /// Positions of the pushes of each lane, in order.
    pushes: Vec<Vec<usize>>,
    /// The push that a repeated one stands for.
    leader: Vec<usize>,
}

impl<'a> Lanes<'a> {
    pub(crate) fn of(pushes: &'a [TxnPush]) -> Lanes<'a> {
        let mut lanes =
            Lanes { keys: Vec::new(), pushes: Vec::new(), leader: Vec::with_capacity(pushes.len()) };
        let mut index: HashMap<&PartitionKey, usize> = HashMap::new();
        let mut first: HashMap<(usize, &str), usize> = HashMap::new();
        for (i, push) in pushes.iter().enumerate() {
            let lane = *index.entry(&push.key).or_insert_with(|| {
                lanes.keys.push(&push.key);
                lanes.pushes.push(Vec::new());
                lanes.keys.len() - 1
            });
            let leader = *first.entry((lane, push.frame.transaction_id.as_str())).or_insert(i);
            lanes.leader.push(leader);
            if leader == i {
                lanes.pushes[lane].push(i);
            }
        }
        lanes
    }
}

impl Storage {
    /// Commits pushes, then acks, in one transaction. A passing failure of the database is retried once in place.
    ///
    /// # Errors
    /// See [`TxnFailure`].
    ///
    /// # Cancel safety
    /// A dropped call may have committed.
    pub async fn transaction(
        &self,
        tenant: TenantId,
        pushes: &[TxnPush],
        acks: &[AckRequest],
        required: &[LeaseId],
    ) -> Result<TxnSuccess, TxnFailure> {
        let lanes = Lanes::of(pushes);
        match self.attempt(tenant, pushes, &lanes, acks, required).await {
            Err(TxnFailure::Storage(error))
                if error.is_retryable() || matches!(error, StorageError::Gone(_)) =>
            {
                for key in &lanes.keys {
                    self.inner.ids.forget(key);
                }
                self.attempt(tenant, pushes, &lanes, acks, required).await
            }
            result => result,
        }
    }

    async fn attempt(
        &self,
        tenant: TenantId,
        pushes: &[TxnPush],
        lanes: &Lanes<'_>,
        acks: &[AckRequest],
        required: &[LeaseId],
    ) -> Result<TxnSuccess, TxnFailure> {
        let mut conn = self.inner.pool.get().await?;
        let known = lanes.keys.iter().filter_map(|key| self.inner.ids.get(key));
        self.read_back(&mut conn, known).await;
        if conn.is_closed() {
            conn = self.inner.pool.get().await?;
        }
        let mut tx = conn.begin();
        let Appended { ids, outgoing, answers } = match self.append(&mut tx, pushes, lanes).await {
            Ok(appended) => appended,
            Err(failure) => {
                tx.rollback().await?;
                return Err(self.name_duplicates(failure).await?);
            }
        };
        let bundles = ack::bundle(acks);
        let mut work = Work::open(&mut tx, acks, &bundles).await?;
        let hinted = !required.is_empty() || acks.iter().any(|ack| ack.lease.is_some());
        if let Err(failure) = settle_all(&mut work, acks, &bundles, tenant, required, hinted) {
            tx.rollback().await?;
            return Err(failure);
        }
        let began = Instant::now();
        let finished = work.finish(tx, acks).await;
        let took = began.elapsed();
        let (acked, mut effects) = finished.inspect_err(|_| self.inner.known.forget(ids.iter().copied()))?;
        // With nothing acked it is the pushes that commit.
        effects.commit.get_or_insert(took);
        if let Some(answers) = answers {
            self.inner.known.learn(&outgoing, &answers, Via::Search);
            self.inner.marks.opened(answers.opened(&outgoing));
        }
        for (key, id) in lanes.keys.iter().zip(&ids) {
            self.inner.ids.put((*key).clone(), *id);
        }
        let lane_of: HashMap<usize, usize> = lanes
            .pushes
            .iter()
            .enumerate()
            .flat_map(|(lane, of)| of.iter().map(move |i| (*i, lane)))
            .collect();
        let pushed = lanes.leader.iter().enumerate().map(|(i, leader)| TxnPushed {
            message_id: pushes[*leader].frame.message_id,
            partition: ids[lane_of[leader]],
            duplicate: *leader != i,
        });
        Ok(TxnSuccess { pushes: pushed.collect(), acks: acked, effects })
    }

    /// Appends every lane inside the transaction; the ids of the lanes' partitions come back.
    pub(crate) async fn append(
        &self,
        tx: &mut Tx<'_>,
        pushes: &[TxnPush],
        lanes: &Lanes<'_>,
    ) -> Result<Appended, NotAppended> {
        if lanes.keys.is_empty() {
            return Ok(Appended { ids: Vec::new(), outgoing: Vec::new(), answers: None });
        }
        let known: Vec<Option<PartitionId>> = lanes.keys.iter().map(|key| self.inner.ids.get(key)).collect();
        let ids: Vec<PartitionId> = if known.iter().all(Option::is_some) {
            known.into_iter().flatten().collect()
        } else {
            // What is made here must not be seen if we roll back, so it is made inside the transaction.
            let found = resolve_or_create(&mut On::Tx(tx), &lanes.keys, "transaction").await?;
            found.into_iter().map(|found| found.id).collect()
        };
        let mut outgoing = Vec::new();
        // For each segment its lane and the positions of its pushes.
        let mut origin: Vec<Vec<usize>> = Vec::new();
        for (lane, of) in lanes.pushes.iter().enumerate() {
            let sizes = of.iter().map(|i| pushes[*i].frame.as_ref().decoded_len());
            origin.extend(split(&self.inner.options.limits, sizes).into_iter().map(|cut| of[cut].to_vec()));
            let frames = of.iter().map(|i| &pushes[*i].frame);
            outgoing.extend(self.pack(frames).into_iter().map(|segment| Outgoing {
                partition: ids[lane],
                segment,
                known: Coverage::NONE,
            }));
        }
        let plan = self.inner.known.ask(&mut outgoing, &HashSet::new());
        let params = InsertParams::of(&outgoing, plan.server);
        let (locks, values) = (params.locks(), params.values(Via::Search));
        let rows = tx.run(&steps(Via::Search, &locks, &values)).await.map_err(StorageError::from)?;
        let rows = rows.get(1).ok_or(StorageError::Misaligned("transaction push"))?;
        let answers = read_answers(Via::Search, rows, outgoing.len())?;
        let mut repeats: Vec<(usize, (PartitionId, Offset))> = Vec::new();
        for ((written, origin), out) in answers.written.iter().zip(&origin).zip(&outgoing) {
            match written {
                Written::At(..) => {}
                Written::Sealed => return Err(StorageError::Sealed.into()),
                Written::Unclear => {
                    return Err(StorageError::Misaligned("a transaction push was not searched").into());
                }
                Written::Gone => return Err(StorageError::Gone("the partition").into()),
                Written::Repeats(frames) => repeats.extend(
                    frames
                        .iter()
                        .filter_map(|(frame, at)| Some((*origin.get(*frame)?, (out.partition, *at)))),
                ),
            }
        }
        if answers.written.iter().all(|w| matches!(w, Written::At(..))) {
            Ok(Appended { ids, outgoing, answers: Some(answers) })
        } else {
            Err(NotAppended::Repeats(repeats))
        }
    }

    async fn name_duplicates(&self, failure: NotAppended) -> Result<TxnFailure, TxnFailure> {
        match failure {
            NotAppended::Failed(error) => Ok(TxnFailure::Storage(error)),
            NotAppended::Repeats(repeats) => {
                let at: Vec<_> = repeats.iter().map(|(_, at)| *at).collect();
                let ids = self.message_ids(&at).await.unwrap_or_else(|_| vec![MessageId::ZERO; at.len()]);
                let mut named: Vec<_> = repeats.iter().map(|(push, _)| *push).zip(ids).collect();
                named.sort_unstable();
                Ok(TxnFailure::Duplicate(named))
            }
        }
    }
}

/// Pushes of a transaction that is not committed yet.
pub(crate) struct Appended {
    /// The partitions of the lanes.
    pub(crate) ids: Vec<PartitionId>,
    pub(crate) outgoing: Vec<Outgoing>,
    /// `None` without pushes.
    pub(crate) answers: Option<Answers>,
}

/// Why the pushes of a transaction were not appended.
pub(crate) enum NotAppended {
    Failed(StorageError),
    Repeats(Vec<(usize, (PartitionId, Offset))>),
}

impl From<StorageError> for NotAppended {
    fn from(error: StorageError) -> Self {
        NotAppended::Failed(error)
    }
}

/// Decides every bundle; the first ack that is refused fails the transaction. An ack of a message that is done already
/// is a success whatever its status, so that a repeated hand-off does not fail.
fn settle_all(
    work: &mut Work,
    acks: &[AckRequest],
    bundles: &[Bundle],
    tenant: TenantId,
    required: &[LeaseId],
    hinted: bool,
) -> Result<(), TxnFailure> {
    let required: HashSet<&str> = required.iter().map(LeaseId::as_str).collect();
    let holders: BTreeMap<usize, Option<LeaseId>> = bundles
        .iter()
        .enumerate()
        .map(|(i, bundle)| (i, lease_of(work, bundle, &required, hinted)))
        .collect();
    for (i, bundle) in bundles.iter().enumerate() {
        work.settle(acks, bundle, tenant, holders.get(&i).and_then(Option::as_ref));
        for item in &bundle.items {
            if work.is_unresolvable(*item) && work.row(&bundle.key).is_some() && !work.answers[*item].success
            {
                let refused = work.answers[*item].error.as_deref();
                if refused == Some(ack::UNRESOLVABLE) {
                    return Err(rejected(
                        *item,
                        "ack references unknown transactionId; transaction rolled back",
                    ));
                }
            }
            let answer = &mut work.answers[*item];
            match answer.error.as_deref() {
                Some(ack::ALREADY_COMMITTED) => {
                    *answer = Answer { success: true, noop: true, ..Answer::default() }
                }
                Some(error) => {
                    let error = format!("ack failed: {error}");
                    return Err(rejected(*item, &error));
                }
                None => {}
            }
        }
    }
    Ok(())
}

fn rejected(ack: usize, error: &str) -> TxnFailure {
    TxnFailure::AckRejected { ack, error: format!("QTXN {error}") }
}

/// The lease that a bundle of acks has to hold: the one it names; else, when the request gives any hint, the present
/// holder's. With required leases the live lease must be among them. `None`: no lease check.
fn lease_of(work: &Work, bundle: &Bundle, required: &HashSet<&str>, hinted: bool) -> Option<LeaseId> {
    // Owns nothing, so it is refused like any lease that is gone.
    let nobody = || Some(LeaseId::from_client(""));
    if !hinted {
        return None;
    }
    let holder = work.row(&bundle.key).and_then(|row| {
        let worker = row.cursor.worker.as_deref().filter(|_| row.cursor.live)?;
        (required.is_empty() || required.contains(worker)).then(|| LeaseId::from_client(worker))
    });
    match (&bundle.lease, holder) {
        (_, None) => nobody(),
        (Some(named), Some(_)) => Some(named.clone()),
        (None, Some(holder)) => Some(holder),
    }
}
