-- Lets the rest of a transaction take longer than the session's statements may.
-- Caller: queen-storage stats.rs. Locks: none. Writes: nothing.
-- $1 milliseconds text
SELECT set_config('statement_timeout', $1::text, TRUE)
