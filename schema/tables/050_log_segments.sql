-- The messages: one row per segment, a contiguous run of offsets of one partition. hashes holds 16 bytes a message in
-- frame order (xxh3_128 of the transaction id): it serves deduplication and the resolution of acks as long as the
-- segment lives; what must outlive it moves to log_txns when the segment is deleted.
-- The primary key is the pop path; any other index would be write cost alone. Both byte columns are incompressible:
-- EXTERNAL spares pglz. No foreign key: a push holds its partition's row, whoever deletes a partition deletes its
-- segments (docs/decisions/011).

--@ table queen.log_segments
CREATE TABLE IF NOT EXISTS queen.log_segments (
    partition_id UUID NOT NULL,
    base_offset  BIGINT NOT NULL,
    end_offset   BIGINT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    hashes       BYTEA NOT NULL,
    blob         BYTEA NOT NULL,
    PRIMARY KEY (partition_id, base_offset),
    CONSTRAINT log_segments_range CHECK (end_offset >= base_offset)
);

--@ storage queen.log_segments.hashes external
ALTER TABLE queen.log_segments ALTER COLUMN hashes SET STORAGE EXTERNAL;

--@ storage queen.log_segments.blob external
ALTER TABLE queen.log_segments ALTER COLUMN blob SET STORAGE EXTERNAL;

--@ reloptions queen.log_segments autovacuum_vacuum_scale_factor=0.1 autovacuum_vacuum_insert_scale_factor=0.3 autovacuum_vacuum_cost_limit=4000 autovacuum_vacuum_cost_delay=0 toast.autovacuum_vacuum_scale_factor=0.1 toast.autovacuum_vacuum_insert_scale_factor=0.3 toast.autovacuum_vacuum_cost_limit=4000 toast.autovacuum_vacuum_cost_delay=0
ALTER TABLE queen.log_segments SET (
    autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_insert_scale_factor = 0.3,
    autovacuum_vacuum_cost_limit = 4000, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0.1, toast.autovacuum_vacuum_insert_scale_factor = 0.3,
    toast.autovacuum_vacuum_cost_limit = 4000, toast.autovacuum_vacuum_cost_delay = 0
);
