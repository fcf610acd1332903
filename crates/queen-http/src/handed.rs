//! Answers that hand something over: a pop's lease is the consumer's only once the answer is on its way to it.
//!
//! The answer of a pop names what it delivers ([`Delivers`]). On a connection of our own listener that is kept, first
//! beside the body and then beside the socket, until the last byte of the answer is with the system and the client is
//! still there; whatever ends before that gives the lease back. What the system has taken counts as delivered: a reset
//! that comes later may as well be a client that has read everything.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::Service;
use hyper::{Request, Response};
use queen_core::{Broker, Receipt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::service::Router;

/// What an answer delivers. Nothing happens when it is dropped: a host with a listener of its own sees to that itself.
#[derive(Clone)]
pub(crate) struct Delivers {
    pub(crate) broker: Broker,
    pub(crate) receipt: Receipt,
}

/// Gives back what it delivers unless told that it arrived.
struct Handover(Option<Delivers>);

impl Handover {
    fn arrived(mut self) {
        self.0 = None;
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        if let Some(Delivers { broker, receipt }) = self.0.take() {
            metrics::counter!("queen_pop_answers_lost_total").increment(1);
            broker.give_back(receipt);
        }
    }
}

/// What is being handed over on one connection, which answers one request after the other.
type Underway = Arc<Mutex<Option<Handover>>>;

/// The routes for one connection, and its socket.
pub(crate) fn connection(router: Router, stream: TcpStream) -> (Handing, Watched) {
    let underway = Underway::default();
    (Handing { router, underway: underway.clone() }, Watched { stream, underway })
}

/// The routes, with answers that know what they hand over.
pub(crate) struct Handing {
    router: Router,
    underway: Underway,
}

impl Service<Request<Incoming>> for Handing {
    type Response = Response<Handed>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (answer, underway) = (self.router.call(request), self.underway.clone());
        Box::pin(async move {
            let mut answer = answer.await?;
            let delivers = answer.extensions_mut().remove::<Delivers>();
            let handover = delivers.map(|delivers| Handover(Some(delivers)));
            Ok(answer.map(|body| Handed { body, handover, underway }))
        })
    }
}

/// A body that hands something over.
pub(crate) struct Handed {
    body: Full<Bytes>,
    handover: Option<Handover>,
    underway: Underway,
}

impl Body for Handed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        // The whole body is one frame. From here on it is the socket that counts.
        if let Some(handover) = self.handover.take() {
            *self.underway.lock().unwrap_or_else(PoisonError::into_inner) = Some(handover);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket that knows when an answer has left.
pub(crate) struct Watched {
    stream: TcpStream,
    underway: Underway,
}

impl Watched {
    /// Whether the client is there: neither has the connection failed nor has the client closed its side.
    fn is_there(&self, cx: &mut Context<'_>) -> bool {
        if !matches!(self.stream.take_error(), Ok(None)) {
            return false;
        }
        let mut byte = [0; 1];
        match self.stream.poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
            Poll::Pending | Poll::Ready(Ok(1..)) => true,
            Poll::Ready(Ok(0) | Err(_)) => false,
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Only asked when everything that was buffered is written.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if let Poll::Ready(Ok(())) = &flushed {
            let handover = self.underway.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(handover) = handover
                && self.is_there(cx)
            {
                handover.arrived();
            }
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
