-- Reads the broker-wide flags that have a row, with their revisions; a value that is none of ours counts as off.
-- Caller: queen-storage Storage::flags.
-- Locks: none. Writes: nothing.
-- $1 keys text[]
SELECT
    s.key,
    COALESCE(jsonb_typeof(s.value -> 'enabled') = 'boolean' AND (s.value ->> 'enabled')::boolean, false) AS enabled,
    CASE WHEN jsonb_typeof(s.value -> 'rev') = 'number' THEN trunc((s.value ->> 'rev')::numeric)::bigint ELSE 0 END AS rev
FROM queen.system_state s
WHERE s.key = ANY ($1::text[])
