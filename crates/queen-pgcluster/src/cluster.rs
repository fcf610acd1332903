//! A private cluster from start to stop.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::account::Account;
use crate::lock::OwnerLock;
use crate::pidfile::PidFile;
use crate::process::{self, Signal};
use crate::server::{Launch, Server};
use crate::watchdog::Watchdog;
use crate::{Binaries, ClusterError, ClusterOptions, initdb, port, socket};

const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Other processes may take a free port between its choice and the server's start.
const PORT_TRIES: usize = 5;

/// How a server is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Ends the sessions, writes a checkpoint.
    Fast,
    /// Ends everything without a checkpoint; the next start recovers from the log.
    Immediate,
}

/// A running private cluster.
///
/// Dropped, the server is stopped at once (without a checkpoint), which blocks the thread for some ten
/// milliseconds; [`Cluster::stop`] is the orderly way.
#[derive(Debug)]
pub struct Cluster {
    // Dropped in this order: the server ends, the directory goes, the lock is let go.
    server: Option<Server>,
    watchdog: Option<Watchdog>,
    launch: Launch,
    password: Option<String>,
    port: u16,
    adopted: bool,
    _lock: OwnerLock,
}

impl Cluster {
    /// Starts a persistent cluster: made when the directory is empty, with a generated password for the user
    /// `postgres` that is kept in the file `password` (mode 0600). A server that still runs there because its
    /// owner died is adopted; it is restarted first when it was started with other settings.
    ///
    /// Dropping the future leaves no server behind that this call started; an initdb in progress ends by itself.
    ///
    /// # Errors
    /// [`ClusterError::Held`] with the pid of a living owner, and everything else that [`ClusterError`] lists.
    pub async fn start(options: ClusterOptions) -> Result<Cluster, ClusterError> {
        Cluster::open(options, false).await
    }

    /// Starts a cluster that lives no longer than this value and this process: it trusts every connection from
    /// loopback, and **its data directory is deleted at the end**, however the process ends.
    ///
    /// Dropping the future takes everything down.
    ///
    /// # Errors
    /// As [`Cluster::start`], and when the directory exists and is not empty.
    pub async fn start_ephemeral(options: ClusterOptions) -> Result<Cluster, ClusterError> {
        Cluster::open(options, true).await
    }

