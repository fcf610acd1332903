-- Looks at partitions of the work list: those whose oldest segment may go come back as deletable. The others move back
-- on the list: until the next of their queue's windows ends, or, while a cursor or a lease holds the segment, for as
-- long as it has been held already, between one period and ten minutes. Partitions that somebody has locked stay as
-- they are and do not come back.
-- Caller: queen-storage maintenance/retention.rs. Locks: log_partitions ascending by id, SKIP LOCKED.
-- Writes: log_partitions.
-- $1 partition uuid[] ascending, $2 time of the cycle timestamptz, $3 period ms int8
WITH seen AS MATERIALIZED (
    SELECT p.id, p.address, s.created_at AS oldest, r.age, r.evict, LEAST(r.age, r.done, r.evict) AS shortest,
    --@ part retention_kind
           IS NOT NULL AS deletable
    FROM unnest($1::uuid[]) WITH ORDINALITY AS i (id, ord)
    CROSS JOIN LATERAL (
        SELECT p.id, p.ctid AS address, p.queue_id, p.name, p.log_start
        FROM queen.log_partitions p
        WHERE p.id = i.id
        FOR NO KEY UPDATE SKIP LOCKED
    ) p
    --@ part retention_rules
    CROSS JOIN LATERAL (SELECT r.oldest_at AS created_at, r.oldest_end AS end_offset) s
), deferred AS (
    UPDATE queen.log_partitions p
    SET oldest_live_at = s.oldest,
        retention_from = CASE WHEN s.oldest IS NOT NULL THEN GREATEST(s.oldest, LEAST(
            CASE WHEN s.oldest < $2::timestamptz - make_interval(secs => s.shortest)
                 THEN $2::timestamptz - make_interval(secs => s.shortest) + LEAST(
                     GREATEST($2::timestamptz - make_interval(secs => s.shortest) - s.oldest, make_interval(secs => $3::int8 / 1000.0)),
                     interval '10 minutes'
                 ) END,
            CASE WHEN s.oldest >= $2::timestamptz - make_interval(secs => s.age)
                 THEN s.oldest + make_interval(secs => s.age - s.shortest) END,
            CASE WHEN s.oldest >= $2::timestamptz - make_interval(secs => s.evict)
                 THEN s.oldest + make_interval(secs => s.evict - s.shortest) END
        )) END
    FROM seen s
    WHERE p.ctid = s.address AND NOT s.deletable
)
SELECT s.id, s.deletable, s.oldest IS NOT NULL AND NOT s.deletable
       AND s.oldest < $2::timestamptz - make_interval(secs => s.shortest) AS held
FROM seen s
