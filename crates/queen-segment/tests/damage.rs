//! Damaged, truncated, forged and random blobs: an error or the right frames, never a panic, never other frames.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Owned, arbitrary_frame, decoded, raw_frame, refs, seal};
use proptest::prelude::*;
use queen_segment::{Packer, SegmentError, SegmentReader, Unpacker, format};

/// A damaged blob is an error, or it still decodes to exactly what was packed (a bit that does not matter).
#[track_caller]
fn check(blob: &[u8], frames: &[Owned]) {
    if let Ok(reader) = SegmentReader::open(blob) {
        assert_eq!(reader.frames(0, usize::MAX).map(Owned::of).collect::<Vec<_>>(), frames);
        assert_eq!(reader.len(), frames.len());
    }
}

fn sample(count: u128) -> (Vec<Owned>, Vec<u8>) {
    let frames: Vec<Owned> =
        (0..count).map(|i| Owned::new(i, &format!("txn-{i}"), format!("{{\"n\":{i}}}").as_bytes())).collect();
    let blob = Packer::default().pack(refs(&frames)).blob;
    (frames, blob)
}

#[test]
fn every_single_bit_flip_is_noticed_in_plain_and_compressed_blobs() {
    for count in [1, 3, 60] {
        let (frames, blob) = sample(count);
        for bit in 0..blob.len() * 8 {
            let mut damaged = blob.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if blob[1] == 0 {
                assert!(SegmentReader::open(&damaged).is_err(), "bit {bit} of {count} frames");
            }
            check(&damaged, &frames);
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    for count in [1, 3, 60] {
        let (_, blob) = sample(count);
        for len in 0..blob.len() {
            assert!(SegmentReader::open(&blob[..len]).is_err(), "{len} bytes of {}", blob.len());
        }
    }
}

#[test]
fn bytes_after_the_end_are_an_error() {
    for count in [1, 60] {
        let (_, mut blob) = sample(count);
        blob.push(0);
        assert!(SegmentReader::open(&blob).is_err());
    }
}

#[track_caller]
fn refused(blob: &[u8], expected: &str) {
    let error = SegmentReader::open(blob).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn each_error_says_what_is_wrong_and_what_is_allowed() {
    let (_, good) = sample(2);
    let with = |at: usize, bytes: &[u8]| {
        let mut blob = good.clone();
        blob[at..at + bytes.len()].copy_from_slice(bytes);
        blob
    };
    refused(&[], "segment is truncated: 18 bytes needed, 0 left");
    refused(&good[..9], "segment is truncated: 18 bytes needed, 9 left");
    refused(&with(0, &[2]), "segment has format version 2, this release reads version 1");
    refused(&with(1, &[9]), "segment has codec 9, known are 0 (none) and 1 (zstd)");
    let mut dictionary = with(1, &[2]);
    dictionary[18..22].copy_from_slice(&77u32.to_le_bytes());
    refused(
        &dictionary,
        "segment needs zstd dictionary 77, this release reads segments without dictionaries",
    );
    refused(&with(2, &[0; 4]), "segment is malformed: it declares no frames, at least 1 is needed");
    refused(
        &with(2, &[0xff; 4]),
        "segment is malformed: it declares more frames than its decoded bytes can hold",
    );
    refused(
        &with(6, &[0xff; 4]),
        &format!("segment is truncated: 4294967295 bytes needed, {} left", good.len() - 18),
    );
    refused(
        &[&[1, 1, 1, 0, 0, 0][..], &[0xff; 4], &[0; 20]].concat(),
        "compressed segment declares 4294967295 decoded bytes, at most 268435456 are allowed",
    );
    assert!(matches!(
        SegmentReader::open(&with(good.len() - 10, &[0xaa])),
        Err(SegmentError::Checksum { .. })
    ));
    assert!(matches!(SegmentReader::open(&with(1, &[1])), Err(SegmentError::Codec(_))));
}

#[test]
fn an_unpacker_still_works_after_a_broken_blob() {
    let (frames, blob) = sample(60);
    let mut broken = blob.clone();
    let middle = broken.len() / 2;
    broken.truncate(middle);
    let mut unpacker = Unpacker::new();
    for _ in 0..3 {
        assert!(unpacker.open(&broken).is_err());
        let reader = unpacker.open(&blob).unwrap();
        assert_eq!(reader.frames(0, 60).map(Owned::of).collect::<Vec<_>>(), frames);
    }
}

#[test]
fn a_bomb_is_stopped_at_its_declared_size() {
    let bomb = zstd::bulk::compress(&vec![0u8; 64 * 1024 * 1024], 3).unwrap();
    let mut blob = vec![1, 1];
    blob.extend_from_slice(&1u32.to_le_bytes());
    blob.extend_from_slice(&4_096u32.to_le_bytes());
    blob.extend_from_slice(&0u64.to_le_bytes());
    blob.extend_from_slice(&bomb);
    assert!(matches!(SegmentReader::open(&blob), Err(SegmentError::Codec(_))));
}

#[test]
fn extensions_are_skipped() {
    let mut known_to_nobody = vec![200, 5, 1, 2, 3, 4, 5, 7, 0];
    known_to_nobody.extend_from_slice(&[201, 0x80, 0x01]);
    known_to_nobody.extend_from_slice(&[9; 128]);
    let frames = [
        raw_frame(0, 1, "a", b"{\"x\":1}", &known_to_nobody),
        raw_frame(4, 2, "b", b"", &[1, 0]),
        raw_frame(0, 3, "c", b"[]", &[]),
    ];
    let reader = SegmentReader::open(&seal(3, &decoded(&frames))).unwrap();
    let mut expected =
        vec![Owned::new(1, "a", b"{\"x\":1}"), Owned::new(2, "b", b""), Owned::new(3, "c", b"[]")];
    expected[1].encrypted = true;
    assert_eq!(reader.frames(0, 3).map(Owned::of).collect::<Vec<_>>(), expected);
}

#[test]
fn forged_blobs_with_a_right_checksum_are_refused() {
    let good = raw_frame(0, 1, "a", b"{}", &[]);
    let malformed = |count: u32, decoded: &[u8]| SegmentReader::open(&seal(count, decoded)).unwrap_err();

    // Frames: an unknown flag, an extension cut short, a text that is not UTF-8, a length without an end.
    for frame in [
        raw_frame(8, 1, "a", b"{}", &[]),
        raw_frame(0, 1, "a", b"{}", &[1]),
        raw_frame(0, 1, "a", b"{}", &[1, 3, 0, 0]),
        [&[2u8][..], &[0; 16], &[1, 0xff, 0, 0]].concat(),
        [&[0u8][..], &[0; 16], &[0xff; 9]].concat(),
        [&[0u8][..], &[0; 16], &[0x80, 0x80, 0x80, 0x80, 0x70, 0]].concat(),
        [&[0u8][..], &[0; 16], &[200, 1, b'a', 0]].concat(),
    ] {
        malformed(1, &decoded(std::slice::from_ref(&frame)));
        malformed(2, &decoded(&[good.clone(), frame]));
    }

    // Offset tables: not from 0, not ascending, past the end.
    let two = [good.clone(), good.clone()].concat();
    for starts in [[1, good.len() as u32], [0, 0], [good.len() as u32, 0], [0, u32::MAX], [0, 43]] {
        let table: Vec<u8> = starts.iter().flat_map(|start: &u32| start.to_le_bytes()).collect();
        malformed(2, &[&two[..], &table].concat());
    }

    // A count that is not the packed one.
    let three = decoded(&[good.clone(), good.clone(), good]);
    SegmentReader::open(&seal(3, &three)).unwrap();
    for count in [1, 2, 4, 5] {
        malformed(count, &three);
    }

    // The same when the bytes before the table look like more of it.
    let zeros = decoded(&[raw_frame(0, 1, "a", &[0; 60], &[])]);
    SegmentReader::open(&seal(1, &zeros)).unwrap();
    for count in [2, 3, 4] {
        malformed(count, &zeros);
    }
}

#[test]
fn the_cap_leaves_room_for_an_encrypted_body() {
    assert_eq!(format::DECODED_BYTES_MAX, 256 << 20);
    assert_eq!(format::VERSION, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn flips_and_cuts_never_yield_other_frames(
        frames in prop::collection::vec(arbitrary_frame(), 1..12),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut blob = Packer::default().pack(refs(&frames)).blob;
        for (at, mask) in flips {
            let at = at.index(blob.len());
            blob[at] ^= mask;
        }
        if let Some(cut) = cut {
            blob.truncate(cut.index(blob.len()));
        }
        check(&blob, &frames);
    }

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(SegmentReader::open(&bytes).is_err());
    }

    /// Past the checksum: bytes that nobody packed must be walked without a panic, whatever they say.
    #[test]
    fn sealed_random_bytes_never_panic(
        count in 0u32..6,
        codec in 0u8..3,
        mut bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1u8), Just(0x80u8), any::<u8>()], 0..200),
        starts in prop::collection::vec(0u32..200, 0..6),
    ) {
        bytes.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
        let mut blob = seal(count, &bytes);
        blob[1] = codec;
        if let Ok(reader) = SegmentReader::open(&blob) {
            prop_assert_eq!(reader.frames(0, usize::MAX).count(), reader.len());
        }
    }

    /// The same with frames that are almost right.
    #[test]
    fn sealed_damaged_frames_never_panic(
        frames in prop::collection::vec(arbitrary_frame(), 1..6),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
    ) {
        let packed = Packer::default().pack(refs(&frames));
        let decoded = match packed.blob[1] {
            0 => packed.blob[18..].to_vec(),
            _ => zstd::bulk::decompress(&packed.blob[18..], 1 << 20).unwrap(),
        };
        let mut forged = decoded.clone();
        for (at, mask) in flips {
            let at = at.index(forged.len());
            forged[at] ^= mask;
        }
        if let Ok(reader) = SegmentReader::open(&seal(packed.count, &forged)) {
            prop_assert_eq!(reader.frames(0, usize::MAX).count(), reader.len());
        }
    }
}
