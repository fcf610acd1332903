//! `/internal/*`, identity stubs, and what there is to say of a mesh while there is none.

use std::borrow::Cow;

use queen_types::{PartitionName, QueueName};
use serde_json::Value;

use crate::body::{self, BodyError};
use crate::json;

/// The tenant, cluster and user of a broker that authenticates nobody.
const STANDALONE: &str = "standalone";

/// The body of `POST /internal/api/notify`: a queue, and the partition if only one is meant.
///
/// # Errors
/// No JSON object, no queue, or a name out of bounds.
pub fn notify(body: &[u8]) -> Result<(QueueName, Option<PartitionName>), BodyError> {
    let Value::Object(body) = serde_json::from_str(body::text(body)?)? else {
        return Err(BodyError::bad("a JSON object is expected"));
    };
    let text = |key: &str| match body.get(key) {
        Some(Value::String(text)) => Some(Cow::Borrowed(text.as_str())),
        _ => None,
    };
    let refused = |e: queen_types::NameError| BodyError::refused(e.to_string());
    let queue = text("queue").filter(|queue| !queue.is_empty());
    let queue = queue.ok_or_else(|| BodyError::refused("queue is required"))?;
    let partition = text("partition").map(|name| PartitionName::new(name.as_ref())).transpose();
    Ok((QueueName::new(queue.as_ref()).map_err(refused)?, partition.map_err(refused)?))
}

/// Answer to a notification.
pub fn notified() -> Vec<u8> {
    json::object(|o| {
        o.str("status", "ok");
    })
}

/// What a broker without peers says of a mesh. `reason` tells the two routes apart.
pub fn no_mesh(reason: &str, maintenance: bool, pop_maintenance: bool) -> Vec<u8> {
    json::object(|o| {
        o.bool("enabled", false)
            .str("reason", reason)
            .bool("maintenance_mode", maintenance)
            .bool("pop_maintenance_mode", pop_maintenance);
    })
}

/// `GET /auth/me` of a broker that authenticates nobody: everybody is its operator.
pub fn operator(tenant: &str) -> Vec<u8> {
    json::object(|o| {
        o.bool("standalone", true)
            .str("user_id", STANDALONE)
            .str("role", "admin")
            .raw("email", "null")
            .bool("is_operator", true)
            .bool("operator_enabled", true)
            .bool("operator_live", true)
            .str("tenant_slug", STANDALONE)
            .raw("cluster", "null")
            .object("acting_cluster", |o| {
                o.str("id", tenant).str("slug", STANDALONE);
            })
            .str("act_cluster_header", "x-queen-act-cluster")
            .array("clusters", [()], |out, ()| {
                let mut o = json::Object::open(out);
                o.str("id", tenant)
                    .str("slug", STANDALONE)
                    .str("cell_slug", STANDALONE)
                    .str("role", "admin")
                    .str("status", "active")
                    .str("tenant_id", tenant)
                    .str("tenant_slug", STANDALONE);
                o.close();
            });
    })
}

/// Answer to a logout, which ends nothing.
pub fn logged_out() -> Vec<u8> {
    json::object(|o| {
        o.bool("ok", true);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications() {
        let (queue, partition) = notify(br#"{"queue":"q","partition":""}"#).unwrap();
        assert_eq!((queue.as_str(), partition.unwrap().as_str()), ("q", ""));
        assert_eq!(notify(br#"{"queue":"q"}"#).unwrap().1, None);
        for body in ["", "[]", "{}", r#"{"queue":""}"#, r#"{"queue":7}"#] {
            assert!(notify(body.as_bytes()).is_err(), "{body}");
        }
        assert_eq!(notify(b"{}").unwrap_err().to_string(), "queue is required");
    }
}
