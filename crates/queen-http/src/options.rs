use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Renders a metrics page. Called once per scrape, on the runtime, so it must not block.
#[derive(Clone)]
pub struct Render(Arc<dyn Fn() -> String + Send + Sync>);

impl Render {
    /// Wraps the function that renders the page.
    pub fn new(render: impl Fn() -> String + Send + Sync + 'static) -> Render {
        Render(Arc::new(render))
    }

    pub(crate) fn page(&self) -> String {
        (self.0)()
    }
}

impl fmt::Debug for Render {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Render")
    }
}

/// The configuration of a process, as it may be shown.
#[derive(Debug, Clone)]
pub struct ShownConfig {
    /// Every setting with its value and its source, secrets masked: a JSON array.
    pub settings: String,
    /// What is odd about it.
    pub warnings: Vec<String>,
}

/// How the HTTP edge listens and what it allows.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Address of the listener. Port 0 takes a free one; `Server::local_addr` tells which.
    pub bind: SocketAddr,
    /// Largest request body in bytes; over it a request is answered 413. The body is held in memory until its
    /// request is answered, and a push keeps it for as long as its items wait to be stored.
    pub max_body_bytes: usize,
    /// How long a long poll waits that names no `timeout`.
    pub pop_default_timeout: Duration,
    /// Ceiling of the `timeout` that a client may ask for; zero means no ceiling. An unbounded park is a memory
    /// hazard and holds up a shutdown that does not drain.
    pub pop_max_timeout: Duration,
    /// The version that `/health` tells. It must begin with digits `x.y`.
    pub version: String,
    /// At shutdown: how long the listener keeps accepting while `/readyz` already answers 503.
    pub drain_delay: Duration,
    /// At shutdown, from its first moment and `drain_delay` included: how long requests in flight may take before their
    /// connections are dropped.
    pub shutdown_timeout: Duration,
    /// Renders `GET /metrics/prometheus`; without it that route answers an empty page.
    pub prometheus: Option<Render>,
    /// Renders the JSON of `GET /metrics`; without it that route answers the keys with zeros.
    pub metrics_json: Option<Render>,
    /// What `GET /api/v1/system/config` shows; without it that route answers 404, since the program that made these
    /// options in code has no configuration of ours.
    pub config: Option<ShownConfig>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions {
            bind: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 6632),
            max_body_bytes: 64 * 1024 * 1024,
            pop_default_timeout: Duration::from_secs(30),
            pop_max_timeout: Duration::from_secs(300),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            drain_delay: Duration::ZERO,
            shutdown_timeout: Duration::from_secs(25),
            prometheus: None,
            metrics_json: None,
            config: None,
        }
    }
}
