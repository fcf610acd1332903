//! `GET /api/v1/status/summary` and `GET /api/v1/system/config`.

use queen_types::Timestamp;

use crate::json::{self, Object};
use crate::maintenance::BufferLine;
use crate::status::OverviewLine;

/// Everything that a dashboard shows at first.
#[derive(Debug, Clone, Copy)]
pub struct SummaryLine<'a> {
    /// The broker that answers.
    pub server: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its clock.
    pub now: Timestamp,
    /// The database answered.
    pub connected: bool,
    /// Its schema is in place.
    pub schema_applied: bool,
    /// The broker is going down.
    pub draining: bool,
    /// Pushes go to the spool.
    pub push_maintenance: bool,
    /// Pops find nothing.
    pub pop_maintenance: bool,
    /// The spool of this broker.
    pub spool: BufferLine,
    /// Pops that are parked at this broker.
    pub parked: usize,
    /// The stored counters; `None`: not known.
    pub stats: Option<OverviewLine>,
    /// When a bucket begins, and messages pushed, delivered and acked a second in it.
    pub rates: &'a [(Timestamp, [f64; 3])],
    /// What is odd about the configuration.
    pub warnings: &'a [String],
}

/// Body of `status/summary`.
pub fn summary(line: &SummaryLine<'_>) -> Vec<u8> {
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    json::object(|o| {
        o.str("server", line.server)
            .str("version", line.version)
            .str("timestamp", &line.now.millis_text())
            .object("database", |o| {
                o.bool("connected", line.connected).bool("schemaApplied", line.schema_applied);
            })
            .bool("draining", line.draining)
            .object("maintenance", |o| {
                o.bool("push", line.push_maintenance).bool("pop", line.pop_maintenance);
            })
            .object("spool", |o| {
                o.int("pending", count(line.spool.pending))
                    .int("pendingFiles", count(line.spool.pending_files))
                    .int("bytes", count(line.spool.bytes))
                    .int("quarantined", count(line.spool.quarantined))
                    .bool("writable", line.spool.writable);
            })
            .count("parked", line.parked);
        match &line.stats {
            Some(stats) => o.object("stats", |o| stats.write(o)),
            None => o.raw("stats", "null"),
        };
        o.array("rates", line.rates, |out, (at, [push, pop, ack])| {
            let mut o = Object::open(out);
            o.str("timestamp", &at.millis_text())
                .real("pushPerSecond", *push)
                .real("popPerSecond", *pop)
                .real("ackPerSecond", *ack);
            o.close();
        });
        o.array("warnings", line.warnings, |out, text| json::string(out, text));
    })
}

/// Body of `system/config`. `settings` is a JSON array.
pub fn config(version: &str, settings: &str, warnings: &[String]) -> Vec<u8> {
    json::object(|o| {
        o.str("version", version).raw("settings", settings.trim());
        o.array("warnings", warnings, |out, text| json::string(out, text));
    })
}
