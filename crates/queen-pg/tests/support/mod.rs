//! A private PostgreSQL for one test binary, a database per test, and a proxy that shows what goes over the wire.
#![allow(dead_code, unused_imports)]

mod proxy;

pub(crate) use proxy::Proxy;
use queen_pg::{Conn, PgOptions, Pool};
use queen_pgcluster::{Cluster, ClusterOptions};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The runtime that the cluster was started on has to outlive every test.
pub(crate) struct Server {
    _runtime: tokio::runtime::Runtime,
    pub(crate) cluster: Cluster,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| std::thread::spawn(start).join().unwrap());

fn start() -> Server {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let data_dir = std::env::temp_dir().join(format!("queen-pg-test-{}", std::process::id()));
    let options = ClusterOptions { fsync: false, ..ClusterOptions::new(data_dir) };
    let cluster = runtime.block_on(Cluster::start_ephemeral(options)).unwrap();
    Server { _runtime: runtime, cluster }
}

pub(crate) fn server() -> &'static Server {
    &SERVER
}

/// Options for the maintenance database.
pub(crate) fn options() -> PgOptions {
    let cluster = &server().cluster;
    PgOptions {
        host: cluster.host().to_owned(),
        port: cluster.port(),
        user: cluster.user().to_owned(),
        password: cluster.password().map(str::to_owned),
        pool_size: 4,
        application_name: unique("app"),
        ..PgOptions::default()
    }
}

/// A name that no other test of this binary uses.
pub(crate) fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Options for a new, empty database.
pub(crate) async fn database() -> PgOptions {
    let name = unique("db");
    admin().await.batch(&format!("CREATE DATABASE {name}")).await.unwrap();
    PgOptions { database: name, ..options() }
}

/// A session of its own on the maintenance database.
pub(crate) async fn admin() -> Conn {
    Pool::new(options()).unwrap().connect("admin").await.unwrap()
}

/// Polls until `sql`, which returns one boolean, is true.
pub(crate) async fn eventually(conn: &mut Conn, sql: &'static str, param: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        let rows = conn.query(sql, &[&param]).await.unwrap();
        if rows[0].get::<_, bool>(0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never true: {sql}");
}

pub(crate) async fn text(conn: &mut Conn, sql: &'static str) -> String {
    conn.query(sql, &[]).await.unwrap()[0].get(0)
}

pub(crate) async fn number(conn: &mut Conn, sql: &'static str) -> i64 {
    conn.query(sql, &[]).await.unwrap()[0].get(0)
}
