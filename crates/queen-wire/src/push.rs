//! `POST /api/v1/push`.

use queen_types::{MessageId, NameError, PartitionName, PushStatus, QueueName, TransactionId};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::body::{self, BodyError, Obj, Text};
use crate::json;

const CONTROL: &str = "control characters are not allowed in queue, partition or transactionId";

/// A parsed push.
#[derive(Debug)]
pub struct PushRequest<'a> {
    /// In request order.
    pub items: Vec<PushItem<'a>>,
}

/// One item of a push.
#[derive(Debug)]
pub struct PushItem<'a> {
    /// Its queue; shares the allocation of the item before it when that names the same.
    pub queue: QueueName,
    /// Its partition, `Default` when absent; shared likewise.
    pub partition: PartitionName,
    /// The deduplication key, when the producer gave one.
    pub transaction_id: Option<TransactionId>,
    /// One JSON value: a slice of the body, byte for byte.
    pub payload: &'a str,
}

#[derive(Deserialize)]
struct RawPush<'a> {
    #[serde(borrow)]
    items: Vec<Obj<RawItem<'a>>>,
}

#[derive(Deserialize)]
struct RawItem<'a> {
    #[serde(borrow)]
    queue: Text<'a>,
    #[serde(borrow, default)]
    partition: Option<Text<'a>>,
    #[serde(borrow, default, rename = "transactionId")]
    transaction_id: Option<Text<'a>>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl<'a> PushRequest<'a> {
    /// Parses a body and checks every name in it.
    ///
    /// # Errors
    /// Not JSON, not the shape of a push, a name out of bounds, a control character. One bad item refuses all.
    pub fn parse(body: &'a [u8]) -> Result<PushRequest<'a>, BodyError> {
        let raw: RawPush<'a> = body::object(body)?;
        let mut names = Names::default();
        let mut items = Vec::with_capacity(raw.items.len());
        for (index, Obj(item)) in raw.items.into_iter().enumerate() {
            items.push(PushItem {
                queue: names.queue(item.queue).map_err(|e| refusal(index, &e))?,
                partition: names.partition(item.partition).map_err(|e| refusal(index, &e))?,
                transaction_id: item
                    .transaction_id
                    .map(|t| TransactionId::new(t.0))
                    .transpose()
                    .map_err(|e| refusal(index, &e))?,
                payload: item.payload.get(),
            });
        }
        Ok(PushRequest { items })
    }
}

/// The text for a name that an item may not have.
fn refusal(index: usize, error: &NameError) -> BodyError {
    match error {
        NameError::Control { .. } => BodyError::refused(CONTROL),
        NameError::Length { field: "transactionId", max, .. } => {
            BodyError::bad(format_args!("transactionId of item {index} exceeds the {max}-byte limit"))
        }
        NameError::Length { .. } => BodyError::refused(format!("{error} (item {index})")),
    }
}

/// Makes names, handing out the last one again when the next is equal: items of one request mostly agree.
#[derive(Default)]
pub(crate) struct Names {
    queue: Option<QueueName>,
    partition: Option<PartitionName>,
}

impl Names {
    pub(crate) fn queue(&mut self, text: Text<'_>) -> Result<QueueName, NameError> {
        match &self.queue {
            Some(last) if last.as_str() == text.as_str() => Ok(last.clone()),
            _ => Ok(self.queue.insert(QueueName::new(text.0)?).clone()),
        }
    }

    pub(crate) fn partition(&mut self, text: Option<Text<'_>>) -> Result<PartitionName, NameError> {
        let wanted = text.as_ref().map_or(PartitionName::DEFAULT, Text::as_str);
        match &self.partition {
            Some(last) if last.as_str() == wanted => Ok(last.clone()),
            _ => Ok(self.partition.insert(PartitionName::new(wanted)?).clone()),
        }
    }
}

/// What the answer tells of one item.
#[derive(Debug, Clone, Copy)]
pub struct PushLine<'a> {
    /// The message's id; for a duplicate the id that was kept.
    pub message_id: MessageId,
    /// The effective key.
    pub transaction_id: &'a str,
    /// The queue as pushed.
    pub queue: &'a str,
    /// The verdict.
    pub status: PushStatus,
    /// Why, when it failed.
    pub error: Option<&'a str>,
}

