//! From transaction ids to offsets: inside the leased spans from the hashes at hand, elsewhere by a search.

use std::collections::{BTreeMap, HashMap};

use queen_pg::{Row, Tx};
use queen_segment::TxnHash;
use queen_types::{Offset, Uuid};

use super::{AckRequest, CursorKey, Locked, Resolved, keyed};
use crate::{StorageError, sql};

/// The offset that every hash of a span stands for: its lowest that is not deleted yet, else its lowest.
type Span = HashMap<TxnHash, Offset>;

/// Resolves every request against the row of its cursor.
///
/// On a row with a lease an id counts only inside `(committed, batch_end]`; without one everything above the cursor
/// counts. What lies at or below the cursor is told apart from what is nowhere.
pub(crate) async fn resolve(
    tx: &mut Tx<'_>,
    requests: &[AckRequest],
    keys: &[CursorKey],
    rows: &BTreeMap<CursorKey, Locked>,
    spans: &[Row],
) -> Result<Vec<Resolved>, StorageError> {
    let spans = read_spans(keys, rows, spans)?;
    let mut resolved = vec![Resolved::Nowhere; requests.len()];
    let mut open: Vec<(usize, TxnHash)> = Vec::new();
    for (i, request) in requests.iter().enumerate() {
        let key = (request.partition, request.group.clone());
        if !rows.contains_key(&key) {
            continue;
        }
        let hash = TxnHash::of(request.transaction_id.as_bytes());
        match spans.get(&key).and_then(|span| span.get(&hash)) {
            Some(offset) => resolved[i] = Resolved::Above(*offset),
            None => open.push((i, hash)),
        }
    }
    if !open.is_empty() {
        search(tx, requests, rows, &open, &mut resolved).await?;
    }
    Ok(resolved)
}

fn read_spans(
    keys: &[CursorKey],
    rows: &BTreeMap<CursorKey, Locked>,
    spans: &[Row],
) -> Result<BTreeMap<CursorKey, Span>, StorageError> {
    let mut found: BTreeMap<CursorKey, Span> = BTreeMap::new();
    for row in spans {
        let key = keyed(keys, row)?;
        let Some(Locked { cursor, log_start, .. }) = rows.get(key) else { continue };
        let Some(batch_end) = cursor.batch_end else { continue };
        let span = found.entry(key.clone()).or_default();
        let base: Offset = row.get(1);
        let hashes: &[u8] = row.get(2);
        for (frame, hash) in hashes.as_chunks::<16>().0.iter().enumerate() {
            let offset = base + frame as Offset;
            if offset > cursor.committed && offset <= batch_end {
                // An ack of a delivered message must not go to one of the same id that was deleted before delivery.
                let rank = |at: Offset| (at < *log_start, at);
                span.entry(TxnHash(*hash))
                    .and_modify(|at| *at = std::cmp::min_by_key(*at, offset, |at| rank(*at)))
                    .or_insert(offset);
            }
        }
    }
    Ok(found)
}

async fn search(
    tx: &mut Tx<'_>,
    requests: &[AckRequest],
    rows: &BTreeMap<CursorKey, Locked>,
    open: &[(usize, TxnHash)],
    resolved: &mut [Resolved],
) -> Result<(), StorageError> {
    let partitions: Vec<Uuid> = open.iter().map(|(i, _)| requests[*i].partition.0).collect();
    let groups: Vec<&str> = open.iter().map(|(i, _)| requests[*i].group.as_str()).collect();
    let hashes: Vec<&[u8]> = open.iter().map(|(_, hash)| hash.0.as_slice()).collect();
    for row in tx.query(sql::ACK_SEARCH, &[&partitions, &groups, &hashes]).await? {
        let request: i32 = row.get(0);
        let found = usize::try_from(request).ok().and_then(|i| open.get(i));
        let (item, _) = found.ok_or(StorageError::Misaligned("ack search"))?;
        let key = (requests[*item].partition, requests[*item].group.clone());
        let leased = rows.get(&key).is_some_and(|row| row.cursor.batch_end.is_some());
        let above: Option<Offset> = row.get(1);
        let below: bool = row.get(2);
        resolved[*item] = match above {
            Some(offset) if !leased => Resolved::Above(offset),
            _ if below => Resolved::Below,
            _ => Resolved::Nowhere,
        };
    }
    Ok(())
}
