-- Announcements that cursors of a group moved without a push or an ack: by a seek, or because the group was deleted.
-- Written in the transaction that moves them; brokers read them to forget what they know of the group. partition_name
-- NULL is the whole queue. Rows live for an hour.

--@ table queen.hotlist_repairs
CREATE TABLE IF NOT EXISTS queen.hotlist_repairs (
    tenant_id      UUID NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
    queue_name     TEXT NOT NULL,
    consumer_group TEXT NOT NULL,
    partition_name TEXT,
    repair_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    reason         TEXT NOT NULL,
    PRIMARY KEY (tenant_id, queue_name, consumer_group)
);

--@ index queen.idx_hotlist_repairs_at
CREATE INDEX IF NOT EXISTS idx_hotlist_repairs_at ON queen.hotlist_repairs (repair_at);
