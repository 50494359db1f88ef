//! One plain HTTP connection, driven by the task that waits for its response.
//!
//! With a task of its own, a connection would need two wakeups for the head of a response, and two for each piece of
//! its body.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{self, Connection, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};
use tokio::net::TcpStream;

/// A request with its whole body.
pub(super) type PlainRequest = ::http::Request<Full<Bytes>>;

/// An open connection. It makes progress only while one of its methods is awaited.
#[derive(Debug)]
pub(super) struct PlainConnection {
    send: SendRequest<Full<Bytes>>,
    /// Boxed, because a call moves it several times. Dropped at its end, which returns a request that it has not sent.
    connection: Option<Box<Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
}

impl PlainConnection {
    pub(super) async fn new(stream: TcpStream) -> hyper::Result<PlainConnection> {
        let (send, connection) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(PlainConnection { send, connection: Some(Box::new(connection)) })
    }

    /// Sends a request and waits for the head of the response. The error contains the request if nothing of it was
    /// sent.
    pub(super) async fn send(
        &mut self,
        request: PlainRequest,
    ) -> Result<::http::Response<Incoming>, TrySendError<PlainRequest>> {
        let response = self.send.try_send_request(request);
        self.drive(response).await
    }

    /// Waits for `work`, which waits for this connection.
    pub(super) async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            // First, so that the connection sees what is wanted of it.
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            self.poll(context);
            work.as_mut().poll(context)
        })
        .await
    }

    /// Returns whether the connection can take a request: it is open, and the last response has been read.
    pub(super) fn is_idle(&mut self) -> bool {
        // Nothing waits for the connection, so there is nothing to wake.
        self.poll(&mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.send.is_ready()
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        // The waiting request receives the connection's error.
        if let Some(connection) = &mut self.connection
            && Pin::new(&mut **connection).poll(context).is_ready()
        {
            self.connection = None;
        }
    }
}
