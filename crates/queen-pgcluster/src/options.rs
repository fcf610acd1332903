//! What a private cluster is started with.

use std::path::PathBuf;

/// Options of a private cluster. Build with [`ClusterOptions::new`] and change fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Directory of the cluster, made when absent. Everything of the cluster is inside, except the socket when
    /// the path is too long for one. For root it has to be reachable by the user that runs the server.
    pub data_dir: PathBuf,
    /// Directory with `initdb` and `postgres`; `None` looks for one ([`crate::Binaries::find`]).
    pub bin_dir: Option<PathBuf>,
    /// TCP port on 127.0.0.1; `None` takes the port recorded in the directory if it is still free, else any
    /// free one, and records it.
    pub port: Option<u16>,
    /// The server's `max_connections`, at least 10. Each costs the server some 400 kB of shared memory for
    /// locks and snapshots, whether used or not.
    pub max_connections: u32,
    /// Whether commits reach the disk. **Off loses or corrupts the cluster when the machine stops** (not when
    /// only the server does), and is meant for tests.
    pub fsync: bool,
    /// Further server settings, name and value, as in `postgresql.conf`; a later one wins.
    pub settings: Vec<(String, String)>,
}

impl ClusterOptions {
    /// The defaults for a directory: binaries looked up, any free port, 100 connections, `fsync` on.
    pub fn new(data_dir: impl Into<PathBuf>) -> ClusterOptions {
        ClusterOptions {
            data_dir: data_dir.into(),
            bin_dir: None,
            port: None,
            max_connections: 100,
            fsync: true,
            settings: Vec::new(),
        }
    }

    /// Options for tests: nothing has to reach the disk, and there is room for the connections of many tests at
    /// once. Meant for [`crate::Cluster::start_ephemeral`].
    pub fn for_tests(data_dir: impl Into<PathBuf>) -> ClusterOptions {
        let settings = [("shared_buffers", "128MB"), ("max_wal_size", "2GB")];
        ClusterOptions {
            max_connections: 300,
            fsync: false,
            settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            ..ClusterOptions::new(data_dir)
        }
    }
}
