use std::ops::Range;

/// How large one segment may grow. A frame that alone exceeds `max_bytes` still gets a segment, its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Frames in one segment, at least 1 (0 counts as 1).
    pub max_frames: usize,
    /// Decoded bytes in one segment.
    pub max_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_frames: 10_000, max_bytes: 4 * 1024 * 1024 }
    }
}

/// Cuts a run of frames into consecutive segments.
///
/// `sizes` holds the decoded size of each frame ([`FrameRef::decoded_len`](crate::FrameRef::decoded_len)), in
/// bytes. The ranges are indexes into that run: they are not empty, follow each other without a gap, and cover it.
pub fn split(limits: &Limits, sizes: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut ranges = Vec::with_capacity(1);
    let mut start = 0;
    let mut end = 0;
    let mut bytes = 0usize;
    for size in sizes {
        let grown = bytes.saturating_add(size);
        let full = end - start >= limits.max_frames || grown > limits.max_bytes;
        if full && end > start {
            ranges.push(start..end);
            start = end;
            bytes = size;
        } else {
            bytes = grown;
        }
        end += 1;
    }
    if end > start {
        ranges.push(start..end);
    }
    ranges
}

#[cfg(test)]
// A run of one segment is a list with one range.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(max_frames: usize, max_bytes: usize, sizes: &[usize], expected: &[Range<usize>]) {
        assert_eq!(split(&Limits { max_frames, max_bytes }, sizes.iter().copied()), expected);
    }

    #[test]
    fn small_tables() {
        check(10, 100, &[], &[]);
        check(10, 100, &[5], &[0..1]);
        check(10, 100, &[40, 60, 1], &[0..2, 2..3]);
        check(2, 100, &[1, 1, 1, 1, 1], &[0..2, 2..4, 4..5]);
        check(0, 0, &[1, 1], &[0..1, 1..2]);
        check(10, 100, &[10, usize::MAX, 10], &[0..1, 1..2, 2..3]);
    }

    #[test]
    fn a_frame_beyond_the_bound_is_alone() {
        check(10, 100, &[10, 101, 10, 20], &[0..1, 1..2, 2..4]);
        check(10, 100, &[101], &[0..1]);
    }

    proptest! {
        #[test]
        fn order_is_kept_and_bounds_hold(
            max_frames in 1usize..20,
            max_bytes in 1usize..2_000,
            sizes in prop::collection::vec(0usize..2_500, 0..200),
        ) {
            let limits = Limits { max_frames, max_bytes };
            let ranges = split(&limits, sizes.iter().copied());
            let covered: Vec<usize> = ranges.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..sizes.len()).collect::<Vec<_>>());
            for range in &ranges {
                prop_assert!(!range.is_empty() && range.len() <= max_frames);
                prop_assert!(range.len() == 1 || sizes[range.clone()].iter().sum::<usize>() <= max_bytes);
            }
            // No segment could have taken the frame that begins the next one.
            for pair in ranges.windows(2) {
                let grown = sizes[pair[0].start..=pair[1].start].iter().sum::<usize>();
                prop_assert!(pair[0].len() == max_frames || grown > max_bytes);
            }
        }
    }
}
