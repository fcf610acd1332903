//! What the benches share: messages as producers send them.

pub mod world;

use std::fmt::Write;

/// A JSON payload of exactly 256 bytes. Keys repeat from message to message and values differ, as in real traffic.
pub fn payload(n: usize) -> String {
    let mut json = format!(
        r#"{{"order":{},"customer":"c-{:08x}","state":"created","amount":{}.{:02},"note":""#,
        n * 7919,
        n.wrapping_mul(2_654_435_761) as u32,
        n * 31 % 997,
        n % 100
    );
    while json.len() < 254 {
        json.push(char::from(b'a' + (json.len() * (n + 3) % 26) as u8));
    }
    json.push_str("\"}");
    json
}

/// The body of `POST /api/v1/push` with `count` messages for one partition.
pub fn push_body(count: usize) -> Vec<u8> {
    let mut body = String::from(r#"{"items":["#);
    for n in 0..count {
        let comma = if n == 0 { "" } else { "," };
        // Writing into a String cannot fail.
        let _ = write!(
            body,
            r#"{comma}{{"queue":"orders","partition":"customer-7","transactionId":"txn-{n:08}","payload":{}}}"#,
            payload(n)
        );
    }
    body.push_str("]}");
    body.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_their_size_and_bodies_are_json() {
        assert!((0..1000).all(|n| payload(n).len() == 256));
        for count in [0, 1, 100] {
            let parsed = queen_wire::PushRequest::parse(&push_body(count)).map(|r| r.items.len());
            assert_eq!(parsed.ok(), Some(count));
        }
    }
}
