//! A private PostgreSQL for the test binary, a database per test, and the catalogue as text.

use queen_pg::{Conn, PgOptions, Pool};
use queen_pgcluster::{Cluster, ClusterOptions};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The runtime that the cluster was started on has to outlive every test.
pub(crate) struct Server {
    _runtime: tokio::runtime::Runtime,
    pub(crate) cluster: Cluster,
}

impl Server {
    /// Starts a cluster that ends with this process. Blocks; not to be called on a runtime's thread.
    fn start(name: &str, bin_dir: Option<PathBuf>) -> Server {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let data_dir = std::env::temp_dir().join(format!("queen-schema-{name}-{}", std::process::id()));
        let options = ClusterOptions { fsync: false, bin_dir, ..ClusterOptions::new(data_dir) };
        let cluster = runtime.block_on(Cluster::start_ephemeral(options)).unwrap();
        Server { _runtime: runtime, cluster }
    }

    pub(crate) fn start_on_thread(name: &'static str, bin_dir: Option<PathBuf>) -> Server {
        std::thread::spawn(move || Server::start(name, bin_dir)).join().unwrap()
    }

    pub(crate) fn options(&self) -> PgOptions {
        PgOptions {
            host: self.cluster.host().to_owned(),
            port: self.cluster.port(),
            user: self.cluster.user().to_owned(),
            password: self.cluster.password().map(str::to_owned),
            pool_size: 4,
            ..PgOptions::default()
        }
    }

    /// A new database, made with `clauses` of CREATE DATABASE.
    pub(crate) async fn database(&self, clauses: &str) -> Pool {
        let name = unique("db");
        let mut admin = Pool::new(self.options()).unwrap().connect("admin").await.unwrap();
        admin.batch(&format!("CREATE DATABASE {name} {clauses}")).await.unwrap();
        Pool::new(PgOptions { database: name, ..self.options() }).unwrap()
    }
}

static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start_on_thread("machine", None));

pub(crate) fn server() -> &'static Server {
    &SERVER
}

pub(crate) async fn database() -> Pool {
    server().database("").await
}

/// A name that no other test uses.
pub(crate) fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) async fn admin(pool: &Pool) -> Conn {
    pool.connect("admin").await.unwrap()
}

/// The same database, as another role.
pub(crate) fn as_role(pool: &Pool, role: &str) -> Pool {
    let options = PgOptions { user: role.to_owned(), password: None, ..pool.options().clone() };
    Pool::new(options).unwrap()
}

/// A new role that may log in and nothing else.
pub(crate) async fn role(pool: &Pool) -> String {
    let name = unique("role");
    admin(pool).await.batch(&format!("CREATE ROLE {name} LOGIN")).await.unwrap();
    name
}

pub(crate) async fn texts(conn: &mut Conn, sql: &'static str) -> Vec<String> {
    conn.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Polls until `sql`, which returns one boolean, is true.
pub(crate) async fn eventually(conn: &mut Conn, sql: &'static str) {
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        if conn.query(sql, &[]).await.unwrap()[0].get::<_, bool>(0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never true: {sql}");
}

/// Everything in our schemas, one line each, independent of the server's version and of object ids.
pub(crate) async fn shape(pool: &Pool) -> String {
    const LINES: &str = "
        WITH ours AS (
            SELECT c.oid, n.nspname || '.' || c.relname AS name, c.relkind, c.reloptions, c.reltoastrelid
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname IN ('queen', 'queen_streams')
        )
        SELECT line COLLATE \"C\" FROM (
            SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname IN ('queen', 'queen_streams')
            UNION ALL
            SELECT 'table ' || name || ' with ' || coalesce(array_to_string(reloptions, ' '), '-') || ' toast '
              || coalesce((SELECT array_to_string(t.reloptions, ' ') FROM pg_class AS t WHERE t.oid = ours.reltoastrelid),
                '-')
            FROM ours WHERE relkind = 'r'
            UNION ALL
            SELECT 'column ' || name || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
              || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
              || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
              || CASE a.attstorage WHEN 'e' THEN ' external' ELSE '' END
            FROM ours JOIN pg_attribute AS a ON a.attrelid = ours.oid AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE relkind = 'r'
            UNION ALL
            SELECT 'constraint ' || k.conname || ' on ' || name || ' ' || pg_get_constraintdef(k.oid)
            FROM ours JOIN pg_constraint AS k ON k.conrelid = ours.oid WHERE k.contype <> 'n'
            UNION ALL
            SELECT 'index ' || pg_get_indexdef(oid) FROM ours WHERE relkind = 'i'
        ) AS all_lines (line) ORDER BY 1";
    texts(&mut admin(pool).await, LINES).await.join("\n") + "\n"
}

/// Identity and last change of every catalogue row of ours.
pub(crate) async fn catalogue_rows(pool: &Pool) -> Vec<String> {
    const ROWS: &str = "
        WITH ours AS (
            SELECT c.oid, c.xmin, c.reltoastrelid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname IN ('queen', 'queen_streams')
        )
        SELECT format('class %s %s', oid, xmin) AS row FROM ours
        UNION ALL SELECT format('toast %s %s', c.oid, c.xmin) FROM ours JOIN pg_class AS c ON c.oid = ours.reltoastrelid
        UNION ALL SELECT format('attribute %s %s %s', attrelid, attnum, a.xmin)
          FROM ours JOIN pg_attribute AS a ON a.attrelid = ours.oid
        UNION ALL SELECT format('constraint %s %s', k.oid, k.xmin)
          FROM ours JOIN pg_constraint AS k ON k.conrelid = ours.oid
        UNION ALL SELECT format('namespace %s %s', oid, xmin) FROM pg_namespace WHERE nspname LIKE 'queen%'
        UNION ALL SELECT format('default acl %s %s', oid, xmin) FROM pg_default_acl
        UNION ALL SELECT format('state %s %s', key, xmin) FROM queen.system_state
        ORDER BY 1";
    texts(&mut admin(pool).await, ROWS).await
}
