//! Maintenance modes, the spool and its quarantine.

use queen_types::{MessageId, TenantId, Timestamp};
use serde::Deserialize;

use crate::body::{self, BodyError, Obj};
use crate::json;

/// A parsed switch of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeRequest {
    /// The value asked for.
    pub enabled: bool,
    /// Answer only when the pushes that were under way have ended.
    pub wait: bool,
    /// Transactions are refused meanwhile.
    pub transactions: bool,
}

#[derive(Deserialize)]
struct RawMode {
    #[serde(default)]
    enabled: serde_json::Value,
    #[serde(default)]
    wait: Option<bool>,
    #[serde(default, rename = "includeTransactions")]
    transactions: Option<bool>,
}

impl ModeRequest {
    /// Parses the body of a switch.
    ///
    /// # Errors
    /// Not JSON, not an object, or `enabled` missing or no boolean.
    pub fn parse(body: &[u8]) -> Result<ModeRequest, BodyError> {
        let text = body::text(body)?;
        // What is no object has no `enabled` either, as long as it is JSON.
        let missing = || BodyError::refused("enabled (boolean) is required");
        serde_json::from_str::<&serde_json::value::RawValue>(text)?;
        if !text.trim_start().starts_with('{') {
            return Err(missing());
        }
        let Obj(raw) = serde_json::from_str::<Obj<RawMode>>(text)?;
        let enabled = raw.enabled.as_bool().ok_or_else(missing)?;
        let transactions = enabled && raw.transactions.unwrap_or(false);
        Ok(ModeRequest { enabled, wait: raw.wait.unwrap_or(false), transactions })
    }
}

/// The spool as the routes of the modes tell it.
#[derive(Debug, Clone, Copy, Default)]
pub struct BufferLine {
    /// Messages that wait for their replay.
    pub pending: u64,
    /// Files that hold them.
    pub pending_files: u64,
    /// Messages that could not be written.
    pub failed: u64,
    /// The replay's last word on the database, and a look at it.
    pub db_healthy: bool,
    /// Complete files.
    pub ready_files: u64,
    /// Their bytes.
    pub ready_bytes: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Messages in quarantine.
    pub quarantined: u64,
    /// A message would be taken.
    pub writable: bool,
}

/// A count as JSON has it.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Body of `GET /api/v1/status/buffers`.
pub fn buffers(line: &BufferLine) -> Vec<u8> {
    json::object(|o| {
        o.int("pending", number(line.pending))
            .int("failed", number(line.failed))
            .bool("dbHealthy", line.db_healthy)
            .int("worker", 0)
            .int("pendingFiles", number(line.pending_files))
            .int("quarantined", number(line.quarantined))
            .int("bytes", number(line.bytes))
            .bool("writable", line.writable);
    })
}

/// Body of `GET /api/v1/system/maintenance`.
pub fn maintenance(push: bool, pop: bool, transactions: bool, line: &BufferLine) -> Vec<u8> {
    json::object(|o| {
        o.bool("maintenanceMode", push)
            .bool("popMaintenanceMode", pop)
            .int("bufferedMessages", number(line.pending))
            .bool("bufferHealthy", line.db_healthy)
            .object("bufferStats", |o| {
                o.int("pendingCount", number(line.pending))
                    .int("failedCount", number(line.failed))
                    .bool("dbHealthy", line.db_healthy)
                    .object("failedFiles", |o| {
                        let megabytes = line.ready_bytes as f64 / (1024.0 * 1024.0);
                        o.int("count", number(line.ready_files))
                            .int("totalBytes", number(line.ready_bytes))
                            .raw("totalMB", &format!("{megabytes:?}"))
                            .int("failoverCount", number(line.ready_files))
                            .int("qos0Count", 0);
                    })
                    .int("pendingFiles", number(line.pending_files))
                    .int("quarantined", number(line.quarantined))
                    .int("bytes", number(line.bytes))
                    .bool("writable", line.writable);
            })
            .bool("includeTransactions", transactions);
    })
}

/// Answer to a switch of push maintenance. `mirrored`: the database has it too. `landed`: of the pushes that were waited
/// for, if that was asked.
pub fn maintenance_set(push: bool, line: &BufferLine, mirrored: bool, landed: Option<bool>) -> Vec<u8> {
    let message = if push {
        "Maintenance mode ENABLED. All PUSHes routing to file buffer."
    } else {
        "Maintenance mode DISABLED. Background processor will drain buffer to DB."
    };
    json::object(|o| {
        o.bool("maintenanceMode", push)
            .int("bufferedMessages", number(line.pending))
            .bool("bufferHealthy", line.db_healthy)
            .str("message", message)
            .bool("mirrored", mirrored);
        if let Some(landed) = landed {
            o.bool("quiet", landed);
        }
    })
}

