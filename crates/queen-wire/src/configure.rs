//! `POST /api/v1/configure`: which options exist on the wire, their types, ranges and defaults.

use queen_types::{Namespace, OptionsEdit, QueueId, QueueName, QueueOptions, RetryBackoff, Task};
use serde_json::{Map, Value};

use crate::body::{self, BodyError};
use crate::json;

/// Ceiling of `minPopWaitTime`, milliseconds; more is taken as this.
const MIN_POP_WAIT_MAX: i32 = 60_000;

/// A parsed configure call.
#[derive(Debug, Clone)]
pub struct ConfigureRequest {
    /// The queue.
    pub queue: QueueName,
    /// `"mode":"replace"`: what is left out goes back to its default.
    pub replace: bool,
    /// The options given; `null` is the option's default.
    pub edit: OptionsEdit,
}

impl ConfigureRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// No JSON object, no queue name, an unknown mode, an option of the wrong type or out of range. Options that
    /// nobody knows are ignored.
    pub fn parse(body: &[u8]) -> Result<ConfigureRequest, BodyError> {
        let Value::Object(top) = serde_json::from_str(body::text(body)?)? else {
            return Err(BodyError::bad("a JSON object is expected"));
        };
        let queue = match top.get("queue") {
            Some(Value::String(name)) => {
                QueueName::new(name.as_str()).map_err(|e| BodyError::refused(e.to_string()))?
            }
            _ => return Err(BodyError::refused("queue is required")),
        };
        let replace = match top.get("mode") {
            None | Some(Value::Null) => false,
            Some(Value::String(mode)) if mode == "merge" => false,
            Some(Value::String(mode)) if mode == "replace" => true,
            Some(other) => {
                return Err(BodyError::refused(format!(
                    "mode must be \"merge\" or \"replace\", got {}",
                    shown(other)
                )));
            }
        };
        let mut edit = match top.get("options") {
            None | Some(Value::Null) => options(&top)?,
            Some(Value::Object(bag)) => OptionsEdit {
                namespace: key(bag, "namespace", |t| Namespace::new(t))?,
                task: key(bag, "task", |t| Task::new(t))?,
                ..options(bag)?
            },
            Some(other) => {
                return Err(BodyError::refused(format!("options must be an object, got {}", shown(other))));
            }
        };
        // At the top level null and the empty string say nothing: a published client always sends null there.
        let said = |name: &str| top.get(name).is_some_and(|v| !v.is_null() && v.as_str() != Some(""));
        if said("namespace") {
            edit.namespace = key(&top, "namespace", |t| Namespace::new(t))?;
        }
        if said("task") {
            edit.task = key(&top, "task", |t| Task::new(t))?;
        }
        Ok(ConfigureRequest { queue, replace, edit })
    }
}

/// Every option but the discovery keys.
fn options(bag: &Map<String, Value>) -> Result<OptionsEdit, BodyError> {
    let d = QueueOptions::default();
    Ok(OptionsEdit {
        namespace: None,
        task: None,
        lease_time: number(bag, "leaseTime", d.lease_time)?,
        retry_limit: number(bag, "retryLimit", d.retry_limit)?,
        retry_delay: number(bag, "retryDelay", d.retry_delay)?,
        priority: number(bag, "priority", d.priority)?,
        max_queue_size: number(bag, "maxSize", d.max_queue_size)?,
        ttl: number(bag, "ttl", d.ttl)?,
        dead_letter_queue: switch(bag, "deadLetterQueue", d.dead_letter_queue)?,
        dlq_after_max_retries: switch(bag, "dlqAfterMaxRetries", d.dlq_after_max_retries)?,
        delayed_processing: number(bag, "delayedProcessing", d.delayed_processing)?,
        window_buffer: number(bag, "windowBuffer", d.window_buffer)?,
        min_pop_wait_time: number(bag, "minPopWaitTime", d.min_pop_wait_time)?
            .map(|v| v.min(MIN_POP_WAIT_MAX)),
        dedup_window_seconds: number(bag, "dedupWindowSeconds", d.dedup_window_seconds)?,
        retention_enabled: switch(bag, "retentionEnabled", d.retention_enabled)?,
        retention_seconds: number(bag, "retentionSeconds", d.retention_seconds)?,
        completed_retention_seconds: number(bag, "completedRetentionSeconds", d.completed_retention_seconds)?,
        max_wait_time_seconds: number(bag, "maxWaitTimeSeconds", d.max_wait_time_seconds)?,
        encryption_enabled: switch(bag, "encryptionEnabled", d.encryption_enabled)?,
        retry_backoff: given(bag, "retryBackoff", d.retry_backoff, "none, fixed or exponential", |v| {
            v.as_str().and_then(RetryBackoff::parse)
        })?,
        retry_delay_max: number(bag, "retryDelayMax", d.retry_delay_max)?,
        retry_jitter: given(bag, "retryJitter", d.retry_jitter, "a number in 0..1", share)?,
        max_delivery_attempts: number(bag, "maxDeliveryAttempts", d.max_delivery_attempts)?,
        redeliver_skipped: switch(bag, "redeliverSkipped", d.redeliver_skipped)?,
        group_expiry_seconds: number(bag, "groupExpirySeconds", d.group_expiry_seconds)?,
        protect_leased: switch(bag, "protectLeased", d.protect_leased)?,
        dlq_retention_seconds: number(bag, "dlqRetentionSeconds", d.dlq_retention_seconds)?,
    })
}

