#!/usr/bin/env bash
# Measures the execution of push/insert.sql and push/insert_clear.sql on a private PostgreSQL: what decision 007 stands on.
#
#   insert_statements.sh [runs]
#
# Bundles of 1 and 30 segments of one message, each for another partition with 100 stored messages, everything vouched;
# and one of which nothing is known. Microseconds of execution, from EXPLAIN ANALYZE without timing of the nodes, lowest
# and median of the runs; each run is rolled back.
set -euo pipefail
runs=${1:-40}
cd "$(dirname "$0")/../.."
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
dir=$(mktemp -d) port=${PORT:-54918}
run() { if [ "$(id -u)" = 0 ]; then su postgres -s /bin/bash -c "$*"; else bash -c "$*"; fi; }
[ "$(id -u)" = 0 ] && chown postgres "$dir"
trap 'run "$bin/pg_ctl -D $dir/data -m immediate stop" >/dev/null 2>&1; rm -rf "$dir"' EXIT
run "$bin/initdb -D $dir/data -A trust -U postgres" >/dev/null
run "$bin/pg_ctl -D $dir/data -w -l $dir/log -o '-p $port -k $dir -c fsync=off -c shared_buffers=512MB' start" >/dev/null
sql() { "$bin/psql" -qAt -h "$dir" -p "$port" -U postgres -v ON_ERROR_STOP=1 "$@" 2>/dev/null; }
cat schema/tables/*.sql | sql
sql <<'SQL'
INSERT INTO queen.queues (tenant_id, name, namespace, task, created_by)
VALUES ('00000000-0000-0000-0000-000000000000', 'q', '', '', 'push');
INSERT INTO queen.log_partitions (queue_id, name) SELECT q.id, 'p' || i FROM queen.queues q, generate_series(1, 30) i;
INSERT INTO queen.log_segments SELECT p.id, k, k, clock_timestamp(), decode(md5(random()::text), 'hex'),
    decode(repeat(md5(random()::text), 16), 'hex') FROM queen.log_partitions p, generate_series(0, 99) k;
SQL
literals() { # segments, vouched
  sql <<SQL
SELECT format('%L::uuid[], %L::int8[], %L::int4[], %L::bytea[], %L::bytea[], %L::int8[], %L::int8[]',
    array_agg(id), array_agg(0), array_agg(1), array_agg(decode(md5(random()::text), 'hex')),
    array_agg(decode(repeat(md5(random()::text), 16), 'hex')), array_agg($2), array_agg(-1))
FROM (SELECT id FROM queen.log_partitions ORDER BY id LIMIT $1) p
SQL
}
printf '%-18s %9s %9s %8s %8s %12s\n' statement segments known lowest median 'foreign key'
for case in 'insert 1 99' 'insert_clear 1 99' 'insert 30 99' 'insert_clear 30 99' 'insert 1 -1' 'insert 30 -1'; do
  read -r name segments vouched <<<"$case"
  types='uuid[], int8[], int4[], bytea[], bytea[], int8[], int8[]' more=''
  if [ "$name" = insert ]; then
    types="$types, int8[], int8[]" none="array_fill(-1::int8, ARRAY[$segments])" more=", $(sql -c "SELECT quote_literal($none) || '::int8[], ' || quote_literal($none) || '::int8[]'")"
  fi
  server=$(sql -c "SELECT quote_literal(pg_postmaster_start_time()) || '::timestamptz'")
  execute="EXECUTE x($(literals "$segments" "$vouched")$more, false, $server)"
  {
    echo 'SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off; SET search_path = pg_catalog;'
    echo "PREPARE x ($types, boolean, timestamptz) AS"; sed '/--@ part/{s|.*--@ part \(.*\)|cat schema/statements/parts/\1.sql|e
}' "schema/statements/push/$name.sql"; echo ';'
    for _ in $(seq "$runs"); do echo "BEGIN; EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) $execute; ROLLBACK;"; done
    for _ in $(seq 10); do echo "BEGIN; EXPLAIN (ANALYZE, COSTS OFF) $execute; ROLLBACK;"; done
  } | sql >"$dir/out"
  sed -n 's/^Execution Time: \(.*\) ms/\1/p' "$dir/out" | head -n "$runs" | tail -n +6 | sort -n | awk -v n="$name" -v s="$segments" \
    -v k="$([ "$vouched" = -1 ] && echo nothing || echo all)" -v f="$(sed -n 's/^Trigger for constraint.*time=\([0-9.]*\).*/\1/p' "$dir/out" | sort -n | sed -n 5p)" \
    '{ t[NR] = $1 * 1000 } END { printf "%-18s %9d %9s %8d %8d %12d\n", n, s, k, t[1], t[int((NR + 1) / 2)], f * 1000 }'
done
