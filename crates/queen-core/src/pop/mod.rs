//! Popping: find candidates, claim, deliver; when there is nothing, park and look again when woken.

mod claims;
mod fatten;
mod guard;
mod plan;
mod poison;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use queen_hotlist::{ClaimId, Release, RingId};
use queen_storage::pop::{Candidate, Claim, Delivered, Delivery, Hold, Outcome, Tid};
use queen_storage::{PartitionKey, StorageError};
use queen_types::{Group, LeaseId, Offset, PartitionId, PartitionName, QueueName, StartPoint, TenantId};
use tokio::time::Instant;

use crate::announce::Freed;
use crate::api::{Message, PartitionBatch, PopAnswer, PopRequest, PopTarget};
use crate::hot::{Guard, Hot, walk};
use crate::wait::{Interest, Ticket};
use crate::{Broker, Error};
pub(crate) use claims::Claims;
use claims::Job;
use guard::LeaseGuard;
use plan::Plan;

/// Which hot list a claim came from, and its name there.
type Claimant = (Arc<Hot>, RingId, ClaimId);

/// How often one look claims again after competitors took everything it had found.
const CLAIM_ATTEMPTS: u32 = 3;
/// Partitions that one claim checks out at most.
const WIDTH_MAX: u32 = 256;
/// Claims of one look at a hot list: entries that turn out to be empty cost one each, and a pop must come to an end.
const LIST_CLAIMS_MAX: u32 = 64;

impl Broker {
    /// Claims messages for a group, waiting for them if the request says so.
    ///
    /// # Errors
    /// See [`Error`]; a failure is never an empty answer.
    ///
    /// # Cancel safety
    /// A dropped call claims nothing afterwards; a lease that it had taken is given back in the background.
    pub async fn pop(&self, tenant: TenantId, request: PopRequest) -> Result<PopAnswer, Error> {
        metrics::counter!("queen_process_pop_requests_total").increment(1);
        if self.inner.modes.pop() {
            return Ok(PopAnswer::empty());
        }
        let start = if request.group.is_queue_mode() {
            StartPoint::All
        } else {
            request.start.unwrap_or(self.inner.options.default_subscription.into())
        };
        // A wait beyond any calendar is one without end.
        let deadline = request.wait.and_then(|wait| Instant::now().checked_add(self.bounded(wait)));
        let answer = match self.look(tenant, &request, start, Moment::First, deadline).await? {
            Look::Messages(answer) => answer,
            Look::Nothing { absent } => match request.wait {
                // A partition that was not there when the pop came has no message from before it.
                Some(wait) if !wait.is_zero() => {
                    let start = if absent { StartPoint::All } else { start };
                    self.park(tenant, &request, start, deadline).await?
                }
                _ => PopAnswer::empty(),
            },
        };
        metrics::counter!("queen_process_pop_messages_total").increment(answer.len() as u64);
        let queue = match &request.target {
            PopTarget::Queue(queue) | PopTarget::Partition(queue, _) => Some(queue),
            PopTarget::Discovery { .. } => None,
        };
        self.inner.tally.popped(tenant, queue, &answer);
        Ok(answer)
    }

    fn bounded(&self, wait: Duration) -> Duration {
        let ceiling = self.inner.options.pop_max_timeout;
        if ceiling.is_zero() { wait } else { wait.min(ceiling) }
    }

