//! Reading segments back by offset.

use queen_pg::{PgTimestamp, Row};
use queen_segment::SegmentReader;
use queen_types::{MessageId, Offset, PartitionId, Timestamp, Uuid};

use crate::{Storage, StorageError, sql};

/// A segment that covers an offset somebody asked for.
pub(crate) struct Covering {
    /// Position of the request.
    pub(crate) request: usize,
    pub(crate) base_offset: Offset,
    pub(crate) created_at: Timestamp,
    pub(crate) blob: Vec<u8>,
}

impl Covering {
    pub(crate) fn read(row: &Row) -> Covering {
        let request: i32 = row.get(0);
        Covering {
            request: usize::try_from(request).unwrap_or(usize::MAX),
            base_offset: row.get(1),
            created_at: row.get::<_, PgTimestamp>(2).0,
            blob: row.get(3),
        }
    }
}

impl Storage {
    /// Ids of stored messages, in the order asked for; [`MessageId::ZERO`] for one that can no longer be read.
    pub(crate) async fn message_ids(
        &self,
        at: &[(PartitionId, Offset)],
    ) -> Result<Vec<MessageId>, StorageError> {
        let mut ids = vec![MessageId::ZERO; at.len()];
        if at.is_empty() {
            return Ok(ids);
        }
        let partitions: Vec<Uuid> = at.iter().map(|(partition, _)| partition.0).collect();
        let offsets: Vec<Offset> = at.iter().map(|(_, offset)| *offset).collect();
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::SEGMENT_COVER, &[&partitions, &offsets]).await?;
        for covering in rows.iter().map(Covering::read) {
            let Some(offset) = offsets.get(covering.request) else { continue };
            let Ok(reader) = SegmentReader::open(&covering.blob) else { continue };
            let frame = usize::try_from(offset - covering.base_offset).ok().and_then(|i| reader.frame(i));
            if let Some(frame) = frame {
                ids[covering.request] = frame.message_id;
            }
        }
        Ok(ids)
    }
}
