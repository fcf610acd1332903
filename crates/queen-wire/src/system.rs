//! Health, readiness and the small pages.

use crate::json;

/// The engine word of a compatible broker; clients and probes may look for it.
const ENGINE: &str = "segments-rust";

/// Body of `GET /health`.
pub fn health(healthy: bool, database_connected: bool, version: &str) -> Vec<u8> {
    json::object(|o| {
        o.str("status", if healthy { "healthy" } else { "unhealthy" })
            .str("database", connected(database_connected))
            .str("engine", ENGINE)
            .str("version", version);
    })
}

/// Body of `GET /livez`.
pub fn livez(alive: bool) -> Vec<u8> {
    json::object(|o| {
        o.bool("alive", alive);
    })
}

/// What `GET /readyz` tells.
#[derive(Debug, Clone, Copy)]
pub struct Readiness {
    /// A push sent at this moment would be accepted.
    pub ready: bool,
    /// PostgreSQL answers.
    pub database_connected: bool,
    /// The schema is there.
    pub schema_applied: bool,
    /// Pushes can be spooled.
    pub spool_writable: bool,
    /// Push maintenance is on.
    pub maintenance: bool,
    /// The process is going down.
    pub draining: bool,
}

/// Body of `GET /readyz`.
pub fn readyz(r: Readiness) -> Vec<u8> {
    json::object(|o| {
        o.bool("ready", r.ready)
            .str("database", connected(r.database_connected))
            .str("schema", if r.schema_applied { "applied" } else { "pending" })
            .str("spool", if r.spool_writable { "writable" } else { "unwritable" })
            .bool("maintenance", r.maintenance)
            .bool("draining", r.draining);
    })
}

fn connected(connected: bool) -> &'static str {
    if connected { "connected" } else { "disconnected" }
}

/// Body of `GET /status`.
pub fn status() -> Vec<u8> {
    json::object(|o| {
        o.str("status", "ok").str("engine", ENGINE);
    })
}

/// Body of `GET /metrics` when nobody counts: every key, all zero.
pub fn metrics_zero() -> Vec<u8> {
    json::object(|o| {
        o.int("uptime", 0);
        for key in ["requests", "messages"] {
            o.object(key, |o| {
                o.int("total", 0).int("rate", 0);
            });
        }
        o.object("database", |o| {
            o.int("poolSize", 0).int("idleConnections", 0).int("waitingRequests", 0);
        });
        o.object("memory", |o| {
            for key in ["rss", "heapTotal", "heapUsed", "external", "arrayBuffers"] {
                o.int(key, 0);
            }
        });
        o.object("cpu", |o| {
            o.int("user", 0).int("system", 0);
        });
    })
}
