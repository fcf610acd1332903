//! The two statements that append, their parameters and their answers.

use queen_dedup::Coverage;
use queen_pg::{PgTimestamp, Row, Step, ToSql, step};
use queen_segment::PackedSegment;
use queen_types::{Offset, PartitionId, Uuid};

use crate::{StorageError, sql};

/// Whether the frames on their way are encryption envelopes; nothing encrypts yet.
const ENCRYPTED: bool = false;

/// A packed segment on its way into a partition.
pub(crate) struct Outgoing {
    pub(crate) partition: PartitionId,
    pub(crate) segment: PackedSegment,
    /// What is known of its hashes.
    pub(crate) known: Coverage,
}

/// Which statement appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// `push/insert_clear.sql`: everything is known to be new; nothing can be searched.
    Clear,
    /// `push/insert.sql`: what is not known is searched.
    Search,
}

/// What an insert statement says of one segment.
#[derive(Debug)]
pub(crate) enum Written {
    /// Stored from this offset on.
    At(Offset),
    /// Not stored: these frames of the segment repeat stored ones at these offsets. Empty when another segment of the
    /// partition was the reason.
    Repeats(Vec<(usize, Offset)>),
    /// Not stored: the queue takes only encrypted payloads.
    Sealed,
    /// Not stored: not all that had to be known was; only searching tells.
    Unclear,
    /// The partition does not exist.
    Gone,
}

/// What an insert statement says beside it, for the memory of hashes.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The queue's deduplication window in seconds.
    pub(crate) window: u32,
    /// The hashes above an offset up to the segments of this push.
    pub(crate) before: Option<(Offset, Vec<u8>)>,
    /// Rows below the known stretch are inside the window.
    pub(crate) short: bool,
    /// The partition has no note of its oldest segment.
    pub(crate) opened: bool,
}

/// The answers of an insert statement, one for each segment.
pub(crate) struct Answers {
    pub(crate) written: Vec<Written>,
    pub(crate) learned: Vec<Learned>,
    /// The server that gave them; `None` when there was no row.
    pub(crate) server: Option<PgTimestamp>,
}

/// Outgoing segments as the columns of `push/lock.sql` and of the insert statements.
pub(crate) struct InsertParams<'a> {
    lock: Vec<Uuid>,
    partitions: Vec<Uuid>,
    ahead: Vec<i64>,
    frames: Vec<i32>,
    hashes: Vec<&'a [u8]>,
    blobs: Vec<&'a [u8]>,
    vouched: Vec<Offset>,
    covered_from: Vec<Offset>,
    maybe_above: Vec<Offset>,
    maybe_upto: Vec<Offset>,
    server: PgTimestamp,
}

impl<'a> InsertParams<'a> {
    /// Of segments whose partitions stand together. What is known of them is known from `server`.
    pub(crate) fn of(outgoing: &'a [Outgoing], server: PgTimestamp) -> Self {
        let mut lock: Vec<Uuid> = outgoing.iter().map(|o| o.partition.0).collect();
        lock.sort_unstable();
        lock.dedup();
        let mut ahead = Vec::with_capacity(outgoing.len());
        let mut last: Option<(PartitionId, i64)> = None;
        for out in outgoing {
            let before = last.filter(|(partition, _)| *partition == out.partition).map_or(0, |(_, n)| n);
            ahead.push(before);
            last = Some((out.partition, before + i64::from(out.segment.count)));
        }
        let maybe = |o: &Outgoing| o.known.maybe.unwrap_or((-1, -1));
        InsertParams {
            lock,
            partitions: outgoing.iter().map(|o| o.partition.0).collect(),
            ahead,
            frames: outgoing.iter().map(|o| i32::try_from(o.segment.count).unwrap_or(i32::MAX)).collect(),
            hashes: outgoing.iter().map(|o| o.segment.hashes.as_slice()).collect(),
            blobs: outgoing.iter().map(|o| o.segment.blob.as_slice()).collect(),
            vouched: outgoing.iter().map(|o| o.known.upto).collect(),
            covered_from: outgoing.iter().map(|o| o.known.from).collect(),
            maybe_above: outgoing.iter().map(|o| maybe(o).0).collect(),
            maybe_upto: outgoing.iter().map(|o| maybe(o).1).collect(),
            server,
        }
    }

    /// The parameters of one of the statements, in its order.
    pub(crate) fn values(&'a self, via: Via) -> Vec<&'a (dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &self.partitions,
            &self.ahead,
            &self.frames,
            &self.hashes,
            &self.blobs,
            &self.vouched,
            &self.covered_from,
        ];
        if via == Via::Search {
            values.extend([&self.maybe_above as &(dyn ToSql + Sync), &self.maybe_upto]);
        }
        values.extend([&ENCRYPTED as &(dyn ToSql + Sync), &self.server]);
        values
    }

    /// The locking parameter, alone.
    pub(crate) fn locks(&'a self) -> [&'a (dyn ToSql + Sync); 1] {
        [&self.lock]
    }
}

/// Lock and insert, to be sent together.
pub(crate) fn steps<'a>(
    via: Via,
    locks: &'a [&'a (dyn ToSql + Sync)],
    values: &'a [&'a (dyn ToSql + Sync)],
) -> [Step<'a>; 2] {
    let insert = match via {
        Via::Clear => sql::PUSH_INSERT_CLEAR,
        Via::Search => sql::PUSH_INSERT,
    };
    [step(sql::PUSH_LOCK, locks), step(insert, values)]
}

/// Reads the rows of one of the statements.
pub(crate) fn read_answers(via: Via, rows: &[Row], segments: usize) -> Result<Answers, StorageError> {
    let mut answers = Answers {
        written: (0..segments).map(|_| Written::Gone).collect(),
        learned: (0..segments).map(|_| Learned::default()).collect(),
        server: None,
    };
    for row in rows {
        let index: i32 = row.get("segment");
        let at = usize::try_from(index).ok().filter(|at| *at < segments);
        let at = at.ok_or(StorageError::Misaligned("push"))?;
        let base: Option<Offset> = row.get("base_offset");
        let window: i32 = row.get("dedup_window");
        answers.server = Some(row.get("server"));
        answers.learned[at].window = u32::try_from(window).unwrap_or(0);
        answers.learned[at].opened = base.is_some() && row.get("opened");
        answers.written[at] = match (base, via) {
            (Some(base), _) => Written::At(base),
            (None, Via::Clear) => Written::Unclear,
            (None, Via::Search) if row.get("sealed") => Written::Sealed,
            (None, Via::Search) => {
                let frames: Vec<i32> = row.get::<_, Option<_>>("frames").unwrap_or_default();
                let originals: Vec<Offset> = row.get::<_, Option<_>>("originals").unwrap_or_default();
                let frames = frames.into_iter().map(|f| usize::try_from(f).unwrap_or(usize::MAX));
                Written::Repeats(frames.zip(originals).collect())
            }
        };
        if via == Via::Search {
            let from: Option<Offset> = row.get("before_from");
            answers.learned[at].before = from.zip(row.get("before"));
            answers.learned[at].short = row.get("short");
        }
    }
    Ok(answers)
}

impl Answers {
    /// Partitions that were appended to and have no note of their oldest segment.
    pub(crate) fn opened<'a>(&'a self, outgoing: &'a [Outgoing]) -> impl Iterator<Item = PartitionId> + 'a {
        outgoing.iter().zip(&self.learned).filter(|(_, learned)| learned.opened).map(|(out, _)| out.partition)
    }
}
