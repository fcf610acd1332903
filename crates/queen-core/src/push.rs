//! Pushing: repeats inside the request are taken out, the rest goes to storage as one lane per partition.

use std::collections::HashMap;
use std::sync::Arc;

use queen_storage::{FrameVerdict, Lane, NewFrame, PartitionKey};
use queen_types::{MessageId, PushStatus, QueueName, TenantId, TransactionId};

use crate::Broker;
use crate::announce::Landed;
use crate::api::{PushAnswer, PushItem, PushResult};
use crate::broker::Inner;
use crate::spool::Outcome;

/// Where an item went: the frame of a lane, shared with the items that repeat it.
struct Placed {
    lane: usize,
    frame: usize,
    /// An earlier item of the request has the same key.
    repeats: bool,
    message_id: MessageId,
    transaction_id: TransactionId,
}

impl Broker {
    /// Appends messages; one result per item, in order. Items of one partition are stored in request order and all
    /// or none of a partition's new ones; partitions are independent. What the database does not take for a reason that
    /// may pass is spooled, if there is a spool.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have stored its messages. Pushing again under the same transaction ids is safe
    /// inside the deduplication window.
    pub async fn push(
        &self,
        tenant: TenantId,
        items: Vec<PushItem>,
        producer: Option<Arc<str>>,
    ) -> Vec<PushResult> {
        self.push_or_divert(tenant, items, producer).await.results
    }

    /// As [`Broker::push`], and tells whether push maintenance kept all of it from the database.
    ///
    /// # Cancel safety
    /// As [`Broker::push`].
    pub async fn push_or_divert(
        &self,
        tenant: TenantId,
        items: Vec<PushItem>,
        producer: Option<Arc<str>>,
    ) -> PushAnswer {
        metrics::counter!("queen_process_push_requests_total").increment(1);
        metrics::counter!("queen_process_push_messages_total").increment(items.len() as u64);
        self.inner.tally.push_request(tenant, items.iter().map(|item| &item.queue));
        let (lanes, placed) = place(tenant, items, producer.as_ref());
        let ids: Vec<Vec<MessageId>> =
            lanes.iter().map(|lane| lane.frames.iter().map(|f| f.message_id).collect()).collect();
        let diverted = self.inner.modes.push();
        let outcomes = if diverted {
            self.inner.buffer.take(&lanes, false).await
        } else {
            append(&self.inner, lanes).await
        };
        let failed = |outcome: &Outcome| matches!(outcome, Outcome::Decided(FrameVerdict::Failed(_)));
        if outcomes.iter().flatten().any(failed) {
            self.inner.tally.failed();
        }
        let results = placed.into_iter().map(|item| result(item, &ids, &outcomes)).collect();
        PushAnswer { results, diverted }
    }
}

/// Stores lanes, or spools them.
async fn append(inner: &Arc<Inner>, lanes: Vec<Lane>) -> Vec<Vec<Outcome>> {
    let decided = |verdicts: Vec<Vec<FrameVerdict>>| {
        verdicts.into_iter().map(|lane| lane.into_iter().map(Outcome::Decided).collect()).collect()
    };
    if !inner.buffer.exists() {
        return decided(inner.fusion.append(inner, lanes).await);
    }
    let behind: Vec<bool> = lanes.iter().map(|lane| inner.buffer.goes_behind(lane)).collect();
    if !behind.contains(&true) {
        let verdicts = inner.fusion.append(inner, lanes.clone()).await;
        return inner.buffer.rescue(&lanes, verdicts).await;
    }
    let (mut spooled, mut stored) = (Vec::new(), Vec::new());
    for (lane, behind) in lanes.into_iter().zip(&behind) {
        if *behind { spooled.push(lane) } else { stored.push(lane) }
    }
    let mut spooled = inner.buffer.take(&spooled, true).await.into_iter();
    let verdicts = inner.fusion.append(inner, stored.clone()).await;
    let mut stored = inner.buffer.rescue(&stored, verdicts).await.into_iter();
    let next = |behind: bool| if behind { spooled.next() } else { stored.next() };
    behind.into_iter().map(next).map(Option::unwrap_or_default).collect()
}

/// Tells whoever waits that messages landed.
pub(crate) fn announce(inner: &Inner, lanes: &[Lane], verdicts: &[Vec<FrameVerdict>]) {
    let mut queues: HashMap<(TenantId, &QueueName), Vec<Landed<'_>>> = HashMap::new();
    for (lane, verdicts) in lanes.iter().zip(verdicts) {
        let mut landed = None;
        let mut messages = 0;
        for verdict in verdicts {
            if let FrameVerdict::Queued { partition, .. } = verdict {
                landed = Some(*partition);
                messages += 1;
            }
        }
        if let Some(partition) = landed {
            let name = &lane.key.partition;
            queues.entry((lane.key.tenant, &lane.key.queue)).or_default().push(Landed {
                partition,
                name,
                messages,
            });
        }
    }
    for ((tenant, queue), landed) in queues {
        inner.landed(tenant, queue, &landed);
    }
}

