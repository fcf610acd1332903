-- Sets a broker-wide flag, one revision above whatever is there.
-- Caller: queen-storage Storage::set_flag.
-- Locks: the row of the flag. Writes: it.
-- $1 key text, $2 enabled boolean
INSERT INTO queen.system_state AS s (key, value)
VALUES ($1::text, jsonb_build_object('enabled', $2::boolean, 'rev', 1))
ON CONFLICT (key) DO UPDATE SET
    value = jsonb_build_object(
        'enabled', $2::boolean,
        'rev', CASE WHEN jsonb_typeof(s.value -> 'rev') = 'number' THEN trunc((s.value ->> 'rev')::numeric)::bigint ELSE 0 END + 1
    ),
    updated_at = now()
RETURNING (s.value ->> 'rev')::bigint AS rev
