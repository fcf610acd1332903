//! Blobs that an earlier release wrote must stay readable. The files are never rewritten: a new format gets new
//! files beside them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Owned, refs};
use queen_segment::{Packer, SegmentReader};
use queen_types::Uuid;

const V1_PLAIN: &[u8] = include_bytes!("fixtures/v1-plain.seg");
const V1_ZSTD: &[u8] = include_bytes!("fixtures/v1-zstd.seg");

fn plain() -> Vec<Owned> {
    let mut frames = vec![
        Owned::new(0x0190_0000_0000_7000_8000_0000_0000_0001, "txn-0001", br#"{"b":1,"a":9007199254740993}"#),
        Owned::new(0x0190_0000_0000_7000_8000_0000_0000_0002, "", b""),
        Owned::new(0x0190_0000_0000_7000_8000_0000_0000_0003, "täglich/50%", r#"["\u00e4","ä"]"#.as_bytes()),
    ];
    frames[1].trace_id = Some(Uuid::from_u128(0x1234_5678_9abc_def0));
    frames[2].producer_sub = Some("service-α".into());
    frames[2].encrypted = true;
    frames
}

fn zstd() -> Vec<Owned> {
    (0..200)
        .map(|i| {
            Owned::new(i, &format!("order-{i:04}"), format!(r#"{{"order":{i},"state":"new"}}"#).as_bytes())
        })
        .collect()
}

#[track_caller]
fn check(blob: &[u8], codec: u8, frames: &[Owned]) {
    assert_eq!(blob[..2], [1, codec]);
    let reader = SegmentReader::open(blob).unwrap();
    assert_eq!(reader.frames(0, usize::MAX).map(Owned::of).collect::<Vec<_>>(), frames);
}

#[test]
fn version_1_is_read() {
    check(V1_PLAIN, 0, &plain());
    check(V1_ZSTD, 1, &zstd());
}

/// The writer's bytes are pinned too, as far as they do not depend on the zstd library.
#[test]
fn version_1_is_written() {
    assert_eq!(Packer::default().pack(refs(&plain())).blob, V1_PLAIN);
    assert_eq!(Packer::default().pack(refs(&zstd())).blob[..18], V1_ZSTD[..18]);
}