/// Sorts items into lanes, first of equal keys wins.
fn place(tenant: TenantId, items: Vec<PushItem>, producer: Option<&Arc<str>>) -> (Vec<Lane>, Vec<Placed>) {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut index: HashMap<PartitionKey, usize> = HashMap::new();
    let mut first: HashMap<(usize, TransactionId), usize> = HashMap::new();
    let mut placed = Vec::with_capacity(items.len());
    for item in items {
        let key = PartitionKey { tenant, queue: item.queue, partition: item.partition };
        let lane = match lanes.last() {
            Some(last) if last.key == key => lanes.len() - 1,
            _ => *index.entry(key.clone()).or_insert_with(|| {
                lanes.push(Lane { key, frames: Vec::new() });
                lanes.len() - 1
            }),
        };
        let message_id = MessageId::mint();
        let frame = lanes[lane].frames.len();
        let transaction_id = match item.transaction_id {
            Some(key) => {
                let leader = *first.entry((lane, key.clone())).or_insert(frame);
                if leader != frame {
                    placed.push(Placed {
                        lane,
                        frame: leader,
                        repeats: true,
                        message_id,
                        transaction_id: key,
                    });
                    continue;
                }
                key
            }
            None => minted_key(message_id),
        };
        lanes[lane].frames.push(NewFrame {
            message_id,
            transaction_id: transaction_id.clone(),
            payload: item.payload,
            trace_id: item.trace_id,
            producer_sub: producer.cloned(),
            encrypted: false,
        });
        placed.push(Placed { lane, frame, repeats: false, message_id, transaction_id });
    }
    (lanes, placed)
}

/// The key of an item that names none: its message id.
pub(crate) fn minted_key(id: MessageId) -> TransactionId {
    TransactionId::new(id.to_string()).expect("the text of a UUID has no control character and 36 bytes")
}

fn result(item: Placed, ids: &[Vec<MessageId>], outcomes: &[Vec<Outcome>]) -> PushResult {
    let Placed { lane, frame, repeats, message_id, transaction_id } = item;
    // An item that repeats another takes that one's id, whatever became of it.
    let message_id = if repeats { ids[lane][frame] } else { message_id };
    let decided = match outcomes.get(lane).and_then(|lane| lane.get(frame)) {
        Some(Outcome::Decided(verdict)) => verdict,
        Some(Outcome::Buffered) => {
            return PushResult { message_id, transaction_id, status: PushStatus::Buffered, error: None };
        }
        Some(Outcome::Refused(text)) => {
            let error = Some(text.clone());
            return PushResult { message_id, transaction_id, status: PushStatus::Failed, error };
        }
        None => {
            let error = Some("the push was lost inside the broker".to_owned());
            return PushResult { message_id, transaction_id, status: PushStatus::Failed, error };
        }
    };
    let (message_id, status, error) = match decided {
        FrameVerdict::Queued { .. } if repeats => (message_id, PushStatus::Duplicate, None),
        FrameVerdict::Queued { .. } => (message_id, PushStatus::Queued, None),
        FrameVerdict::Duplicate { original } => (*original, PushStatus::Duplicate, None),
        FrameVerdict::Failed(error) => {
            metrics::counter!("queen_db_errors_total", "op" => "push").increment(1);
            (message_id, PushStatus::Failed, Some(error.to_string()))
        }
    };
    PushResult { message_id, transaction_id, status, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use queen_types::PartitionName;

    fn item(queue: &str, partition: &str, key: Option<&str>) -> PushItem {
        PushItem {
            queue: QueueName::new(queue).unwrap(),
            partition: PartitionName::new(partition).unwrap(),
            transaction_id: key.map(|k| TransactionId::new(k).unwrap()),
            payload: Bytes::from_static(b"1"),
            trace_id: None,
        }
    }

    #[test]
    fn items_are_sorted_into_lanes_in_order_and_repeats_follow_their_leader() {
        let items = vec![
            item("q", "a", Some("x")),
            item("q", "b", Some("x")),
            item("q", "a", Some("y")),
            item("q", "a", Some("x")),
            item("q", "a", None),
            item("q", "a", None),
        ];
        let (lanes, placed) = place(TenantId::DEFAULT, items, None);
        assert_eq!(lanes.iter().map(|l| l.frames.len()).collect::<Vec<_>>(), [4, 1]);
        let where_: Vec<_> = placed.iter().map(|p| (p.lane, p.frame, p.repeats)).collect();
        assert_eq!(
            where_,
            [(0, 0, false), (1, 0, false), (0, 1, false), (0, 0, true), (0, 2, false), (0, 3, false)]
        );
        assert_eq!(lanes[0].frames[2].transaction_id.as_str(), lanes[0].frames[2].message_id.to_string());
    }
}
