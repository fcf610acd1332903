use std::net::{SocketAddr, TcpListener};

use queen_core::PgOptions;
use queen_testkit::TestDb;

/// The variables that name a database and a port.
pub(crate) struct Settings(Vec<(&'static str, String)>);

impl Settings {
    pub(crate) fn new(db: &TestDb, port: u16) -> Settings {
        Settings::on(db.options(), port)
    }

    pub(crate) fn on(pg: PgOptions, port: u16) -> Settings {
        // A spool belongs to one broker, and nothing of an earlier run may be replayed.
        let spool = spool(port);
        let _ = std::fs::remove_dir_all(&spool);
        Settings(vec![
            ("FILE_BUFFER_DIR", spool),
            ("PG_HOST", pg.host),
            ("PG_PORT", pg.port.to_string()),
            ("PG_USER", pg.user),
            ("PG_PASSWORD", pg.password.unwrap_or_default()),
            ("PG_DATABASE", pg.database),
            ("DB_POOL_SIZE", "4".to_owned()),
            ("QUEEN_BIND_ADDR", "127.0.0.1".to_owned()),
            ("PORT", port.to_string()),
        ])
    }

    /// With one more.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Settings {
        self.0.push((name, value.to_owned()));
        self
    }

    pub(crate) fn pairs(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

/// A spool directory for the broker on a port.
pub(crate) fn spool(port: u16) -> String {
    format!("{}/spool-{port}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id())
}

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind(loopback(0)).unwrap().local_addr().unwrap().port()
}
