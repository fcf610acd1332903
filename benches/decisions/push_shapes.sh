#!/usr/bin/env bash
# Measures three shapes of an append on a private PostgreSQL with fsync on: what decision 001 stands on.
#
#   push_shapes.sh [seconds a run] [clients]
#
# allocator: UPDATE of the partition row, INSERT of the segment, INSERT of the hashes as a row of their own
# locked:    the partition row locked without a new version, INSERT of segment and hashes in one row (ours)
# Each as one transaction of SEGMENTS segments on SEGMENTS of 100 partitions; 256-byte blobs, one hash each.
set -euo pipefail
seconds=${1:-6} clients=${2:-8}
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
dir=$(mktemp -d) port=${PORT:-54917}
run() { if [ "$(id -u)" = 0 ]; then su postgres -s /bin/bash -c "$*"; else bash -c "$*"; fi; }
[ "$(id -u)" = 0 ] && chown postgres "$dir"
trap 'run "$bin/pg_ctl -D $dir/data -m immediate stop" >/dev/null 2>&1; rm -rf "$dir"' EXIT
run "$bin/initdb -D $dir/data -A trust -U postgres" >/dev/null
run "$bin/pg_ctl -D $dir/data -w -l $dir/log -o '-p $port -k $dir -c shared_buffers=512MB -c max_wal_size=8GB -c checkpoint_timeout=15min' start" >/dev/null
q() { run "$bin/psql -qAt -h $dir -p $port -U postgres -c \"$1\""; }

cat > "$dir/schema.sql" <<'SQL'
CREATE TABLE p (id uuid PRIMARY KEY, last_offset bigint NOT NULL DEFAULT -1, last_write_at timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 70);
CREATE TABLE s (pid uuid REFERENCES p, base bigint, fin bigint, at timestamptz, hashes bytea, blob bytea, PRIMARY KEY (pid, base));
CREATE TABLE x (pid uuid, base bigint, fin bigint, at timestamptz, hashes bytea, PRIMARY KEY (pid, base));
ALTER TABLE s ALTER blob SET STORAGE EXTERNAL;
INSERT INTO p SELECT ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid FROM generate_series(0, 99) i;
SQL
ids="(SELECT array_agg(id ORDER BY id) FROM (SELECT ('00000000-0000-0000-0000-' || lpad(((:r + k * 7) % 100)::text, 12, '0'))::uuid AS id FROM generate_series(0, :n - 1) k) ids)"
blob="decode(repeat(md5(random()::text), 16), 'hex')" hash="decode(md5(random()::text), 'hex')"
cat > "$dir/allocator.sql" <<SQL
\set r random(0, 99)
BEGIN;
SELECT id FROM unnest($ids) i (id) CROSS JOIN LATERAL (SELECT FROM p WHERE p.id = i.id FOR UPDATE) l;
WITH moved AS (UPDATE p SET last_offset = last_offset + 1 FROM unnest($ids) u (uid) WHERE id = uid RETURNING id, last_offset),
     seg AS (INSERT INTO s SELECT id, last_offset, last_offset, clock_timestamp(), ''::bytea, $blob FROM moved RETURNING pid, base)
INSERT INTO x SELECT pid, base, base, clock_timestamp(), $hash FROM seg;
COMMIT;
SQL
cat > "$dir/locked.sql" <<SQL
\set r random(0, 99)
BEGIN;
SELECT id FROM unnest($ids) i (id) CROSS JOIN LATERAL (SELECT FROM p WHERE p.id = i.id FOR NO KEY UPDATE) l;
INSERT INTO s SELECT i.id, GREATEST(p.last_offset, t.fin) + 1, GREATEST(p.last_offset, t.fin) + 1, clock_timestamp(), $hash, $blob
FROM unnest($ids) i (id) CROSS JOIN LATERAL (SELECT last_offset FROM p WHERE p.id = i.id OFFSET 0) p
LEFT JOIN LATERAL (SELECT fin FROM s WHERE s.pid = i.id ORDER BY base DESC LIMIT 1) t ON TRUE;
COMMIT;
SQL
chmod -R a+rX "$dir"; [ "$(id -u)" = 0 ] && chown -R postgres "$dir"
printf '%-10s %9s %10s %14s %16s %12s\n' shape segments 'txn/s' 'segments/s' 'WAL B/segment' 'dead in p'
for segments in 1 16; do
  for shape in allocator locked allocator locked; do
    q "DROP TABLE IF EXISTS x, s, p" 2>/dev/null
    run "$bin/psql -q -h $dir -p $port -U postgres -f $dir/schema.sql" >/dev/null
    q "ALTER TABLE p SET (autovacuum_enabled = off)"; q "CHECKPOINT"
    before=$(q "SELECT pg_current_wal_lsn()")
    out=$(run "$bin/pgbench -n -M prepared -c $clients -j 2 -T $seconds -D n=$segments -h $dir -p $port -U postgres -f $dir/$shape.sql" 2>&1) || { echo "$out" >&2; exit 1; }
    tps=$(sed -n "s/^tps = \([0-9.]*\).*/\1/p" <<<"$out")
    count=$(q "SELECT count(*) FROM s")
    wal=$(q "SELECT pg_current_wal_lsn() - '$before'")
    dead=$(q "SELECT pg_stat_force_next_flush()" >/dev/null 2>&1; sleep 1; q "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'p'")
    awk -v s="$shape" -v n="$segments" -v t="$tps" -v c="$count" -v w="$wal" -v d="$dead" 'BEGIN { printf "%-10s %9d %10.0f %14.0f %16.0f %12d\n", s, n, t, t * n, w / c, d }'
  done
done