/// Body of `GET /api/v1/system/maintenance/pop`.
pub fn pop_maintenance(pop: bool) -> Vec<u8> {
    let message = if pop {
        "Pop maintenance mode is ON. All POP operations return empty arrays."
    } else {
        "Pop maintenance mode is OFF. Normal operation."
    };
    json::object(|o| {
        o.bool("popMaintenanceMode", pop).str("message", message);
    })
}

/// Answer to a switch of pop maintenance.
pub fn pop_maintenance_set(pop: bool, mirrored: bool) -> Vec<u8> {
    let message = if pop {
        "Pop maintenance mode ENABLED. All POP operations will return empty arrays."
    } else {
        "Pop maintenance mode DISABLED. Normal operation resumed."
    };
    json::object(|o| {
        o.bool("popMaintenanceMode", pop).str("message", message).bool("mirrored", mirrored);
    })
}

/// A file of the spool.
#[derive(Debug, Clone, Copy)]
pub struct FileLine<'a> {
    /// Its name.
    pub name: &'a str,
    /// `active`, `ready`, `quarantined` or `bad`.
    pub state: &'a str,
    /// Messages in it.
    pub events: u64,
    /// Its size.
    pub bytes: u64,
}

/// Body of `GET /api/v1/system/spool`. `oldest_age_seconds` is `None` while nothing waits.
pub fn spool<'a>(
    line: &BufferLine,
    oldest_age_seconds: Option<u64>,
    quarantined_files: u64,
    files: impl ExactSizeIterator<Item = FileLine<'a>>,
) -> Vec<u8> {
    json::object(|o| {
        o.int("pending", number(line.pending))
            .int("pendingFiles", number(line.pending_files))
            .int("bytes", number(line.bytes));
        match oldest_age_seconds {
            Some(age) => o.int("oldestAgeSeconds", number(age)),
            None => o.raw("oldestAgeSeconds", "null"),
        };
        o.bool("writable", line.writable)
            .int("quarantined", number(line.quarantined))
            .int("quarantinedFiles", number(quarantined_files));
        json::array(o.key("files"), files, |out, file| {
            let mut o = json::Object::open(out);
            o.str("name", file.name)
                .str("state", file.state)
                .int("events", number(file.events))
                .int("bytes", number(file.bytes));
            o.close();
        });
    })
}

/// A message in quarantine; `event` is `None` for a record that is none.
#[derive(Debug, Clone, Copy)]
pub struct QuarantineLine<'a> {
    /// Its file.
    pub file: &'a str,
    /// Its place in the file.
    pub index: u64,
    /// What it is.
    pub event: Option<QuarantineEvent<'a>>,
    /// The server's code.
    pub sqlstate: Option<&'a str>,
    /// Why it is there.
    pub error: &'a str,
    /// When it was put there, as ISO 8601.
    pub failed_at: &'a str,
}

/// The message itself.
#[derive(Debug, Clone, Copy)]
pub struct QuarantineEvent<'a> {
    /// Owner of the queue.
    pub tenant: TenantId,
    /// Queue.
    pub queue: &'a str,
    /// Partition.
    pub partition: &'a str,
    /// Deduplication key.
    pub transaction_id: &'a str,
    /// The id that was answered.
    pub message_id: Option<MessageId>,
    /// When it was accepted.
    pub accepted_at: Option<Timestamp>,
    /// Its JSON, when that was asked for.
    pub payload: Option<&'a str>,
}

/// Body of `GET /api/v1/system/spool/quarantine`.
pub fn quarantine<'a>(lines: impl ExactSizeIterator<Item = QuarantineLine<'a>>, total: u64) -> Vec<u8> {
    json::object(|o| {
        json::array(o.key("events"), lines, |out, line| {
            let mut o = json::Object::open(out);
            o.str("file", line.file).int("index", number(line.index));
            let event = line.event;
            let tenant = event.map(|e| e.tenant.to_string());
            let message_id = event.and_then(|e| e.message_id).map(|id| id.to_string());
            let accepted_at = event.and_then(|e| e.accepted_at).map(Timestamp::millis_text);
            o.opt("tenant", tenant.as_deref())
                .opt("queue", event.map(|e| e.queue))
                .opt("partition", event.map(|e| e.partition))
                .opt("transactionId", event.map(|e| e.transaction_id))
                .opt("messageId", message_id.as_deref())
                .opt("acceptedAt", accepted_at.as_deref())
                .opt("sqlstate", line.sqlstate)
                .str("error", line.error)
                .str("failedAt", line.failed_at);
            if let Some(payload) = event.and_then(|e| e.payload) {
                o.raw("payload", payload);
            }
            o.close();
        });
        o.int("total", number(total));
    })
}

