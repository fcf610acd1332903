use crate::options::PgOptions;
use crate::tls::Connector;
use deadpool_postgres::{ClientWrapper, Connect};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Error, NoTls, Socket};

/// Idle time after which the kernel probes the other side, and how long sent bytes may stay unacknowledged.
const TCP_PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two probes of the kernel that got no answer, and after how many of them the connection is lost.
const TCP_PROBE_EVERY: Duration = Duration::from_secs(5);
const TCP_PROBES: u32 = 3;
/// How far the server's own statement timeout lies above the broker's deadline.
const SERVER_TIMEOUT_MARGIN: Duration = Duration::from_secs(5);

/// Opens sessions, each with the settings that every statement of the broker relies on.
#[derive(Clone)]
pub(crate) struct Opener {
    pub(crate) connector: Connector,
    settings: String,
}

impl Opener {
    pub(crate) fn new(options: &PgOptions, connector: Connector) -> Opener {
        Opener { connector, settings: settings(options) }
    }

    /// A client and the task that moves its bytes. Not bounded in time; the caller does that.
    pub(crate) async fn open(&self, config: &Config) -> Result<ClientWrapper, Error> {
        let (client, task) = match &self.connector {
            Connector::Plain => open_with(config, NoTls).await?,
            Connector::Tls(tls) => open_with(config, tls.clone()).await?,
        };
        let client = ClientWrapper::new(client, task);
        client.batch_execute(&self.settings).await?;
        Ok(client)
    }
}

impl Connect for Opener {
    fn connect(
        &self,
        config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        let config = config.clone();
        Box::pin(async move {
            let (client, task) = match &self.connector {
                Connector::Plain => open_with(&config, NoTls).await?,
                Connector::Tls(tls) => open_with(&config, tls.clone()).await?,
            };
            client.batch_execute(&self.settings).await?;
            Ok((client, task))
        })
    }
}

async fn open_with<T>(config: &Config, tls: T) -> Result<(Client, JoinHandle<()>), Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    let task = tokio::spawn(async move {
        // Whoever waits on the connection gets the error too; this is for one that dies while idle.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "database connection ended");
        }
    });
    Ok((client, task))
}

/// The options as tokio-postgres takes them.
pub(crate) fn config(options: &PgOptions, connector: &Connector, application_name: &str) -> Config {
    let mut config = Config::new();
    config
        .host(&options.host)
        .port(options.port)
        .user(&options.user)
        .dbname(&options.database)
        .application_name(application_name)
        .ssl_mode(if connector.is_tls() { SslMode::Require } else { SslMode::Disable })
        .connect_timeout(options.connect_timeout)
        .keepalives(true)
        .keepalives_idle(TCP_PATIENCE)
        .keepalives_interval(TCP_PROBE_EVERY)
        .keepalives_retries(TCP_PROBES)
        .tcp_user_timeout(TCP_PATIENCE);
    if let Some(password) = &options.password {
        config.password(password);
    }
    config
}

/// Plans are made once per session, maybe while a table is still small, and kept while it grows; so no statement may
/// settle for reading a table from end to end where an index would do.
///
/// Sent after the login, not as start-up options, because it has to win over what ALTER DATABASE and ALTER ROLE say
/// and because poolers refuse start-up options that they do not know.
fn settings(options: &PgOptions) -> String {
    let server_timeout =
        (options.statement_timeout + SERVER_TIMEOUT_MARGIN).as_millis().min(i32::MAX as u128);
    format!(
        "SET TimeZone = 'UTC'; \
         SET default_transaction_isolation = 'read committed'; \
         SET search_path = pg_catalog; \
         SET plan_cache_mode = force_generic_plan; \
         SET enable_seqscan = off; \
         SET enable_bitmapscan = off; \
         SET jit = off; \
         SET idle_in_transaction_session_timeout = '60s'; \
         SET statement_timeout = {server_timeout}"
    )
}
