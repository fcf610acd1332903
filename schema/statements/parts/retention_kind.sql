-- The rule by which segment s (created_at, end_offset) goes, NULL if it stays. r: parts/retention_rules.sql.
           CASE
               WHEN s.end_offset > r.leased THEN NULL
               WHEN s.created_at < r.age_before THEN 'retention'
               WHEN s.created_at < r.done_before AND s.end_offset <= r.floor THEN 'completed_retention'
               WHEN s.created_at < r.evict_before THEN 'max_wait_time_eviction'
           END