/// Parses the optional body of a requeue: which events, `None` for all.
///
/// # Errors
/// Not JSON, or `indexes` is no list of whole numbers from 0.
pub fn requeue_indexes(body: &[u8]) -> Result<Option<Vec<u64>>, BodyError> {
    #[derive(Deserialize)]
    struct Raw {
        #[serde(default)]
        indexes: Option<Vec<u64>>,
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    Ok(body::object::<Raw>(body)?.indexes)
}

/// Parses the optional body of a drain: how many milliseconds to wait.
///
/// # Errors
/// Not JSON, or `waitMs` is no whole number from 0.
pub fn drain_wait(body: &[u8]) -> Result<u64, BodyError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Raw {
        #[serde(default)]
        wait_ms: Option<u64>,
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(0);
    }
    Ok(body::object::<Raw>(body)?.wait_ms.unwrap_or(0))
}

/// `{"requeued":n}` and its like.
pub fn counted(key: &str, count: u64) -> Vec<u8> {
    json::object(|o| {
        o.int(key, number(count));
    })
}

/// Answer to a drain.
pub fn drained(drained: u64, pending: u64, quarantined: u64) -> Vec<u8> {
    json::object(|o| {
        o.int("drained", number(drained))
            .int("pending", number(pending))
            .int("quarantined", number(quarantined));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: Vec<u8>) -> String {
        String::from_utf8(body).unwrap()
    }

    #[test]
    fn a_switch_needs_a_boolean() {
        let on = ModeRequest { enabled: true, wait: false, transactions: false };
        assert_eq!(ModeRequest::parse(br#"{"enabled":true,"x":1}"#).unwrap(), on);
        let all = ModeRequest { transactions: true, ..on };
        assert_eq!(ModeRequest::parse(br#"{"enabled":true,"includeTransactions":true}"#).unwrap(), all);
        let off = ModeRequest { enabled: false, wait: false, transactions: false };
        assert_eq!(ModeRequest::parse(br#"{"enabled":false,"includeTransactions":true}"#).unwrap(), off);
        let waiting = ModeRequest { wait: true, ..off };
        assert_eq!(ModeRequest::parse(br#"{"enabled":false,"wait":true}"#).unwrap(), waiting);
        for body in
            [&b"{}"[..], br#"{"enabled":"true"}"#, br#"{"enabled":null}"#, br#"{"enabled":1}"#, b"[]", b"5"]
        {
            let error = ModeRequest::parse(body).unwrap_err().to_string();
            assert_eq!(error, "enabled (boolean) is required");
        }
        for body in [&b""[..], b"{", b"{\"enabled\":", b"\xff"] {
            assert!(ModeRequest::parse(body).unwrap_err().to_string().starts_with("bad body: "));
        }
    }

    #[test]
    fn the_public_keys_stand_where_clients_look() {
        let line =
            BufferLine { pending: 12, db_healthy: true, ready_bytes: 1024 * 1024, ..BufferLine::default() };
        assert!(text(buffers(&line)).starts_with(r#"{"pending":12,"failed":0,"dbHealthy":true,"worker":0,"#));
        let body = text(maintenance(true, false, false, &line));
        assert!(body.contains(r#""failedFiles":{"count":0,"totalBytes":1048576,"totalMB":1.0,"failoverCount":0,"qos0Count":0}"#), "{body}");
        assert!(body.starts_with(r#"{"maintenanceMode":true,"popMaintenanceMode":false,"bufferedMessages":12,"bufferHealthy":true,"#));
    }

    #[test]
    fn optional_bodies() {
        assert_eq!(requeue_indexes(b" \n").unwrap(), None);
        assert_eq!(requeue_indexes(br#"{"indexes":[0,2]}"#).unwrap(), Some(vec![0, 2]));
        assert!(requeue_indexes(br#"{"indexes":[-1]}"#).is_err());
        assert_eq!(drain_wait(b"").unwrap(), 0);
        assert_eq!(drain_wait(br#"{"waitMs":250}"#).unwrap(), 250);
        assert!(drain_wait(br#"{"waitMs":"x"}"#).is_err());
    }

    #[test]
    fn quarantined_events_with_and_without_a_payload() {
        let event = QuarantineEvent {
            tenant: TenantId::DEFAULT,
            queue: "q",
            partition: "p",
            transaction_id: "t",
            message_id: None,
            accepted_at: Some(Timestamp::EPOCH),
            payload: Some(r#"{"a": 1.10}"#),
        };
        let line = QuarantineLine {
            file: "f.buf",
            index: 0,
            event: Some(event),
            sqlstate: Some("23514"),
            error: "no",
            failed_at: "",
        };
        let body = text(quarantine([line, QuarantineLine { event: None, index: 1, ..line }].into_iter(), 7));
        assert!(body.contains(r#""acceptedAt":"1970-01-01T00:00:00.000Z","sqlstate":"23514","error":"no","failedAt":"","payload":{"a": 1.10}}"#), "{body}");
        assert!(body.ends_with(r#""total":7}"#), "{body}");
        serde_json::from_str::<serde_json::Value>(&body).unwrap();
    }
}
