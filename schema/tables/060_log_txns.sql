-- Hashes that outlive their segment, for the rest of the deduplication and ack window. No foreign key: purging must
-- not pay its triggers; whoever deletes a partition deletes these rows itself.

--@ table queen.log_txns
CREATE TABLE IF NOT EXISTS queen.log_txns (
    partition_id UUID NOT NULL,
    base_offset  BIGINT NOT NULL,
    end_offset   BIGINT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    hashes       BYTEA NOT NULL,
    PRIMARY KEY (partition_id, base_offset)
);

--@ storage queen.log_txns.hashes external
ALTER TABLE queen.log_txns ALTER COLUMN hashes SET STORAGE EXTERNAL;

--@ reloptions queen.log_txns autovacuum_vacuum_scale_factor=0.1 autovacuum_vacuum_insert_scale_factor=0.3 autovacuum_vacuum_cost_delay=0
ALTER TABLE queen.log_txns SET (
    autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_insert_scale_factor = 0.3,
    autovacuum_vacuum_cost_delay = 0
);
