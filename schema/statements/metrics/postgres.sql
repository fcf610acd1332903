-- What the server says of this database and of the tables of the schema, as one JSON document in the shape of
-- GET /api/v1/analytics/postgres-stats. The statistics views show everybody what they may see; activity of others is
-- masked, not refused.
-- Caller: queen-storage metrics/series.rs. Locks: none. Writes: nothing.
WITH tables AS MATERIALIZED (
    SELECT t.schemaname, t.relname, t.relid, t.n_live_tup, t.n_dead_tup, t.n_tup_upd, t.n_tup_hot_upd, t.last_autovacuum,
           t.last_autoanalyze, t.autovacuum_count, i.heap_blks_read, i.heap_blks_hit, i.idx_blks_read, i.idx_blks_hit
    FROM pg_stat_user_tables t
    LEFT JOIN pg_statio_user_tables i ON i.relid = t.relid
    WHERE t.schemaname IN ('queen', 'queen_streams')
)
SELECT jsonb_build_object(
    'timestamp', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'database', (
        SELECT jsonb_build_object('name', d.datname, 'sizeBytes', pg_database_size(d.datid), 'connections', d.numbackends,
                                  'commits', d.xact_commit, 'rollbacks', d.xact_rollback, 'deadlocks', d.deadlocks,
                                  'tempBytes', d.temp_bytes, 'version', current_setting('server_version'))
        FROM pg_stat_database d WHERE d.datname = current_database()
    ),
    'databaseCache', (
        SELECT jsonb_build_object('blocksRead', d.blks_read, 'blocksHit', d.blks_hit,
                                  'hitRatio', round(d.blks_hit * 100.0 / GREATEST(d.blks_hit + d.blks_read, 1), 2))
        FROM pg_stat_database d WHERE d.datname = current_database()
    ),
    'tableCache', COALESCE((
        SELECT jsonb_agg(jsonb_build_object('table', t.relname, 'blocksRead', t.heap_blks_read, 'blocksHit', t.heap_blks_hit,
            'hitRatio', round(t.heap_blks_hit * 100.0 / GREATEST(t.heap_blks_hit + t.heap_blks_read, 1), 2)) ORDER BY t.relname)
        FROM tables t
    ), '[]'),
    'indexCache', COALESCE((
        SELECT jsonb_agg(jsonb_build_object('table', t.relname, 'blocksRead', COALESCE(t.idx_blks_read, 0),
            'blocksHit', COALESCE(t.idx_blks_hit, 0),
            'hitRatio', round(COALESCE(t.idx_blks_hit, 0) * 100.0
                              / GREATEST(COALESCE(t.idx_blks_hit, 0) + COALESCE(t.idx_blks_read, 0), 1), 2)) ORDER BY t.relname)
        FROM tables t
    ), '[]'),
    'cacheSummary', (
        SELECT jsonb_build_object(
            'tableHitRatio', round(COALESCE(sum(t.heap_blks_hit), 0) * 100.0
                                   / GREATEST(COALESCE(sum(t.heap_blks_hit + t.heap_blks_read), 0), 1), 2),
            'indexHitRatio', round(COALESCE(sum(t.idx_blks_hit), 0) * 100.0
                                   / GREATEST(COALESCE(sum(t.idx_blks_hit + t.idx_blks_read), 0), 1), 2))
        FROM tables t
    ),
    'deadTuples', COALESCE((
        SELECT jsonb_agg(jsonb_build_object('table', t.relname, 'liveTuples', t.n_live_tup, 'deadTuples', t.n_dead_tup,
            'deadRatio', round(t.n_dead_tup * 100.0 / GREATEST(t.n_live_tup + t.n_dead_tup, 1), 2)) ORDER BY t.n_dead_tup DESC)
        FROM tables t
    ), '[]'),
    'hotUpdates', COALESCE((
        SELECT jsonb_agg(jsonb_build_object('table', t.relname, 'updates', t.n_tup_upd, 'hotUpdates', t.n_tup_hot_upd,
            'hotRatio', round(t.n_tup_hot_upd * 100.0 / GREATEST(t.n_tup_upd, 1), 2)) ORDER BY t.n_tup_upd DESC)
        FROM tables t
    ), '[]'),
    'activeQueries', COALESCE((
        SELECT jsonb_agg(jsonb_build_object('pid', a.pid, 'state', a.state, 'waitEvent', a.wait_event,
            'durationMs', (extract(epoch FROM clock_timestamp() - a.query_start) * 1000)::int8,
            'application', a.application_name, 'query', left(a.query, 200)) ORDER BY a.query_start)
        FROM pg_stat_activity a
        WHERE a.datname = current_database() AND a.state <> 'idle' AND a.pid <> pg_backend_pid()
    ), '[]'),
    'autovacuumStatus', COALESCE((
        SELECT jsonb_agg(jsonb_build_object('table', t.relname, 'lastAutovacuum', t.last_autovacuum,
            'lastAutoanalyze', t.last_autoanalyze, 'autovacuumCount', t.autovacuum_count) ORDER BY t.relname)
        FROM tables t
    ), '[]'),
    'bufferConfig', jsonb_build_object(
        'sharedBuffers', current_setting('shared_buffers'), 'effectiveCacheSize', current_setting('effective_cache_size'),
        'workMem', current_setting('work_mem'), 'maxConnections', current_setting('max_connections')),
    'bufferUsage', '[]'::jsonb,
    'tableSizes', COALESCE((
        SELECT jsonb_agg(jsonb_build_object('table', t.relname, 'totalBytes', pg_total_relation_size(t.relid),
            'tableBytes', pg_table_size(t.relid), 'indexBytes', pg_indexes_size(t.relid)) ORDER BY pg_total_relation_size(t.relid) DESC)
        FROM tables t
    ), '[]')
)::text AS document
