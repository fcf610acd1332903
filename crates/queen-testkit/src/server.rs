//! The PostgreSQL server of this test run.

use std::time::Duration;

use anyhow::{Context, ensure};
use queen_pg::PgOptions;
use queen_pgcluster::{Cluster, ClusterOptions};
use tokio::sync::OnceCell;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

/// Names the cluster of the run, as `host=127.0.0.1 port=N user=postgres`.
pub const VARIABLE: &str = "QUEEN_TEST_PG";

/// The database from which the others are made and dropped.
pub(crate) const MAINTENANCE: &str = "postgres";

/// Where the run's server is.
#[derive(Debug)]
pub(crate) struct Server {
    host: String,
    port: u16,
    user: String,
    password: Option<String>,
    /// Kept for its pipe: when this process ends, the cluster does too. A static is never dropped.
    _own: Option<Cluster>,
}

static SERVER: OnceCell<Server> = OnceCell::const_new();

/// The server of the run, started if the run has none.
pub(crate) async fn server() -> anyhow::Result<&'static Server> {
    SERVER
        .get_or_try_init(|| async {
            match std::env::var(VARIABLE) {
                Ok(text) => Server::parse(&text).with_context(|| format!("read {VARIABLE}={text}")),
                Err(_) => Server::start_own().await,
            }
        })
        .await
}

impl Server {
    async fn start_own() -> anyhow::Result<Server> {
        let directory =
            tempfile::Builder::new().prefix("queen-test-").tempdir().context("make a directory")?;
        let cluster = Cluster::start_ephemeral(ClusterOptions::for_tests(directory.path()))
            .await
            .context("start a cluster for the tests of this process")?;
        // The cluster deletes it.
        let _ = directory.keep();
        Ok(Server {
            host: cluster.host().to_owned(),
            port: cluster.port(),
            user: cluster.user().to_owned(),
            password: None,
            _own: Some(cluster),
        })
    }

    fn parse(text: &str) -> anyhow::Result<Server> {
        let config: Config = text.parse()?;
        let (hosts, ports) = (config.get_hosts(), config.get_ports());
        ensure!(hosts.len() == 1 && ports.len() <= 1, "one host and one port are needed");
        let host = match &hosts[0] {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let password = config.get_password().map(String::from_utf8_lossy).map(|text| text.into_owned());
        Ok(Server {
            host,
            port: ports.first().copied().unwrap_or(5432),
            user: config.get_user().unwrap_or("postgres").to_owned(),
            password,
            _own: None,
        })
    }

    pub(crate) fn options(&self, database: &str) -> PgOptions {
        PgOptions {
            host: self.host.clone(),
            port: self.port,
            user: self.user.clone(),
            password: self.password.clone(),
            database: database.to_owned(),
            pool_size: 16,
            application_name: "queen/test".to_owned(),
            ..PgOptions::default()
        }
    }

    /// A session outside every pool.
    pub(crate) async fn connect(&self, database: &str) -> anyhow::Result<Client> {
        let mut config = Config::new();
        config.port(self.port).user(&self.user).dbname(database).application_name("queen/test");
        config.host(&self.host).connect_timeout(Duration::from_secs(10));
        if let Some(password) = &self.password {
            config.password(password);
        }
        let (client, connection) =
            config.connect(NoTls).await.with_context(|| format!("connect to database {database}"))?;
        tokio::spawn(connection);
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_read() {
        let server = Server::parse("host=127.0.0.1 port=5599 user=tester").unwrap();
        let options = server.options("d");
        let place = (options.host.as_str(), options.port, options.user.as_str(), options.database.as_str());
        assert_eq!(place, ("127.0.0.1", 5599, "tester", "d"));
        assert_eq!(options.password, None);

        let socket = Server::parse("host=/run/pg user=postgres password=x").unwrap();
        assert_eq!((socket.host.as_str(), socket.port), ("/run/pg", 5432));
        assert_eq!(socket.password.as_deref(), Some("x"));
        Server::parse("host=a,b port=1").unwrap_err();
        Server::parse("nonsense").unwrap_err();
    }
}
