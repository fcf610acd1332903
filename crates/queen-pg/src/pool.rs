use crate::conn::{Conn, Session};
use crate::error::PgError;
use crate::line::Line;
use crate::options::PgOptions;
use crate::seats::{Seat, Seats};
use crate::session::{self, Opener};
use crate::tls::Connector;
use deadpool_postgres::{
    Manager, ManagerConfig, PoolError, QueueMode, RecyclingMethod, Runtime, TimeoutType, Timeouts,
};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;
use tokio_postgres::error::SqlState;

/// Connections that a broker may open beside its pool.
const EXTRA: usize = 3;
/// How much room the server has, and how much is taken.
const ROOM: &str = "SELECT current_setting('max_connections'), current_setting('superuser_reserved_connections'), \
    COALESCE(current_setting('reserved_connections', TRUE), '0'), count(*), \
    count(*) FILTER (WHERE usename = current_user) \
    FROM pg_stat_activity WHERE backend_type = 'client backend'";

/// A bounded set of connections to one database, opened when first needed. Cheap to clone; all clones are one pool.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    options: PgOptions,
    line: Arc<Line>,
    connections: deadpool_postgres::Pool,
    seats: Seats,
    /// Why nobody gets a connection.
    held: RwLock<Option<&'static str>>,
}

/// What the pool holds at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStatus {
    /// Most connections it may hold.
    pub max: usize,
    /// Most that it may hold at this moment: fewer than `max` while the server refuses more.
    pub limit: usize,
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
        let line = Arc::new(Line::new(&options, opener.clone(), &config));
        let manager = Manager::from_connect(config, opener, recycling);
        let seats = Seats::new(options.pool_size.max(1));
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
        Ok(Pool { shared: Arc::new(Shared { options, line, connections, seats, held: RwLock::new(None) }) })
    }

    /// A free connection, or a new one while the pool is not full.
    ///
    /// Takes at most [`PgOptions::pool_wait`] plus [`PgOptions::connect_timeout`]. While the database does not answer at
    /// all, one caller a second finds out whether it does again, and the others fail at once. While the server refuses
    /// further connections for want of room, the pool makes do with those that it has. Cancel safe.
    ///
    /// # Errors
    /// [`PgError::PoolWait`], [`PgError::Connect`], or [`PgError::Closed`] after [`Pool::close`].
    pub async fn get(&self) -> Result<Conn, PgError> {
        let shared = &self.shared;
        if let Some(why) = *shared.held.read().unwrap_or_else(PoisonError::into_inner) {
            return Err(PgError::unreachable(why));
        }
        let attempt = shared.line.admit()?;
        if attempt.is_the_only_one() {
            // Idle connections of before the silence may be as dead as it looks.
            shared.connections.retain(|_, _| false);
        }
        let (until, mut news) = (Instant::now() + shared.options.pool_wait, None);
        let (client, seat) = loop {
            let seat = self.seat(until).await?;
            let error = match shared.connections.get().await {
                Ok(client) => break (client, seat),
                Err(error) => error,
            };
            if let Some(text) = crowded(&error) {
                let refused = shared.seats.refused(shared.connections.status().available);
                if refused.news {
                    news = Some(text);
                }
                // Somebody else's connection will do.
                if !refused.alone && Instant::now() < until {
                    continue;
                }
                self.say_crowded(news, None).await;
            }
            match error {
                PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => attempt.got_silence(),
                PoolError::Backend(_) => attempt.got_an_answer(),
                // The line was not tried.
                _ => drop(attempt),
            }
            return Err(PgError::pool(error, shared.options.pool_wait, shared.options.connect_timeout));
        };
        attempt.got_an_answer();
        let session = Session::Pooled(client, seat);
        let mut conn = Conn::new(session, &shared.line, shared.options.statement_timeout);
        if news.is_some() {
            self.say_crowded(news, Some(&mut conn)).await;
        }
        Ok(conn)
    }

    async fn seat(&self, until: Instant) -> Result<Seat, PgError> {
        let shared = &self.shared;
        match shared.seats.take(until.saturating_duration_since(Instant::now())).await {
            Some(seat) => Ok(seat),
            None if shared.seats.is_closed() => Err(PgError::pool_closed()),
            None => Err(PgError::PoolWait { waited: shared.options.pool_wait }),
        }
    }

    /// Says, if it is `news`, that the server refuses further connections, and what would have to fit.
    async fn say_crowded(&self, news: Option<String>, conn: Option<&mut Conn>) {
        let Some(refusal) = news else { return };
        let pool = self.shared.options.pool_size;
        let working = self.shared.seats.limit();
        let room = match conn {
            Some(conn) => conn.query(ROOM, &[]).await.ok().and_then(|rows| rows.into_iter().next()),
            None => None,
        };
        let room = room.map_or_else(
            || "max_connections of the server".to_owned(),
            |row| {
                let [max, superuser, reserved] = [0, 1, 2].map(|column| row.get::<_, &str>(column).to_owned());
                let [open, ours] = [3, 4].map(|column| row.get::<_, i64>(column));
                format!(
                    "max_connections {max}, of which superuser_reserved_connections {superuser} and \
                     reserved_connections {reserved} are not for brokers; {open} are open, {ours} of them by this role"
                )
            },
        );
        tracing::warn!(
            refusal,
            pool,
            working,
            "the server refuses further connections (SQLSTATE 53300); the pool makes do with what it has. \
             What has to fit: brokers x (DB_POOL_SIZE {pool} + {EXTRA} for cancel requests, health and schema) + reserved + \
             tools <= {room}. Raise max_connections or lower DB_POOL_SIZE"
        );
    }

    /// A session outside the pool, closed when dropped.
    ///
    /// Takes at most [`PgOptions::connect_timeout`]. Cancel safe. Works after [`Pool::close`] and [`Pool::hold`] too.
    ///
    /// # Errors
    /// [`PgError::Connect`].
    pub async fn connect(&self, application_name: &str) -> Result<Conn, PgError> {
        let shared = &self.shared;
        let config = session::config(&shared.options, &shared.line.opener.connector, application_name);
        let limit = shared.options.connect_timeout;
        let client = tokio::time::timeout(limit, shared.line.opener.open(&config))
            .await
            .map_err(|_| PgError::connect_timeout(limit))?
            .map_err(PgError::connect)?;
        shared.line.answered();
        Ok(Conn::new(Session::Own(client), &shared.line, shared.options.statement_timeout))
    }

    /// From here on [`Pool::get`] fails at once with `why`, as it does when the database cannot be reached.
    pub fn hold(&self, why: &'static str) {
        *self.shared.held.write().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Undoes [`Pool::hold`].
    pub fn release(&self) {
        *self.shared.held.write().unwrap_or_else(PoisonError::into_inner) = None;
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
            limit: self.shared.seats.limit(),
            size: status.size,
            idle: status.available,
            active: status.size.saturating_sub(status.available),
            waiting: self.shared.seats.waiting(),
        }
    }

    /// Closes the idle connections and refuses further [`Pool::get`]s; connections in use close when they come back.
    pub fn close(&self) {
        self.shared.seats.close();
        self.shared.connections.close();
    }
}

/// What the server says when it refuses a connection because there are too many.
fn crowded(error: &PoolError) -> Option<String> {
    match error {
        PoolError::Backend(error) if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) => {
            Some(error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned()))
        }
        _ => None,
    }
}
