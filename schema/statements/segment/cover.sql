-- The segments that hold given offsets.
-- Caller: queen-storage (originals of duplicates, payloads of dead letters). Locks: none. Writes: nothing.
-- $1 partition uuid[], $2 offset int8[]
SELECT (i.ord - 1)::int4 AS request, s.base_offset, s.created_at, s.blob
FROM unnest($1::uuid[], $2::int8[]) WITH ORDINALITY AS i (partition_id, at, ord)
CROSS JOIN LATERAL (
    SELECT s.base_offset, s.end_offset, s.created_at, s.blob
    FROM queen.log_segments s
    WHERE s.partition_id = i.partition_id AND s.base_offset <= i.at
    ORDER BY s.base_offset DESC
    LIMIT 1
) s
WHERE s.end_offset >= i.at
