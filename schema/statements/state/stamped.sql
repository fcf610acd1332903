-- Whether the schema is complete: its version row is written last.
-- Caller: queen-storage Storage::schema_stamped.
-- Locks: none. Writes: nothing.
SELECT EXISTS (SELECT 1 FROM queen.system_state s WHERE s.key = 'schema_version') AS stamped