    async fn open(options: ClusterOptions, ephemeral: bool) -> Result<Cluster, ClusterError> {
        let asked_port = options.port;
        let prepare = tokio::task::spawn_blocking(move || Prepared::make(&options, ephemeral));
        let prepared = match prepare.await {
            Ok(prepared) => prepared?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let mut cluster = Cluster {
            server: None,
            watchdog: prepared.watchdog,
            launch: prepared.launch,
            password: prepared.password,
            port: 0,
            adopted: false,
            _lock: prepared.lock,
        };
        if !cluster.adopt().await? {
            cluster.start_on_some_port(asked_port).await?;
        }
        cluster.record()?;
        Ok(cluster)
    }

    /// Takes over a server that runs in the directory, whose owner must be dead since the lock is ours.
    async fn adopt(&mut self) -> Result<bool, ClusterError> {
        let Some(found) = PidFile::read_living(&self.launch.pgdata) else {
            // Whatever a dead server left would make the next one refuse if its pid lives on in another process.
            let _ = fs::remove_file(self.launch.pgdata.join("postmaster.pid"));
            return Ok(false);
        };
        self.server = Some(Server::adopt(found.pid));
        let known = fs::read_to_string(self.arguments_path()).unwrap_or_default();
        let as_wanted = known == self.arguments();
        let server = self.server.as_mut().filter(|_| as_wanted);
        let Some(server) = server else {
            tracing::info!(pid = found.pid, "a server with other settings is stopped");
            self.shut_down(Shutdown::Fast).await?;
            return Ok(false);
        };
        match server.wait_ready(&self.launch).await {
            Ok(file) => {
                tracing::info!(pid = file.pid, port = file.port, "a running server is adopted");
                self.port = file.port;
                self.adopted = true;
                if file.socket_dir != self.launch.socket_dir {
                    socket::remove_dir(&self.launch.data_dir, &self.launch.socket_dir);
                    self.launch.socket_dir = file.socket_dir;
                }
                Ok(true)
            }
            // It was about to stop.
            Err(ClusterError::Failed { .. }) => {
                self.server = None;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn start_on_some_port(&mut self, asked: Option<u16>) -> Result<(), ClusterError> {
        let recorded_in = self.launch.data_dir.join("port");
        for _ in 1..PORT_TRIES {
            self.port = port::choose(asked, &recorded_in)?;
            match self.launch_server().await {
                Err(ClusterError::Failed { .. }) if asked.is_none() && !port::is_free(self.port) => {}
                outcome => return outcome,
            }
        }
        self.port = port::choose(asked, &recorded_in)?;
        self.launch_server().await
    }

    async fn launch_server(&mut self) -> Result<(), ClusterError> {
        let server = self.server.insert(Server::spawn(&self.launch, self.port)?);
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.guard(server.pid);
        }
        server.wait_ready(&self.launch).await?;
        self.adopted = false;
        Ok(())
    }

    /// Leaves what the next owner needs.
    fn record(&self) -> Result<(), ClusterError> {
        let port_path = self.launch.data_dir.join("port");
        fs::write(&port_path, format!("{}\n", self.port)).map_err(ClusterError::io("write", &port_path))?;
        let arguments_path = self.arguments_path();
        fs::write(&arguments_path, self.arguments()).map_err(ClusterError::io("write", &arguments_path))
    }

    fn arguments_path(&self) -> PathBuf {
        self.launch.data_dir.join("arguments")
    }

    fn arguments(&self) -> String {
        format!("{}\n{}\n", self.launch.binaries.dir().display(), self.launch.settings.join("\n"))
    }

    /// The address of the server, `127.0.0.1`.
    pub fn host(&self) -> &str {
        "127.0.0.1"
    }

    /// The directory of the unix socket, which a PostgreSQL client takes as a host name.
    pub fn socket_dir(&self) -> &Path {
        &self.launch.socket_dir
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The superuser, `postgres`.
    pub fn user(&self) -> &str {
        "postgres"
    }

    /// The superuser's password; `None` for an ephemeral cluster, which asks for none.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The directory of the cluster.
    pub fn data_dir(&self) -> &Path {
        &self.launch.data_dir
    }

    /// The pid of the postmaster; `None` while it is stopped.
    pub fn pid(&self) -> Option<i32> {
        self.server.as_ref().map(|server| server.pid)
    }

    /// Whether the server was already running when this owner came.
    pub fn adopted(&self) -> bool {
        self.adopted
    }

    /// The binaries it runs on.
    pub fn binaries(&self) -> &Binaries {
        &self.launch.binaries
    }

    /// Stops the server with a fast shutdown and gives the directory free (deletes it, if ephemeral).
    ///
    /// Dropping the future stops the server at once instead.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] when it does not stop within a minute; it is then killed.
    pub async fn stop(mut self) -> Result<(), ClusterError> {
        self.shut_down(Shutdown::Fast).await?;
        // Waits for the watchdog, which may have a large directory to delete.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
        Ok(())
    }

    /// Stops the server without a checkpoint, as a crash of the postmaster's host would look to its clients.
    /// [`Cluster::restart`] brings it back.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] as [`Cluster::stop`].
    pub async fn stop_immediate(&mut self) -> Result<(), ClusterError> {
        self.shut_down(Shutdown::Immediate).await
    }

    /// Stops the server and keeps this value as its owner. Does nothing when it is stopped.
    ///
    /// Dropping the future leaves the server stopping.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] when it does not stop within a minute; it is then killed.
    pub async fn shut_down(&mut self, how: Shutdown) -> Result<(), ClusterError> {
        let Some(server) = &mut self.server else { return Ok(()) };
        server.signal(match how {
            Shutdown::Fast => Signal::INT,
            Shutdown::Immediate => Signal::QUIT,
        });
        let stopped = process::wait(STOP_LIMIT, || server.is_over()).await;
        if !stopped {
            server.kill().await;
        }
        self.forget_server();
        if stopped { Ok(()) } else { Err(self.timed_out("stop", STOP_LIMIT)) }
    }

    /// Kills the postmaster and all its processes with SIGKILL, as the kernel's memory killer would.
    /// [`Cluster::restart`] brings it back.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] when one of the processes does not go.
    pub async fn kill(&mut self) -> Result<(), ClusterError> {
        let Some(server) = &mut self.server else { return Ok(()) };
        let gone = server.kill().await;
        self.forget_server();
        if gone { Ok(()) } else { Err(self.timed_out("die", Duration::from_secs(10))) }
    }

    /// Starts the server again on the same port, after a fast shutdown when it runs.
    ///
    /// # Errors
    /// As [`Cluster::start`]; [`ClusterError::Failed`] when the port was taken meanwhile.
    pub async fn restart(&mut self) -> Result<(), ClusterError> {
        self.shut_down(Shutdown::Fast).await?;
        self.launch_server().await
    }

    fn forget_server(&mut self) {
        self.server = None;
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.guard(0);
        }
    }

    fn timed_out(&self, what: &'static str, limit: Duration) -> ClusterError {
        ClusterError::TimedOut { data_dir: self.launch.data_dir.clone(), what, seconds: limit.as_secs() }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.forget_server();
        socket::remove_dir(&self.launch.data_dir, &self.launch.socket_dir);
    }
}

/// Everything that is done before the server runs; all of it blocks.
struct Prepared {
    launch: Launch,
    password: Option<String>,
    watchdog: Option<Watchdog>,
    lock: OwnerLock,
}

impl Prepared {
    fn make(options: &ClusterOptions, ephemeral: bool) -> Result<Prepared, ClusterError> {
        let account = Account::choose()?;
        let data_dir = make_data_dir(options, account.as_ref(), ephemeral)?;
        let lock = OwnerLock::take(&data_dir)?;
        let pgdata = data_dir.join("pgdata");
        let binaries = choose_binaries(options, &data_dir, &pgdata)?;
        let socket_dir = socket::make_dir(&data_dir, account.as_ref())?;
        let mut watchdog = ephemeral.then(|| Watchdog::start(&data_dir, &socket_dir)).transpose()?;
        let password =
            if ephemeral { None } else { Some(initdb::ensure_password(&data_dir.join("password"))?) };
        let guard = |pid| {
            if let Some(watchdog) = &mut watchdog {
                watchdog.guard(pid);
            }
        };
        initdb::ensure(&binaries, account.as_ref(), &pgdata, password.as_deref(), options.fsync, guard)?;
        let settings = settings_of(options);
        let launch = Launch { binaries, account, data_dir, pgdata, socket_dir, settings };
        Ok(Prepared { launch, password, watchdog, lock })
    }
}

fn make_data_dir(
    options: &ClusterOptions,
    account: Option<&Account>,
    ephemeral: bool,
) -> Result<PathBuf, ClusterError> {
    let wanted = &options.data_dir;
    fs::create_dir_all(wanted).map_err(ClusterError::io("make", wanted))?;
    let dir = wanted.canonicalize().map_err(ClusterError::io("look at", wanted))?;
    let mut entries = dir.read_dir().map_err(ClusterError::io("read", &dir))?;
    if ephemeral && entries.next().is_some() {
        let error = std::io::Error::from(std::io::ErrorKind::DirectoryNotEmpty);
        return Err(ClusterError::io("use as a cluster that is deleted", &dir)(error));
    }
    if account.is_some() {
        let mode = dir.metadata().map_err(ClusterError::io("look at", &dir))?.permissions().mode();
        fs::set_permissions(&dir, Permissions::from_mode(mode | 0o111))
            .map_err(ClusterError::io("open up", &dir))?;
    }
    Account::check_reach(account, &dir)?;
    Ok(dir)
}

fn choose_binaries(
    options: &ClusterOptions,
    data_dir: &Path,
    pgdata: &Path,
) -> Result<Binaries, ClusterError> {
    let version = fs::read_to_string(pgdata.join("PG_VERSION")).ok();
    let made_by: Option<u32> = version.and_then(|text| text.trim().parse().ok());
    let binaries = match &options.bin_dir {
        Some(dir) => Binaries::in_dir(dir)?,
        None => Binaries::find_for(made_by)?,
    };
    match made_by {
        Some(directory) if directory != binaries.major() => Err(ClusterError::Version {
            data_dir: data_dir.to_path_buf(),
            directory,
            binaries: binaries.major(),
        }),
        _ => Ok(binaries),
    }
}

fn settings_of(options: &ClusterOptions) -> Vec<String> {
    let on_off = if options.fsync { "on" } else { "off" };
    let own = [
        format!("max_connections={}", options.max_connections),
        format!("fsync={on_off}"),
        format!("full_page_writes={on_off}"),
        "lc_messages=C".to_owned(),
        "logging_collector=off".to_owned(),
    ];
    let given = options.settings.iter().map(|(name, value)| format!("{name}={value}"));
    own.into_iter().chain(given).collect()
}
