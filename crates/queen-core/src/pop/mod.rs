//! Popping: find candidates, claim, deliver; when there is nothing, park and look again when woken.

mod guard;
mod plan;

use std::sync::atomic::Ordering;
use std::time::Duration;

use queen_pg::Tid;
use queen_storage::pop::{Claim, Delivered, Hold};
use queen_storage::{PartitionKey, StorageError};
use queen_types::{Group, LeaseId, Offset, PartitionId, PartitionName, QueueName, StartPoint, TenantId};
use tokio::time::Instant;

use crate::api::{Message, PartitionBatch, PopAnswer, PopRequest, PopTarget};
use crate::wait::{Interest, Ticket};
use crate::{Broker, Error};
use guard::LeaseGuard;
use plan::Plan;

/// How often one look claims again after competitors took everything it had found.
const CLAIM_ATTEMPTS: u32 = 3;

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
        let start = if request.group.is_queue_mode() {
            StartPoint::All
        } else {
            request.start.unwrap_or(self.inner.options.default_subscription.into())
        };
        let answer = match self.look(tenant, &request, start, true).await? {
            Look::Messages(answer) => answer,
            Look::Nothing { absent } => match request.wait {
                // A partition that was not there when the pop came has no message from before it.
                Some(wait) => {
                    self.park(tenant, &request, if absent { StartPoint::All } else { start }, wait).await?
                }
                None => PopAnswer::empty(),
            },
        };
        metrics::counter!("queen_process_pop_messages_total").increment(answer.len() as u64);
        Ok(answer)
    }

    /// Waits in line. Holds no connection, slot or lock while it does.
    async fn park(
        &self,
        tenant: TenantId,
        request: &PopRequest,
        start: StartPoint,
        wait: Duration,
    ) -> Result<PopAnswer, Error> {
        let ceiling = self.inner.options.pop_max_timeout;
        let wait = if ceiling.is_zero() { wait } else { wait.min(ceiling) };
        // A wait beyond any calendar is one without end.
        let deadline = Instant::now().checked_add(wait);
        if wait.is_zero() {
            return Ok(PopAnswer::empty());
        }
        let mut ticket = self.stand(tenant, request).await?;
        loop {
            if self.inner.draining.load(Ordering::Relaxed) {
                return Ok(PopAnswer::empty());
            }
            ticket.arm();
            if let Look::Messages(answer) = self.look(tenant, request, start, false).await? {
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
                return Ok(PopAnswer::empty());
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
        first: bool,
    ) -> Result<Look, Error> {
        for _ in 0..CLAIM_ATTEMPTS {
            let plan = match &request.target {
                PopTarget::Queue(queue) => self.plan_queue(tenant, queue, request, start).await?,
                PopTarget::Partition(queue, partition) => {
                    self.plan_partition(tenant, queue, partition, request, start).await?
                }
                PopTarget::Discovery { namespace, task } => {
                    self.plan_discovery(tenant, namespace.as_ref(), task.as_ref(), request, start).await?
                }
            };
            if plan.candidates.is_empty() {
                return Ok(Look::Nothing { absent: matches!(request.target, PopTarget::Partition(..)) });
            }
            match self.claim(tenant, request, &plan).await? {
                Claimed::Messages(answer) => return Ok(Look::Messages(answer)),
                Claimed::OnlyDamage => {}
                Claimed::Nothing => {
                    if let PopTarget::Partition(queue, partition) = &request.target
                        && !self.doubt(tenant, queue, partition, &request.group, &plan, first).await?
                    {
                        return Ok(Look::Nothing { absent: false });
                    }
                }
            }
        }
        Ok(Look::Nothing { absent: false })
    }

    async fn claim(&self, tenant: TenantId, request: &PopRequest, plan: &Plan) -> Result<Claimed, Error> {
        let lease = (!request.auto_ack).then(LeaseId::mint);
        let asked: Vec<PartitionId> = plan.candidates.iter().map(|c| c.partition).collect();
        let guard = lease.as_ref().map(|lease| LeaseGuard::new(self, &request.group, lease, asked));
        let claim = Claim {
            group: &request.group,
            lease: lease.as_ref(),
            messages: i64::from(request.batch.max(1)),
            partitions: request.partitions.map(i64::from),
            hold: if matches!(request.target, PopTarget::Partition(..)) {
                Hold::Quiet
            } else {
                Hold::Gathered
            },
            candidates: &plan.candidates,
        };
        let claimed = self.inner.storage.claim(&claim).await?;
        let bytes_max = self.inner.options.pop_max_bytes;
        let delivery = self.inner.storage.deliver(&request.group, lease.as_ref(), claimed, bytes_max).await?;
        if delivery.damaged > 0 {
            metrics::counter!("queen_segment_decode_errors_total").increment(delivery.damaged as u64);
        }
        if let Some(guard) = guard {
            guard.keep();
        }
        if delivery.partitions.is_empty() {
            return Ok(if delivery.claimed { Claimed::OnlyDamage } else { Claimed::Nothing });
        }
        let ends: Vec<(Offset, Option<Tid>)> =
            delivery.partitions.iter().map(|d| (d.batch_end, d.row)).collect();
        let partitions: Vec<PartitionBatch> =
            delivery.partitions.into_iter().map(|d| batch(d, plan)).collect();
        if let Some(lease) = &lease {
            let seconds = plan.candidates.iter().map(|c| c.lease_seconds).max().unwrap_or(0);
            let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            let parts = partitions
                .iter()
                .zip(ends)
                .map(|(p, (end, row))| {
                    (p.partition_id, self.inner.leases.remember(plan.queue_of(p.partition_id), p, end, row))
                })
                .collect();
            self.inner.leases.put(lease.clone(), tenant, request.group.clone(), parts, lasts);
        }
        Ok(Claimed::Messages(PopAnswer { lease, partitions }))
    }

    /// A pop of one partition that got nothing; true when it should look again. Does it owe the group a cursor, is its id from a former life, or its
    /// cursor beyond the log?
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
    /// Everything claimed was undecodable and has been filed.
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
