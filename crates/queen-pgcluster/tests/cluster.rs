//! A private cluster on the machine's own PostgreSQL: start, stop, crash, adoption, cleanup.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use queen_pgcluster::{Cluster, ClusterError, ClusterOptions, Shutdown};
use tokio_postgres::{Client, NoTls};

const OWNER_DIR: &str = "QUEEN_TEST_OWNER_DIR";
const OWNER_KIND: &str = "QUEEN_TEST_OWNER_KIND";

fn options(dir: &Path) -> ClusterOptions {
    ClusterOptions { fsync: false, max_connections: 20, ..ClusterOptions::new(dir) }
}

/// A directory that the user of the server can reach, also when the tests run as root.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

async fn connect(cluster: &Cluster) -> Client {
    let mut config = tokio_postgres::Config::new();
    config.host(cluster.host()).port(cluster.port()).user(cluster.user()).dbname("postgres");
    if let Some(password) = cluster.password() {
        config.password(password);
    }
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn write_seven(cluster: &Cluster) {
    connect(cluster).await.batch_execute("CREATE TABLE t (x int); INSERT INTO t VALUES (7)").await.unwrap();
}

async fn read_back(cluster: &Cluster) -> i32 {
    connect(cluster).await.query_one("SELECT x FROM t", &[]).await.unwrap().get(0)
}

/// Whether a process runs; a zombie does not.
fn runs(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(15), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Another process that owns the cluster of a directory, until it is killed.
struct Owner {
    process: Child,
    postmaster: i32,
    port: u16,
}

impl Owner {
    fn start(dir: &Path, kind: &str) -> Owner {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "owner_process", "--nocapture"])
            .env(OWNER_DIR, dir)
            .env(OWNER_KIND, kind)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = lines.find(|line| line.as_ref().unwrap().contains("owns ")).unwrap().unwrap();
        let numbers = line.split("owns ").nth(1).unwrap();
        let (postmaster, port) = numbers.split_once(' ').unwrap();
        Owner { process, postmaster: postmaster.parse().unwrap(), port: port.parse().unwrap() }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Owner {
    /// A failed test must not leave a persistent server behind.
    fn drop(&mut self) {
        self.kill();
        let _ =
            Command::new("kill").args(["-QUIT", &self.postmaster.to_string()]).stderr(Stdio::null()).status();
    }
}

/// No test of its own: the body of the processes that [`Owner`] starts.
#[tokio::test]
async fn owner_process() {
    let Some(dir) = std::env::var_os(OWNER_DIR) else { return };
    let options = options(Path::new(&dir));
    let cluster = match std::env::var(OWNER_KIND).unwrap().as_str() {
        "ephemeral" => Cluster::start_ephemeral(options).await.unwrap(),
        _ => Cluster::start(options).await.unwrap(),
    };
    println!("owns {} {}", cluster.pid().unwrap(), cluster.port());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn data_port_and_password_survive_a_stop() {
    let dir = directory();
    let cluster = Cluster::start(options(dir.path())).await.unwrap();
    write_seven(&cluster).await;
    let (port, password, pid) =
        (cluster.port(), cluster.password().unwrap().to_owned(), cluster.pid().unwrap());
    assert!(runs(pid));
    cluster.stop().await.unwrap();
    assert!(!runs(pid));

    let again = Cluster::start(options(dir.path())).await.unwrap();
    assert!(!again.adopted());
    assert_eq!((again.port(), again.password()), (port, Some(password.as_str())));
    assert_eq!(read_back(&again).await, 7);
    again.stop().await.unwrap();
}

#[tokio::test]
async fn a_persistent_cluster_wants_its_password() {
    let dir = directory();
    let cluster = Cluster::start(options(dir.path())).await.unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host(cluster.host()).port(cluster.port()).user("postgres").dbname("postgres").password("guess");
    let refused = config.connect(NoTls).await.err().unwrap();
    assert_eq!(refused.code().unwrap().code(), "28P01");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn it_listens_on_a_unix_socket_too() {
    let dir = directory();
    let deep = dir.path().join("d".repeat(120));
    for data_dir in [dir.path().join("near"), deep] {
        let cluster = Cluster::start(options(&data_dir)).await.unwrap();
        let mut config = tokio_postgres::Config::new();
        config.host_path(cluster.socket_dir()).port(cluster.port()).user("postgres").dbname("postgres");
        let (client, connection) = config.password(cluster.password().unwrap()).connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        let row = client.query_one("SELECT inet_server_addr() IS NULL", &[]).await.unwrap();
        assert!(row.get::<_, bool>(0));
        let socket_dir = cluster.socket_dir().to_path_buf();
        cluster.stop().await.unwrap();
        assert_eq!(socket_dir.exists(), socket_dir.starts_with(&data_dir), "{socket_dir:?}");
    }
}

#[tokio::test]
async fn settings_reach_the_server() {
    let dir = directory();
    let mut options = options(dir.path());
    options.settings.push(("work_mem".to_owned(), "5MB".to_owned()));
    let cluster = Cluster::start_ephemeral(options).await.unwrap();
    let client = connect(&cluster).await;
    for (name, value) in
        [("work_mem", "5MB"), ("max_connections", "20"), ("fsync", "off"), ("server_encoding", "UTF8")]
    {
        let row = client.query_one("SELECT current_setting($1)", &[&name]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), value, "{name}");
    }
    let unlisten = client.query_one("SELECT current_setting('listen_addresses')", &[]).await.unwrap();
    assert_eq!(unlisten.get::<_, &str>(0), "127.0.0.1");
}

#[tokio::test]
async fn a_bad_setting_is_told_with_the_servers_words() {
    let dir = directory();
    let mut options = options(dir.path());
    options.settings.push(("no_such_setting".to_owned(), "1".to_owned()));
    let text = Cluster::start_ephemeral(options).await.unwrap_err().to_string();
    assert!(text.contains("no_such_setting"), "{text}");
}

#[tokio::test]
async fn a_second_owner_is_refused_with_the_pid_of_the_first() {
    let dir = directory();
    let mut owner = Owner::start(dir.path(), "persistent");
    match Cluster::start(options(dir.path())).await.unwrap_err() {
        ClusterError::Held { pid, .. } => assert_eq!(pid, owner.process.id() as i32),
        other => panic!("{other}"),
    }
    assert!(runs(owner.postmaster), "the refused one leaves it alone");
    owner.kill();
    Cluster::start(options(dir.path())).await.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn a_server_whose_owner_was_killed_is_adopted() {
    let dir = directory();
    let mut owner = Owner::start(dir.path(), "persistent");
    owner.kill();
    assert!(runs(owner.postmaster));

    let heir = Cluster::start(options(dir.path())).await.unwrap();
    assert!(heir.adopted());
    assert_eq!((heir.pid(), heir.port()), (Some(owner.postmaster), owner.port));
    write_seven(&heir).await;
    heir.stop().await.unwrap();
    assert!(!runs(owner.postmaster), "an adopted server is stopped as well");
}

#[tokio::test]
async fn an_adopted_server_with_other_settings_is_restarted() {
    let dir = directory();
    let mut owner = Owner::start(dir.path(), "persistent");
    owner.kill();
    let wanted = ClusterOptions { max_connections: 33, ..options(dir.path()) };
    let heir = Cluster::start(wanted).await.unwrap();
    assert!(!heir.adopted());
    assert_ne!(heir.pid(), Some(owner.postmaster));
    let row = connect(&heir).await.query_one("SHOW max_connections", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "33");
    heir.stop().await.unwrap();
}

#[tokio::test]
async fn an_ephemeral_cluster_ends_with_a_killed_owner() {
    let dir = directory();
    let data_dir = dir.path().join("data");
    let mut owner = Owner::start(&data_dir, "ephemeral");
    assert!(runs(owner.postmaster) && data_dir.exists());
    owner.kill();
    wait_until("the end of the server", || !runs(owner.postmaster));
    wait_until("the removal of its files", || !data_dir.exists());
}

#[tokio::test]
async fn a_dropped_ephemeral_cluster_leaves_nothing() {
    let dir = directory();
    let data_dir = dir.path().join("data");
    let cluster = Cluster::start_ephemeral(options(&data_dir)).await.unwrap();
    let pid = cluster.pid().unwrap();
    drop(cluster);
    assert!(!runs(pid) && !data_dir.exists());
}

#[tokio::test]
async fn an_ephemeral_cluster_deletes_nothing_that_was_there_before() {
    let dir = directory();
    std::fs::write(dir.path().join("precious"), "x").unwrap();
    let refused = Cluster::start_ephemeral(options(dir.path())).await.unwrap_err();
    assert!(matches!(refused, ClusterError::Io { .. }), "{refused}");
    assert!(dir.path().join("precious").exists());
}

#[tokio::test]
async fn a_killed_server_comes_back_with_what_was_committed() {
    let dir = directory();
    let mut cluster = Cluster::start_ephemeral(options(&dir.path().join("data"))).await.unwrap();
    write_seven(&cluster).await;
    let (port, first) = (cluster.port(), cluster.pid().unwrap());

    cluster.kill().await.unwrap();
    assert!(!runs(first) && cluster.pid().is_none());
    cluster.restart().await.unwrap();
    assert_eq!(cluster.port(), port);
    assert_eq!(read_back(&cluster).await, 7);

    cluster.stop_immediate().await.unwrap();
    assert!(std::net::TcpStream::connect((cluster.host(), port)).is_err());
    cluster.restart().await.unwrap();
    assert_eq!(read_back(&cluster).await, 7);

    let running = cluster.pid().unwrap();
    cluster.shut_down(Shutdown::Fast).await.unwrap();
    cluster.shut_down(Shutdown::Fast).await.unwrap();
    assert!(!runs(running));
}

#[tokio::test]
async fn a_pid_that_belongs_to_another_process_does_not_stop_a_start() {
    let dir = directory();
    let cluster = Cluster::start(options(dir.path())).await.unwrap();
    cluster.stop().await.unwrap();
    let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
    let stale = format!("{}\n/somewhere\n1\n5432\n/tmp\n127.0.0.1\n 1 1\nready\n", stranger.id());
    std::fs::write(dir.path().join("pgdata/postmaster.pid"), stale).unwrap();

    let again = Cluster::start(options(dir.path())).await.unwrap();
    assert!(!again.adopted());
    again.stop().await.unwrap();
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger was left alone");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn a_directory_of_another_major_version_is_refused() {
    let dir = directory();
    std::fs::create_dir(dir.path().join("pgdata")).unwrap();
    std::fs::write(dir.path().join("pgdata/PG_VERSION"), "9\n").unwrap();
    match Cluster::start(options(dir.path())).await.unwrap_err() {
        ClusterError::Version { directory, .. } => assert_eq!(directory, 9),
        other => panic!("{other}"),
    }
}
