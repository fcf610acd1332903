use std::fmt;
use std::time::Duration;

/// Where the database is and how patiently to talk to it.
///
/// The defaults are those of a broker without configuration: `localhost:5432`, user, password and database
/// `postgres`, plaintext, 160 connections.
#[derive(Clone)]
pub struct PgOptions {
    /// Host name, IP address, or the directory of a Unix socket (anything that begins with `/`).
    pub host: String,
    /// TCP port, or the number in the name of the Unix socket.
    pub port: u16,
    /// Role to log in as.
    pub user: String,
    /// Password of the role; `None` where the server asks for none.
    pub password: Option<String>,
    /// Database that holds the schemas `queen` and `queen_streams`.
    pub database: String,
    /// Encryption and trust. Ignored on a Unix socket, which PostgreSQL never encrypts.
    pub tls: TlsMode,
    /// Most connections the pool opens, at least 1. It bounds the concurrent database work of this broker; the sum
    /// over all brokers has to stay under the server's `max_connections`.
    pub pool_size: usize,
    /// Bound on every call, from the first byte sent to the last row read. 30 s. The server's own
    /// `statement_timeout` is set 5 s above it, as a back-stop for a broker that died.
    pub statement_timeout: Duration,
    /// Bound on opening a connection: name look-up, TCP, TLS, login and session settings together. 5 s.
    pub connect_timeout: Duration,
    /// Bound on waiting for a free connection of the pool. 5 s.
    pub pool_wait: Duration,
    /// What `pg_stat_activity` shows, by convention `queen/<server id>`.
    pub application_name: String,
}

/// How the link to PostgreSQL is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// No encryption.
    #[default]
    Plaintext,
    /// Encrypted; the server's certificate and name are verified against the compiled-in public roots.
    PublicRoots,
    /// Encrypted; verified against the certificates of this PEM text and nothing else. A literal `\n` counts as a
    /// line break, for environment files that hold one line a variable.
    SuppliedCa(String),
    /// Encrypted, but any certificate is accepted: no protection from somebody in the middle.
    AcceptAny,
}

impl TlsMode {
    /// The label used in logs: `plaintext`, `webpki-roots`, `supplied-ca` or `accept-any`.
    pub fn label(&self) -> &'static str {
        match self {
            TlsMode::Plaintext => "plaintext",
            TlsMode::PublicRoots => "webpki-roots",
            TlsMode::SuppliedCa(_) => "supplied-ca",
            TlsMode::AcceptAny => "accept-any",
        }
    }
}

impl PgOptions {
    /// Whether `host` names a Unix socket directory.
    pub fn is_unix_socket(&self) -> bool {
        self.host.starts_with('/')
    }
}

impl Default for PgOptions {
    fn default() -> Self {
        PgOptions {
            host: "localhost".to_owned(),
            port: 5432,
            user: "postgres".to_owned(),
            password: Some("postgres".to_owned()),
            database: "postgres".to_owned(),
            tls: TlsMode::Plaintext,
            pool_size: 160,
            statement_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            pool_wait: Duration::from_secs(5),
            application_name: "queen".to_owned(),
        }
    }
}

impl fmt::Debug for PgOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "<redacted>"))
            .field("database", &self.database)
            .field("tls", &self.tls.label())
            .field("pool_size", &self.pool_size)
            .field("statement_timeout", &self.statement_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("pool_wait", &self.pool_wait)
            .field("application_name", &self.application_name)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_never_shows() {
        let options = PgOptions { password: Some("hunter2".to_owned()), ..PgOptions::default() };
        let shown = format!("{options:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("redacted"), "{shown}");
    }
}