    /// Waits in line. Holds no connection, slot or lock while it does.
    async fn park(
        &self,
        tenant: TenantId,
        request: &PopRequest,
        start: StartPoint,
        deadline: Option<Instant>,
    ) -> Result<PopAnswer, Error> {
        let mut ticket = self.stand(tenant, request).await?;
        loop {
            ticket.arm();
            if self.inner.draining.load(Ordering::Relaxed) || self.inner.modes.pop() {
                return Ok(PopAnswer::empty());
            }
            if let Look::Messages(answer) =
                self.look(tenant, request, start, Moment::Parked, deadline).await?
            {
                return Ok(answer);
            }
            let woken = match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline, ticket.woken()).await.is_ok(),
                None => {
                    ticket.woken().await;
                    true
                }
            };
            if !woken {
                // What nobody announced is found now at the latest, and an outage does not pass for an idle queue.
                return match self.look(tenant, request, start, Moment::Last, deadline).await? {
                    Look::Messages(answer) => Ok(answer),
                    Look::Nothing { .. } => Ok(PopAnswer::empty()),
                };
            }
        }
    }

    async fn stand(&self, tenant: TenantId, request: &PopRequest) -> Result<Ticket<'_>, Error> {
        let gates = &self.inner.gates;
        let (queue, interest) = match &request.target {
            PopTarget::Discovery { .. } => return Ok(gates.stand_for_discovery(tenant)),
            PopTarget::Queue(queue) => (queue, Interest::Queue),
            PopTarget::Partition(queue, partition) => (queue, Interest::Partition(partition.clone())),
        };
        let row = self.inner.caches.queue(&self.inner.storage, tenant, queue).await?;
        Ok(gates.stand(tenant, queue, row.map(|row| row.id), &request.group, interest))
    }

    /// One look for work. The first look of a pop also repairs what it finds damaged.
    async fn look(
        &self,
        tenant: TenantId,
        request: &PopRequest,
        start: StartPoint,
        moment: Moment,
        deadline: Option<Instant>,
    ) -> Result<Look, Error> {
        let can_wait = request.wait.is_some() && moment != Moment::Last;
        match &request.target {
            PopTarget::Queue(queue) if self.inner.options.hotlist => {
                self.look_on_list(tenant, queue, request, start, can_wait.then_some(deadline)).await
            }
            PopTarget::Queue(queue) => {
                self.look_by_scan(tenant, request, || self.plan_queue(tenant, queue, request, start)).await
            }
            PopTarget::Discovery { namespace, task } => {
                let plan = || self.plan_discovery(tenant, namespace.as_ref(), task.as_ref(), request, start);
                self.look_by_scan(tenant, request, plan).await
            }
            PopTarget::Partition(queue, partition) => {
                self.look_at_partition(tenant, queue, partition, request, start, moment == Moment::First)
                    .await
            }
        }
    }

    /// Looks where a scan of the database finds something.
    async fn look_by_scan<F>(
        &self,
        tenant: TenantId,
        request: &PopRequest,
        plan: impl Fn() -> F,
    ) -> Result<Look, Error>
    where
        F: Future<Output = Result<Plan, Error>>,
    {
        for _ in 0..CLAIM_ATTEMPTS {
            let plan = plan().await?;
            if plan.candidates.is_empty() {
                break;
            }
            // Competitors may take some of what was found: then come the next.
            let width = request.partitions.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
            for candidates in plan.candidates.chunks(width.max(1)) {
                match self.claim(tenant, request, candidates, &plan, None).await? {
                    Claimed::Messages(answer) => return Ok(Look::Messages(answer)),
                    Claimed::OnlyDamage | Claimed::Nothing => {}
                }
            }
        }
        Ok(Look::Nothing { absent: false })
    }

    async fn look_at_partition(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        partition: &PartitionName,
        request: &PopRequest,
        start: StartPoint,
        first: bool,
    ) -> Result<Look, Error> {
        for _ in 0..CLAIM_ATTEMPTS {
            let plan = self.plan_partition(tenant, queue, partition, request, start).await?;
            if plan.candidates.is_empty() {
                return Ok(Look::Nothing { absent: true });
            }
            match self.claim(tenant, request, &plan.candidates, &plan, None).await? {
                Claimed::Messages(answer) => return Ok(Look::Messages(answer)),
                Claimed::OnlyDamage => {}
                Claimed::Nothing => {
                    if !self.doubt(tenant, queue, partition, &request.group, &plan, first).await? {
                        break;
                    }
                }
            }
        }
        Ok(Look::Nothing { absent: false })
    }

    /// Looks at what the hot list has ready, and walks the queue when it has nothing and a walk is due. `waits`: the pop can
    /// wait, until an instant or without end.
    async fn look_on_list(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        request: &PopRequest,
        start: StartPoint,
        waits: Option<Option<Instant>>,
    ) -> Result<Look, Error> {
        let can_wait = waits.is_some();
        let inner = &self.inner;
        let group = &request.group;
        let (id, seed) = inner.caches.registration(&inner.storage, tenant, queue, group, start).await?;
        let Some(row) = inner.caches.queue(&inner.storage, tenant, queue).await? else {
            return Ok(Look::Nothing { absent: false });
        };
        let (hot, ring) = inner.hot.ring(tenant, queue, group, &row.options);
        let most = request.partitions.unwrap_or(u32::MAX).min(request.batch);
        let width = most.clamp(1, WIDTH_MAX) as usize;
        let mut walk = None;
        let mut walked = false;
        let mut claims = 0;
        let mut fatten = fatten::Hold::of(request, &row.options, waits);
        loop {
            fatten.wait(inner, &hot, ring).await;
            while let Some(checked_out) =
                Guard::take(inner, &hot, ring, width, u64::from(request.batch.max(1)))
            {
                let plan = Plan::of(&checked_out, queue, request, &row, seed);
                match self.claim(tenant, request, &plan.candidates, &plan, Some(checked_out)).await? {
                    Claimed::Messages(answer) => return Ok(Look::Messages(answer)),
                    Claimed::OnlyDamage | Claimed::Nothing => {}
                }
                claims += 1;
                if claims >= LIST_CLAIMS_MAX {
                    // What is ready wakes a pop that parks now.
                    return Ok(Look::Nothing { absent: false });
                }
            }
            if walked {
                return Ok(Look::Nothing { absent: false });
            }
            match &mut walk {
                None => match walk::underway(inner, &hot, ring, id, group, can_wait)? {
                    Some(underway) => walk = Some(underway),
                    None => return Ok(Look::Nothing { absent: false }),
                },
                Some(underway) => match (underway.page().await?, underway.ours) {
                    (true, _) => {}
                    (false, true) => walked = true,
                    // The walk of a ring that is gone, as after a seek; ours comes next.
                    (false, false) => walk = None,
                },
            }
        }
    }

    async fn claim(
        &self,
        tenant: TenantId,
        request: &PopRequest,
        candidates: &[Candidate],
        plan: &Plan,
        checked_out: Option<Guard>,
    ) -> Result<Claimed, Error> {
        let inner = &self.inner;
        let lease = (!request.auto_ack).then(LeaseId::mint);
        let seconds = candidates.iter().map(|c| c.lease_seconds).max().unwrap_or(0);
        let origin = checked_out.as_ref().and_then(Guard::claim);
        let asked = candidates.iter().map(|c| c.partition);
        let guard = lease.as_ref().map(|lease| {
            LeaseGuard::new(inner, &request.group, lease, asked.clone().collect(), origin.clone())
        });
        let claim = Claim {
            group: request.group.clone(),
            lease: lease.clone(),
            messages: i64::from(request.batch.max(1)),
            hold: if matches!(request.target, PopTarget::Partition(..)) {
                Hold::Quiet
            } else {
                Hold::Gathered
            },
            candidates: candidates.to_vec(),
        };
        let claimed = inner.claims.run(inner, Job { claim, guard: checked_out }).await?;
        let found = asked.zip(&claimed.outcomes);
        let beyond: Vec<PartitionId> = found
            .filter(|(_, outcome)| **outcome == Outcome::Beyond)
            .map(|(partition, _)| partition)
            .collect();
        if !beyond.is_empty() {
            inner.storage.clamp_cursors(&beyond, &request.group).await?;
        }
        let bytes_max = inner.options.pop_max_bytes;
        let delivery =
            inner.storage.deliver(&request.group, lease.as_ref(), claimed.segments, bytes_max).await?;
        if delivery.damaged > 0 {
            metrics::counter!("queen_segment_decode_errors_total").increment(delivery.damaged as u64);
        }
        if !delivery.corrected.is_empty() {
            self.note_corrections(plan, &delivery, &request.group, origin.as_ref());
        }
        if delivery.partitions.is_empty() {
            guard.into_iter().for_each(LeaseGuard::keep);
            return Ok(if delivery.claimed { Claimed::OnlyDamage } else { Claimed::Nothing });
        }
        let ends: Vec<(Offset, Option<Tid>)> =
            delivery.partitions.iter().map(|d| (d.batch_end, d.row)).collect();
        let mut partitions: Vec<PartitionBatch> =
            delivery.partitions.into_iter().map(|d| batch(d, plan)).collect();
        if let Some(lease) = &lease {
            let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            let parts = partitions
                .iter()
                .zip(ends)
                .map(|(p, (end, row))| {
                    (p.partition_id, inner.leases.remember(plan.queue_of(p.partition_id), p, end, row))
                })
                .collect();
            let origin = origin.map(|(_, ring, claim)| (ring, claim));
            inner.leases.put(lease.clone(), tenant, request.group.clone(), parts, lasts, origin);
            self.give_up_poison(tenant, &request.group, lease, plan, &mut partitions).await;
        }
        guard.into_iter().for_each(LeaseGuard::keep);
        if partitions.is_empty() {
            return Ok(Claimed::OnlyDamage);
        }
        Ok(Claimed::Messages(PopAnswer { lease, partitions }))
    }

    /// What a claim took and did not deliver is pending again.
    fn note_corrections(&self, plan: &Plan, delivery: &Delivery, group: &Group, origin: Option<&Claimant>) {
        let Some((hot, ring, claim)) = origin else { return };
        for partition in &delivery.corrected {
            if delivery.partitions.iter().any(|d| d.partition == *partition) {
                let name = plan.name_of(*partition);
                let now = self.inner.hot.now();
                self.inner.hot.change(hot, |list| list.mark(*partition, &name, 1, now));
            } else {
                let claim = Some((*ring, *claim));
                let freed = Freed { group, partition: *partition, claim, release: Release::Open, row: None };
                self.inner.released(hot.tenant, &hot.queue, &[freed]);
            }
        }
    }

    /// A pop of one partition that got nothing; true when it should look again. Does it owe the group a cursor, is its id
    /// from a former life, or its cursor beyond the log?
    async fn doubt(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        partition: &PartitionName,
        group: &Group,
        plan: &Plan,
        first: bool,
    ) -> Result<bool, StorageError> {
        let key = PartitionKey { tenant, queue: queue.clone(), partition: partition.clone() };
        self.inner.storage.forget_partition(&key);
        let Some(candidate) = plan.candidates.first() else { return Ok(false) };
        if first && self.inner.storage.partition_id(&key).await? != Some(candidate.partition) {
            return Ok(true);
        }
        self.inner.storage.seed_partition(candidate.partition, group, candidate.seed).await?;
        if first && self.inner.storage.is_beyond(candidate.partition, group).await? {
            self.inner.storage.clamp_cursors(&[candidate.partition], group).await?;
        }
        Ok(false)
    }
}

/// Which look of a pop it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    First,
    /// It will be woken if there is something later.
    Parked,
    /// Its time is up.
    Last,
}

/// What a look brought.
enum Look {
    Messages(PopAnswer),
    /// Nothing to claim; `absent`: the partition asked for does not exist.
    Nothing {
        absent: bool,
    },
}

enum Claimed {
    Messages(PopAnswer),
    /// Everything claimed has been filed as dead letters: it was undecodable, or delivered too often.
    OnlyDamage,
    Nothing,
}

fn batch(delivered: Delivered, plan: &Plan) -> PartitionBatch {
    let mut messages = Vec::with_capacity(delivered.segments.iter().map(|s| s.frames).sum());
    for segment in &delivered.segments {
        messages.extend(segment.reader.frames(segment.first, segment.frames).map(|frame| {
            let message = Message {
                id: frame.message_id,
                transaction_id: frame.transaction_id.into(),
                trace_id: frame.trace_id,
                producer_sub: frame.producer_sub.map(Into::into),
                payload: frame.payload,
            };
            (segment.created_at, message)
        }));
    }
    PartitionBatch {
        partition: plan.name_of(delivered.partition),
        partition_id: delivered.partition,
        delivery_attempt: delivered.attempt,
        messages,
    }
}