/// The answer to a push, one object per item in request order.
pub fn push_answer<'a>(lines: impl ExactSizeIterator<Item = PushLine<'a>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + lines.len() * 192);
    let mut index = 0;
    json::array(&mut out, lines, |out, line| {
        json::raw(out, "{\"index\":");
        json::count(out, index);
        index += 1;
        json::raw(out, ",\"message_id\":");
        json::uuid(out, &line.message_id.0);
        json::raw(out, ",\"transaction_id\":");
        json::string(out, line.transaction_id);
        json::raw(out, ",\"queueName\":");
        json::string(out, line.queue);
        json::raw(out, ",\"status\":\"");
        json::raw(out, line.status.as_str());
        out.push(b'"');
        if let Some(error) = line.error {
            json::raw(out, ",\"error\":");
            json::string(out, error);
        }
        out.push(b'}');
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        PushRequest::parse(body.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn the_payload_is_a_slice_of_the_body() {
        let body = br#"{"items":[{"queue":"q","payload": {"a" : 1.10, "a":2 } ,"zzz":[{}]}],"x":null}"#;
        let request = PushRequest::parse(body).unwrap();
        let payload = request.items[0].payload;
        assert_eq!(payload, r#"{"a" : 1.10, "a":2 }"#);
        assert!(body.as_ptr_range().contains(&payload.as_ptr()));
    }

    #[test]
    fn null_means_absent_and_empty_means_empty() {
        let body = br#"{"items":[{"queue":"q","partition":null,"transactionId":null,"payload":null},
            {"queue":"q","partition":"","transactionId":"","payload":1}]}"#;
        let request = PushRequest::parse(body).unwrap();
        assert_eq!(request.items[0].partition.as_str(), "Default");
        assert!(request.items[0].transaction_id.is_none());
        assert_eq!(request.items[0].payload, "null");
        assert_eq!(request.items[1].partition.as_str(), "");
        assert_eq!(request.items[1].transaction_id.as_ref().unwrap().as_str(), "");
    }

    #[test]
    fn equal_names_share_one_allocation() {
        let body = br#"{"items":[{"queue":"q","payload":1},{"queue":"q","payload":1}]}"#;
        let items = PushRequest::parse(body).unwrap().items;
        assert_eq!(items[0].queue.as_str().as_ptr(), items[1].queue.as_str().as_ptr());
        assert_eq!(items[0].partition.as_str().as_ptr(), items[1].partition.as_str().as_ptr());
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
        let body = format!(r#"{{"items":[{{"queue":"q","payload":{deep},"other":{deep}}}]}}"#);
        assert_eq!(PushRequest::parse(body.as_bytes()).unwrap().items[0].payload, deep);
    }

    #[test]
    fn wrong_shapes_are_bad_bodies() {
        for body in [
            "",
            " ",
            "{",
            "[",
            "null",
            "5",
            "\"text\"",
            "[]",
            "{}",
            r#"{"items":null}"#,
            r#"{"items":{}}"#,
            r#"{"items":[5]}"#,
            r#"{"items":[null]}"#,
            r#"{"items":[[]]}"#,
            r#"{"items":[["q",null,null,1]]}"#,
            r#"{"items":[{"payload":1}]}"#,
            r#"{"items":[{"queue":"q"}]}"#,
            r#"{"items":[{"queue":"q","data":1}]}"#,
            r#"{"items":[{"queue":null,"payload":1}]}"#,
            r#"{"items":[{"queue":"q","partition":5,"payload":1}]}"#,
            r#"{"items":[{"queue":"q","transactionId":[],"payload":1}]}"#,
            r#"{"items":[{"queue":"q","payload":1,"payload":2}]}"#,
            r#"{"items":[],"items":[]}"#,
            r#"{"items":[{"queue":"q","payload":01}]}"#,
            r#"{"items":[{"queue":"q","payload":NaN}]}"#,
            r#"{"items":[]} x"#,
        ] {
            let text = refused(body);
            assert!(text.starts_with("bad body: ") && text.contains(" at line "), "{body}: {text}");
        }
    }

    #[test]
    fn texts_that_are_part_of_the_contract() {
        for field in ["queue", "partition", "transactionId"] {
            let mut item =
                serde_json::json!({"queue": "q", "partition": "p", "transactionId": "t", "payload": 1});
            item[field] = "a\u{0}b".into();
            let body = serde_json::json!({ "items": [item] }).to_string();
            assert_eq!(
                refused(&body),
                "control characters are not allowed in queue, partition or transactionId"
            );
        }
        let long = "x".repeat(65_536);
        let body = format!(
            r#"{{"items":[{{"queue":"q","payload":1}},{{"queue":"q","transactionId":"{long}","payload":1}}]}}"#
        );
        assert_eq!(refused(&body), "bad body: transactionId of item 1 exceeds the 65535-byte limit");
        assert_eq!(
            refused(r#"{"items":[{"queue":"","payload":1}]}"#),
            "queue name must be 1..255 characters, got 0 (item 0)"
        );
    }
}
