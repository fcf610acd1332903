//! What goes in comes out, byte for byte and in order.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Owned, arbitrary_frame, refs};
use proptest::prelude::*;
use queen_segment::{Packer, SegmentReader, TxnHash};

#[track_caller]
fn check(packer: &mut Packer, frames: &[Owned]) -> Vec<u8> {
    let packed = packer.pack(refs(frames));
    assert_eq!(packed.count as usize, frames.len());
    let hashes: Vec<u8> = frames.iter().flat_map(|f| TxnHash::of(f.transaction_id.as_bytes()).0).collect();
    assert_eq!(packed.hashes, hashes);

    let reader = SegmentReader::open(&packed.blob).unwrap();
    assert_eq!(reader.len(), frames.len());
    assert_eq!(reader.frames(0, usize::MAX).map(Owned::of).collect::<Vec<_>>(), frames);
    assert_eq!(reader.decoded_len(), frames.iter().map(|f| f.as_ref().decoded_len()).sum::<usize>());
    packed.blob
}

fn codec(blob: &[u8]) -> u8 {
    blob[1]
}

#[test]
fn small_segments_stay_plain_and_large_ones_are_compressed() {
    let mut packer = Packer::default();
    let json = br#"{"order":17,"customer":"a customer with a name","lines":[1,2,3]}"#;
    let few: Vec<Owned> = (0..5).map(|i| Owned::new(i, &format!("txn-{i}"), json)).collect();
    let many: Vec<Owned> = (0..100).map(|i| Owned::new(i, &format!("txn-{i}"), json)).collect();
    assert_eq!(codec(&check(&mut packer, &few)), 0);
    let blob = check(&mut packer, &many);
    assert_eq!(codec(&blob), 1);
    assert!(blob.len() < 100 * json.len() / 2, "{} bytes", blob.len());
}

#[test]
fn compression_that_does_not_pay_is_dropped() {
    // A linear congruential generator: bytes without structure that zstd could use.
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(100_000)
    .collect();
    assert_eq!(codec(&check(&mut Packer::default(), &[Owned::new(1, "t", &noise)])), 0);
}

#[test]
fn nothing_packed_is_nothing_to_store() {
    let packed = Packer::default().pack(std::iter::empty());
    assert_eq!((packed.count, packed.hashes.len(), packed.blob.len()), (0, 0, 0));
}

#[test]
fn the_longest_fields_fit() {
    let mut frame = Owned::new(7, &"t".repeat(65_535), &vec![b'x'; 20 * 1024 * 1024]);
    frame.producer_sub = Some("s".repeat(65_536));
    frame.trace_id = Some(queen_types::Uuid::from_u128(9));
    frame.encrypted = true;
    check(&mut Packer::default(), &[frame, Owned::new(8, "", b"")]);
}

#[test]
fn ten_thousand_frames_fit() {
    let frames: Vec<Owned> = (0..10_000).map(|i| Owned::new(i, &i.to_string(), b"1")).collect();
    check(&mut Packer::default(), &frames);
}

#[test]
fn every_level_is_accepted() {
    let frames: Vec<Owned> = (0..50).map(|i| Owned::new(i, "t", &[b'a'; 100])).collect();
    for level in [i32::MIN, -7, 0, 1, 3, 19, 22, i32::MAX] {
        check(&mut Packer::new(level), &frames);
    }
}

#[test]
fn a_slice_of_frames_is_cut_where_asked() {
    let frames: Vec<Owned> = (0..10).map(|i| Owned::new(i, &i.to_string(), b"{}")).collect();
    let packed = Packer::default().pack(refs(&frames));
    let reader = SegmentReader::open(&packed.blob).unwrap();
    let cut = |from, count| reader.frames(from, count).map(Owned::of).collect::<Vec<_>>();
    assert_eq!(cut(3, 4), frames[3..7]);
    assert_eq!(cut(8, 100), frames[8..]);
    assert_eq!(cut(10, 1), []);
    assert_eq!(cut(usize::MAX, usize::MAX), []);
    assert_eq!(reader.frames(3, 4).len(), 4);
    assert!(reader.frame(10).is_none() && reader.frame(usize::MAX).is_none());
}

#[test]
fn payloads_outlive_the_reader_without_a_copy() {
    let frames: Vec<Owned> = (0..50).map(|i| Owned::new(i, "t", &[b'a' + (i % 26) as u8; 100])).collect();
    let packed = Packer::default().pack(refs(&frames));
    let reader = SegmentReader::open(&packed.blob).unwrap();
    let twin = reader.clone();
    let payload = reader.frame(25).unwrap().payload;
    assert_eq!(payload.as_ptr(), twin.frame(25).unwrap().payload.as_ptr());
    drop((reader, twin));
    assert_eq!(payload, frames[25].payload);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_frames_come_back(runs in prop::collection::vec(prop::collection::vec(arbitrary_frame(), 1..20), 1..4)) {
        // One packer for several segments: nothing of the one before may leak into the next.
        let mut packer = Packer::default();
        for frames in &runs {
            check(&mut packer, frames);
        }
    }
}
