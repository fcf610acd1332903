//! `minPopWaitTime`: a long poll that would come back with less than it asked for may wait a little for more. Nothing is
//! claimed meanwhile, and no connection, slot or lock is held.

use std::sync::Arc;
use std::time::Duration;

use queen_hotlist::RingId;
use queen_types::{Group, QueueOptions};
use tokio::time::Instant;

use crate::api::PopRequest;
use crate::broker::Inner;
use crate::hot::Hot;
use crate::wait::Interest;

/// However often something happens, what is ready is counted no more often than this.
const STEP: Duration = Duration::from_millis(5);

/// The wait of one look; it is spent once.
pub(super) struct Hold<'r> {
    group: &'r Group,
    most: Duration,
    enough: u64,
    deadline: Option<Instant>,
}

impl<'r> Hold<'r> {
    /// `waits`: the pop can wait, until an instant or without end. No hold for pops that cannot, or that ask for one message.
    pub(super) fn of(
        request: &'r PopRequest,
        options: &QueueOptions,
        waits: Option<Option<Instant>>,
    ) -> Self {
        let holds = waits.is_some() && request.batch > 1;
        let most = u64::try_from(options.min_pop_wait_time).unwrap_or(0);
        Hold {
            group: &request.group,
            most: if holds { Duration::from_millis(most) } else { Duration::ZERO },
            enough: u64::from(request.batch),
            deadline: waits.flatten(),
        }
    }

    /// Waits until enough is ready, or nothing (somebody else took it), or the time is up.
    pub(super) async fn wait(&mut self, inner: &Arc<Inner>, hot: &Arc<Hot>, ring: RingId) {
        if self.most.is_zero() {
            return;
        }
        let now = Instant::now();
        let until = self.deadline.map_or(now + self.most, |deadline| deadline.min(now + self.most));
        let mut ticket = None;
        loop {
            let now = inner.hot.now();
            let ready = inner.hot.change(hot, |list| {
                list.tick(now);
                list.ring_stats(ring)
                    .map_or(0, |stats| if stats.ready == 0 { 0 } else { stats.ready_messages.max(1) })
            });
            if ready == 0 {
                return;
            }
            let now = Instant::now();
            if ready >= self.enough || now >= until {
                self.most = Duration::ZERO;
                return;
            }
            let Some(ticket) = &mut ticket else {
                // What happens from here on wakes; what happened before is counted in the next round.
                let (gates, interest) = (&inner.gates, Interest::Gathering);
                ticket = Some(gates.stand(hot.tenant, &hot.queue, None, self.group, interest));
                continue;
            };
            tokio::time::sleep_until(until.min(now + STEP)).await;
            if tokio::time::timeout_at(until, ticket.woken()).await.is_ok() {
                ticket.arm();
            }
        }
    }
}
