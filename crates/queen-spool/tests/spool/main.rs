//! The spool on real files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod aside;
mod power;
mod recording;
mod writing;

use bytes::Bytes;
use queen_spool::{Entry, Event, Spool, SpoolOptions};
use queen_types::{MessageId, PartitionName, QueueName, TenantId, Timestamp, TransactionId};

/// An event of partition `p` with the key and payload `n`.
fn event(n: usize) -> Event {
    Event {
        tenant: TenantId::DEFAULT,
        queue: QueueName::new("q").unwrap(),
        partition: PartitionName::new("p").unwrap(),
        transaction_id: TransactionId::new(format!("t{n}")).unwrap(),
        message_id: Some(MessageId::mint()),
        trace_id: None,
        producer_sub: None,
        encrypted: false,
        accepted_at: Some(Timestamp(1_900_000_000_000_000 + i64::try_from(n).unwrap())),
        payload: Bytes::from(n.to_string()),
    }
}

/// Options that leave the machine's disk out of the game.
fn options(dir: &std::path::Path) -> SpoolOptions {
    SpoolOptions { min_free_bytes: 0, ..SpoolOptions::at(dir) }
}

async fn append(spool: &Spool, numbers: impl IntoIterator<Item = usize>) {
    let results = spool.append(numbers.into_iter().map(event).collect()).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// Payloads of a complete file.
fn read(spool: &Spool, name: &str) -> Vec<String> {
    let mut reader = spool.reader(name).unwrap();
    let mut found = Vec::new();
    while let Entry::Record(_, event) = reader.next_entry().unwrap() {
        found.push(String::from_utf8(event.unwrap().payload.to_vec()).unwrap());
    }
    found
}

/// Payloads of all complete files, in order.
fn read_all(spool: &Spool) -> Vec<String> {
    spool.ready().iter().flat_map(|name| read(spool, name)).collect()
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

fn names(dir: &std::path::Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
