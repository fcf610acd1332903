//! Reading a request body under a size cap.

use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, EXPECT};

/// How long the rest of an oversized body is read and thrown away, so that its sender gets to read the refusal.
const DISCARD_TIME: Duration = Duration::from_secs(15);

/// Room reserved on the word of a `content-length` alone.
const RESERVE: usize = 1 << 20;

/// Why there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyFailure {
    /// Over the cap. The rest has been read away, or the sender waits for leave to send it.
    TooLarge,
    /// The connection or the chunk framing broke.
    Broken(String),
}

/// Reads a whole body. A body that arrives in one piece is not copied.
pub(crate) async fn read<B>(headers: &HeaderMap, body: B, max: usize) -> Result<Bytes, BodyFailure>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    check_length(headers, max)?;
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| BodyFailure::Broken(e.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > max {
            discard(body).await;
            return Err(BodyFailure::TooLarge);
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.reserve(
                declared(headers).unwrap_or(0).clamp(first.len() + data.len(), RESERVE.max(data.len() * 2)),
            );
            rest.extend_from_slice(&first);
            first = Bytes::new();
        }
        rest.extend_from_slice(&data);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Refuses by the declared length alone a sender that waits for leave to send.
fn check_length(headers: &HeaderMap, max: usize) -> Result<(), BodyFailure> {
    let too_large = declared(headers).is_some_and(|n| n > max);
    if too_large && headers.contains_key(EXPECT) { Err(BodyFailure::TooLarge) } else { Ok(()) }
}

/// The declared length.
pub(crate) fn declared(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads and drops what is still coming, for a bounded time. A sender that is cut off while it sends sees a broken
/// connection instead of the refusal.
async fn discard<B: Body<Data = Bytes>>(mut body: std::pin::Pin<&mut B>) {
    let drain = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(DISCARD_TIME, drain).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    fn pieces(pieces: &[&'static str]) -> impl Body<Data = Bytes, Error = Infallible> + use<> {
        let frames: Vec<_> =
            pieces.iter().map(|p| Ok(Frame::data(Bytes::from_static(p.as_bytes())))).collect();
        StreamBody::new(stream::iter(frames))
    }

    async fn read_all(parts: &[&'static str], max: usize) -> Result<Bytes, BodyFailure> {
        read(&HeaderMap::new(), pieces(parts), max).await
    }

    #[tokio::test]
    async fn pieces_are_joined_up_to_the_cap() {
        assert_eq!(read_all(&[], 4).await.unwrap(), "");
        assert_eq!(read_all(&["ab"], 4).await.unwrap(), "ab");
        assert_eq!(read_all(&["a", "b", "cd"], 4).await.unwrap(), "abcd");
        assert_eq!(read_all(&["a", "b", "cd", "e"], 4).await, Err(BodyFailure::TooLarge));
        assert_eq!(read_all(&["abcde"], 4).await, Err(BodyFailure::TooLarge));
    }

    #[tokio::test]
    async fn a_sender_that_waits_for_leave_is_refused_by_its_length() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, "5".parse().unwrap());
        headers.insert(EXPECT, "100-continue".parse().unwrap());
        assert_eq!(read(&headers, pieces(&[]), 4).await, Err(BodyFailure::TooLarge));
    }
}