/// An option by its key: absent is `None`, `null` the default, anything else has to be readable.
fn given<T>(
    bag: &Map<String, Value>,
    key: &str,
    default: T,
    expected: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, BodyError> {
    match bag.get(key) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(default)),
        Some(value) => read(value)
            .map(Some)
            .ok_or_else(|| BodyError::refused(format!("{key} must be {expected}, got {}", shown(value)))),
    }
}

/// An integer from 0; numeric text counts.
fn number(bag: &Map<String, Value>, key: &str, default: i32) -> Result<Option<i32>, BodyError> {
    given(bag, key, default, "an integer in 0..2147483647", |value| {
        let n = match value {
            Value::Number(n) => n.as_i64()?,
            Value::String(s) => s.trim().parse().ok()?,
            _ => return None,
        };
        i32::try_from(n).ok().filter(|&n| n >= 0)
    })
}

/// A switch; the words that PostgreSQL takes for a boolean count, in any case.
fn switch(bag: &Map<String, Value>, key: &str, default: bool) -> Result<Option<bool>, BodyError> {
    given(bag, key, default, "true or false", |value| match value {
        Value::Bool(b) => Some(*b),
        Value::Number(n) => match n.as_i64()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        Value::String(s) => match s.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    })
}

/// A share from 0 to 1; numeric text counts.
fn share(value: &Value) -> Option<f32> {
    let share = match value {
        Value::Number(n) => n.as_f64()?,
        Value::String(s) => s.trim().parse().ok()?,
        _ => return None,
    };
    (0.0..=1.0).contains(&share).then_some(share as f32)
}

