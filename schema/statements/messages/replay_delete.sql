-- Deletes the dead letter that was replayed.
-- Caller: queen-storage messages/replay.rs, in the transaction that holds it and pushed its message.
-- Locks: none beyond those held. Writes: log_dlq.
-- $1 record uuid
DELETE FROM queen.log_dlq WHERE id = $1::uuid
