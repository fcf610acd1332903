//! Cost of packing and opening segments: `cargo bench -p queen-segment --bench pack`.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use queen_segment::{FrameRef, Packer, SegmentReader, TxnHash, Unpacker};
use queen_types::MessageId;

struct Message {
    id: MessageId,
    transaction_id: String,
    payload: Vec<u8>,
}

/// Messages with JSON payloads of 256 bytes that share keys and differ in values, as real ones do.
fn messages(count: usize) -> Vec<Message> {
    (0..count)
        .map(|i| {
            let id = MessageId::mint();
            let mut payload = format!(
                r#"{{"order":{},"customer":"{id}","state":"created","amount":{}.{:02},"note":""#,
                i * 7919,
                i * 31 % 997,
                i % 100
            );
            while payload.len() < 254 {
                payload.push(char::from(b'a' + (payload.len() * (i + 3) % 26) as u8));
            }
            payload.push_str("\"}");
            Message { id, transaction_id: id.to_string(), payload: payload.into_bytes() }
        })
        .collect()
}

fn refs(messages: &[Message]) -> impl Iterator<Item = FrameRef<'_>> {
    messages.iter().map(|message| FrameRef {
        message_id: message.id,
        transaction_id: &message.transaction_id,
        trace_id: None,
        producer_sub: None,
        encrypted: false,
        payload: &message.payload,
    })
}

fn hash(c: &mut Criterion) {
    let id = MessageId::mint().to_string();
    c.bench_function("hash/uuid", |b| b.iter(|| TxnHash::of(black_box(id.as_bytes()))));
}

fn pack(c: &mut Criterion) {
    let mut group = c.benchmark_group("pack");
    for count in [1, 100] {
        let messages = messages(count);
        group.throughput(Throughput::Elements(count as u64));
        let mut packer = Packer::default();
        group.bench_function(format!("{count}/reused"), |b| {
            b.iter(|| packer.pack(refs(black_box(&messages))))
        });
        group.bench_function(format!("{count}/fresh"), |b| {
            b.iter(|| Packer::default().pack(refs(black_box(&messages))));
        });
    }
    group.finish();
}

fn open(c: &mut Criterion) {
    let mut group = c.benchmark_group("open");
    for count in [1, 100] {
        let blob = Packer::default().pack(refs(&messages(count))).blob;
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("{count}/reused"), |b| b.iter(|| SegmentReader::open(black_box(&blob))));
        group.bench_function(format!("{count}/fresh"), |b| b.iter(|| Unpacker::new().open(black_box(&blob))));
        let reader = SegmentReader::open(&blob).expect("a blob that was just packed opens");
        group.bench_function(format!("{count}/frames"), |b| {
            b.iter(|| reader.frames(0, count).map(|frame| frame.payload.len()).sum::<usize>());
        });
    }
    group.finish();
}

criterion_group!(benches, hash, pack, open);
criterion_main!(benches);
