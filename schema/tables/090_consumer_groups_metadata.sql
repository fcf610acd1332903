-- Subscriptions: where a group began on a queue. queue_id NULL is a discovery row (namespace, task). The uniqueness
-- is over an expression, since NULLS NOT DISTINCT exists only from PostgreSQL 15.

--@ table queen.consumer_groups_metadata
CREATE TABLE IF NOT EXISTS queen.consumer_groups_metadata (
    id                     UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id              UUID NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
    consumer_group         TEXT NOT NULL,
    queue_id               UUID REFERENCES queen.queues (id) ON DELETE CASCADE,
    partition_name         TEXT NOT NULL DEFAULT '',
    namespace              TEXT NOT NULL DEFAULT '',
    task                   TEXT NOT NULL DEFAULT '',
    subscription_mode      TEXT NOT NULL,
    subscription_timestamp TIMESTAMPTZ NOT NULL,
    conflation             BOOLEAN NOT NULL DEFAULT FALSE,
    created_at             TIMESTAMPTZ NOT NULL DEFAULT now()
);

--@ index queen.cgm_identity_uk
CREATE UNIQUE INDEX IF NOT EXISTS cgm_identity_uk ON queen.consumer_groups_metadata (
    tenant_id, consumer_group, COALESCE(queue_id, '00000000-0000-0000-0000-000000000000'::uuid),
    partition_name, namespace, task
);

--@ index queen.idx_cgm_queue
CREATE INDEX IF NOT EXISTS idx_cgm_queue ON queen.consumer_groups_metadata (queue_id);
