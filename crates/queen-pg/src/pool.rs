use crate::conn::{Conn, Session};
use crate::error::PgError;
use crate::options::PgOptions;
use crate::session::{self, Opener};
use crate::tls::Connector;
use deadpool_postgres::{Manager, ManagerConfig, QueueMode, RecyclingMethod, Runtime, Timeouts};
use std::sync::Arc;

/// A bounded set of connections to one database, opened when first needed. Cheap to clone; all clones are one pool.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    options: PgOptions,
    opener: Opener,
    connections: deadpool_postgres::Pool,
}

/// What the pool holds at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStatus {
    /// Most connections it may hold.
    pub max: usize,
    /// Connections it holds.
    pub size: usize,
    /// Of these, free ones.
    pub idle: usize,
    /// Of these, those in somebody's hands.
    pub active: usize,
    /// Callers waiting for one.
    pub waiting: usize,
}

impl Pool {
    /// A pool without a connection yet.
    ///
    /// # Errors
    /// [`PgError::Tls`] when the certificates of the options cannot be used.
    pub fn new(options: PgOptions) -> Result<Pool, PgError> {
        let connector = Connector::new(&options)?;
        let opener = Opener::new(&options, connector.clone());
        let config = session::config(&options, &connector, &options.application_name);
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(config, opener.clone(), recycling);
        let connections = deadpool_postgres::Pool::builder(manager)
            .max_size(options.pool_size.max(1))
            // The session that worked last has its plans and its part of the caches warm.
            .queue_mode(QueueMode::Lifo)
            .timeouts(Timeouts {
                wait: Some(options.pool_wait),
                create: Some(options.connect_timeout),
                recycle: Some(options.connect_timeout),
            })
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|e| PgError::Connect { message: e.to_string(), sqlstate: None })?;
        Ok(Pool { shared: Arc::new(Shared { options, opener, connections }) })
    }

    /// A free connection, or a new one while the pool is not full.
    ///
    /// Takes at most [`PgOptions::pool_wait`] plus [`PgOptions::connect_timeout`]. Cancel safe.
    ///
    /// # Errors
    /// [`PgError::PoolWait`], [`PgError::Connect`], or [`PgError::Closed`] after [`Pool::close`].
    pub async fn get(&self) -> Result<Conn, PgError> {
        let shared = &self.shared;
        let client = shared
            .connections
            .get()
            .await
            .map_err(|e| PgError::pool(e, shared.options.pool_wait, shared.options.connect_timeout))?;
        Ok(Conn::new(Session::Pooled(client), &shared.opener.connector, shared.options.statement_timeout))
    }

    /// A session outside the pool, closed when dropped.
    ///
    /// Takes at most [`PgOptions::connect_timeout`]. Cancel safe. Works after [`Pool::close`] too.
    ///
    /// # Errors
    /// [`PgError::Connect`].
    pub async fn connect(&self, application_name: &str) -> Result<Conn, PgError> {
        let shared = &self.shared;
        let config = session::config(&shared.options, &shared.opener.connector, application_name);
        let limit = shared.options.connect_timeout;
        let client = tokio::time::timeout(limit, shared.opener.open(&config))
            .await
            .map_err(|_| PgError::connect_timeout(limit))?
            .map_err(PgError::connect)?;
        Ok(Conn::new(Session::Own(client), &shared.opener.connector, shared.options.statement_timeout))
    }

    /// What the pool was made from.
    pub fn options(&self) -> &PgOptions {
        &self.shared.options
    }

    /// How full the pool is.
    pub fn status(&self) -> PoolStatus {
        let status = self.shared.connections.status();
        PoolStatus {
            max: status.max_size,
            size: status.size,
            idle: status.available,
            active: status.size.saturating_sub(status.available),
            waiting: status.waiting,
        }
    }

    /// Closes the idle connections and refuses further [`Pool::get`]s; connections in use close when they come back.
    pub fn close(&self) {
        self.shared.connections.close();
    }
}