/// A discovery key inside a bag; `null` is the empty one.
fn key<T, E: std::fmt::Display>(
    bag: &Map<String, Value>,
    name: &str,
    make: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, BodyError> {
    let text = match bag.get(name) {
        None => return Ok(None),
        Some(Value::Null) => "",
        Some(Value::String(text)) => text,
        Some(other) => {
            return Err(BodyError::refused(format!("{name} must be a string, got {}", shown(other))));
        }
    };
    make(text).map(Some).map_err(|e| BodyError::refused(e.to_string()))
}

/// A value as JSON, cut short for an error text.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(64) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The answer: the queue and every effective option.
pub fn configured(queue: &QueueName, id: QueueId, options: &QueueOptions) -> Vec<u8> {
    json::object(|o| {
        o.bool("configured", true)
            .uuid("queueId", &id.0)
            .raw("partitionId", "null")
            .str("queue", queue.as_str())
            .str("namespace", options.namespace.as_str())
            .str("task", options.task.as_str())
            .str("storage", "segments")
            .object("options", |o| echo(o, options));
    })
}

/// Every option except the discovery keys, under the name it is set by.
pub(crate) fn echo(o: &mut json::Object<'_>, options: &QueueOptions) {
    let mut int = |key: &str, value: i32| {
        o.int(key, i64::from(value));
    };
    int("leaseTime", options.lease_time);
    int("retryLimit", options.retry_limit);
    int("retryDelay", options.retry_delay);
    int("priority", options.priority);
    int("maxSize", options.max_queue_size);
    int("ttl", options.ttl);
    int("delayedProcessing", options.delayed_processing);
    int("windowBuffer", options.window_buffer);
    int("minPopWaitTime", options.min_pop_wait_time);
    int("dedupWindowSeconds", options.dedup_window_seconds);
    int("retentionSeconds", options.retention_seconds);
    int("completedRetentionSeconds", options.completed_retention_seconds);
    int("maxWaitTimeSeconds", options.max_wait_time_seconds);
    int("retryDelayMax", options.retry_delay_max);
    int("maxDeliveryAttempts", options.max_delivery_attempts);
    int("groupExpirySeconds", options.group_expiry_seconds);
    int("dlqRetentionSeconds", options.dlq_retention_seconds);
    o.bool("deadLetterQueue", options.dead_letter_queue)
        .bool("dlqAfterMaxRetries", options.dlq_after_max_retries)
        .bool("retentionEnabled", options.retention_enabled)
        .bool("encryptionEnabled", options.encryption_enabled)
        .bool("redeliverSkipped", options.redeliver_skipped)
        .bool("protectLeased", options.protect_leased)
        .str("retryBackoff", options.retry_backoff.as_str())
        .raw("retryJitter", &options.retry_jitter.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> ConfigureRequest {
        ConfigureRequest::parse(body.as_bytes()).unwrap_or_else(|e| panic!("{body}: {e}"))
    }

    fn refused(body: &str) -> String {
        ConfigureRequest::parse(body.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn absent_keeps_null_restores_and_values_set() {
        let request = parse(r#"{"queue":"q","options":{"leaseTime":7,"retryLimit":null,"namespace":null}}"#);
        assert_eq!(request.edit.lease_time, Some(7));
        assert_eq!(request.edit.retry_limit, Some(3));
        assert_eq!(request.edit.ttl, None);
        assert_eq!(request.edit.namespace.unwrap().as_str(), "");
        assert!(!request.replace);
        assert!(parse(r#"{"queue":"q","mode":"replace"}"#).replace);
        assert!(!parse(r#"{"queue":"q","mode":null}"#).replace);
    }

    #[test]
    fn discovery_keys_at_the_top_say_nothing_when_empty() {
        let request = parse(r#"{"queue":"q","namespace":null,"task":"","options":{}}"#);
        assert_eq!((request.edit.namespace, request.edit.task), (None, None));
        let request = parse(r#"{"queue":"q","namespace":"n","task":"t","leaseTime":12}"#);
        assert_eq!(request.edit.namespace.unwrap().as_str(), "n");
        assert_eq!(request.edit.task.unwrap().as_str(), "t");
        assert_eq!(request.edit.lease_time, Some(12));
    }

    #[test]
    fn lenient_casts() {
        let request = parse(
            r#"{"queue":"q","options":{"leaseTime":" 12 ","retentionEnabled":"Yes","deadLetterQueue":"off",
            "dlqAfterMaxRetries":0,"minPopWaitTime":99999,"retryJitter":"0.5","retryBackoff":"fixed","noSuch":[]}}"#,
        );
        assert_eq!(request.edit.lease_time, Some(12));
        assert_eq!(request.edit.retention_enabled, Some(true));
        assert_eq!(request.edit.dead_letter_queue, Some(false));
        assert_eq!(request.edit.dlq_after_max_retries, Some(false));
        assert_eq!(request.edit.min_pop_wait_time, Some(60_000));
        assert_eq!(request.edit.retry_jitter, Some(0.5));
        assert_eq!(request.edit.retry_backoff, Some(RetryBackoff::Fixed));
    }

    #[test]
    fn refusals_name_option_and_value() {
        for (option, part) in [
            (r#""leaseTime":"soon""#, "leaseTime must be an integer in 0..2147483647, got \"soon\""),
            (r#""leaseTime":1e30"#, "got 1e+30"),
            (r#""leaseTime":1.5"#, "got 1.5"),
            (r#""leaseTime":-5"#, "got -5"),
            (r#""leaseTime":2147483648"#, "got 2147483648"),
            (r#""retryLimit":[]"#, "retryLimit must be"),
            (r#""dedupWindowSeconds":{}"#, "dedupWindowSeconds must be"),
            (r#""retentionEnabled":"maybe""#, "retentionEnabled must be true or false"),
            (r#""retryJitter":1.1"#, "retryJitter must be a number in 0..1"),
            (r#""retryBackoff":"linear""#, "retryBackoff must be none, fixed or exponential"),
            (r#""namespace":5"#, "namespace must be a string"),
            (r#""namespace":"a\u0000""#, "control characters"),
        ] {
            let text = refused(&format!(r#"{{"queue":"q","options":{{{option}}}}}"#));
            assert!(text.contains(part), "{option}: {text}");
        }
        for body in [r#"{}"#, r#"{"queue":5}"#, r#"{"queue":null,"options":{}}"#] {
            assert_eq!(refused(body), "queue is required");
        }
        assert!(refused(r#"{"queue":""}"#).contains("queue name"));
        assert!(
            refused(r#"{"queue":"q","mode":"patch"}"#)
                .contains("mode must be \"merge\" or \"replace\", got \"patch\"")
        );
        for body in ["", "{", "[]", "5"] {
            assert!(refused(body).starts_with("bad body: "), "{body}");
        }
    }

    #[test]
    fn the_answer_echoes_every_option() {
        let queue = QueueName::new("q").unwrap();
        let body = configured(&queue, QueueId(queen_types::Uuid::nil()), &QueueOptions::default());
        let answer: Value = serde_json::from_slice(&body).unwrap();
        let options = answer["options"].as_object().unwrap();
        assert_eq!(options.len(), 25);
        // What is echoed can be sent back as it is.
        let back = serde_json::json!({"queue": "q", "options": options}).to_string();
        let mut read = QueueOptions { lease_time: 1, ..QueueOptions::default() };
        parse(&back).edit.apply(&mut read);
        assert_eq!(read, QueueOptions::default());
    }
}
