//! Client transport for servers reached over WebSocket, one message per text frame.
//!
//! WebSocket is not part of the MCP specification, but several servers offer it with the sub-protocol `mcp`. If a
//! server does not confirm the sub-protocol, the client connects again without it.

mod tls;

use crate::{
    Class, Disconnect, EgressPolicy, Failure, Inbound, Link, Opener, Opening, Phase, Sent,
    frame::FRAME_LIMIT,
    http::headers::retry_after,
    link::{LinkIo, Verdict, decode_frame},
};
use ::http::{HeaderMap, HeaderValue, Request, header::SEC_WEBSOCKET_PROTOCOL};
use bytes::{Bytes, BytesMut};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use std::time::Duration;
use tls::Socket;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time,
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Error, Message, Utf8Bytes,
        client::IntoClientRequest,
        error::{CapacityError, ProtocolError, SubProtocolError},
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};
use url::Url;

/// Interval between pings.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Maximum silence before the connection counts as lost. A pong ends the silence.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// Time limit for sending the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

const SUB_PROTOCOL: HeaderValue = HeaderValue::from_static("mcp");

type WsConnection = WebSocketStream<Socket>;

/// A byte stream that can carry a WebSocket.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// Address and settings of a server.
#[derive(Clone, Debug)]
pub struct WsEndpoint {
    /// URL of the server, `ws://` or `wss://`.
    pub url: Url,
    /// Configured headers of the opening request, such as static credentials.
    pub headers: HeaderMap,
    /// Maximum size of a message from the server, in bytes.
    pub frame_limit: usize,
    /// Addresses that may be dialled; `None` allows all.
    pub egress: Option<EgressPolicy>,
}

impl WsEndpoint {
    /// Creates an endpoint with default settings and no configured headers.
    pub fn new(url: Url) -> WsEndpoint {
        WsEndpoint { url, headers: HeaderMap::new(), frame_limit: FRAME_LIMIT, egress: None }
    }

    async fn start(&self) -> Result<Link, Failure> {
        let connection = match self.connect(Some(SUB_PROTOCOL)).await {
            Err(Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(
                SubProtocolError::NoSubProtocol,
            ))) => self.connect(None).await,
            connected => connected,
        };
        let connection = connection.map_err(|error| self.connect_failure(&error))?;
        Ok(Link::start(false, |link_io| run(connection, link_io)))
    }

    async fn connect(&self, sub_protocol: Option<HeaderValue>) -> Result<WsConnection, Error> {
        let mut request: Request<()> = self.url.as_str().into_client_request()?;
        request.headers_mut().extend(self.headers.clone());
        if let Some(sub_protocol) = sub_protocol {
            request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, sub_protocol);
        }
        let config = limited_config(self.frame_limit);
        let socket = Socket::connect(&self.url, self.egress).await?;
        let (connection, _) = client_async_with_config(request, socket, Some(config)).await?;
        Ok(connection)
    }

    fn connect_failure(&self, error: &Error) -> Failure {
        let place = self.url.origin().ascii_serialization();
        let place = if place == "null" { self.url.as_str() } else { &place };
        match error {
            Error::Http(response) => {
                let status = response.status();
                let failure = Failure::connect(format!("the server answered {status}"));
                let wait = retry_after(status, response.headers());
                failure.with_status(status.as_u16()).with_retry_after(wait)
            }
            Error::Io(error) => Failure::connect(format!("could not connect to `{place}`: {error}")),
            error => {
                let what = format!("no WebSocket at `{place}`: {error}");
                Failure::new(Class::Connect, Phase::Open, Sent::No, what)
            }
        }
    }
}

impl Opener for WsEndpoint {
    fn open(&self) -> Opening<'_> {
        Box::pin(self.start())
    }
}

/// Creates a client link over a stream whose WebSocket handshake is already complete.
pub async fn link_over<S: ByteStream + 'static>(stream: S, frame_limit: usize) -> Link {
    let connection =
        WebSocketStream::from_raw_socket(stream, Role::Client, Some(limited_config(frame_limit))).await;
    Link::start(false, |link_io| run(connection, link_io))
}

fn limited_config(frame_limit: usize) -> WebSocketConfig {
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(frame_limit);
    config.max_frame_size = Some(frame_limit);
    config
}

async fn run<S: ByteStream>(connection: WebSocketStream<S>, link_io: LinkIo) -> Disconnect {
    let (mut sink, mut stream) = connection.split();
    let LinkIo { mut outbound, inbound, written, .. } = link_io;
    let writing = async {
        let mut ping = time::interval_at(time::Instant::now() + PING_INTERVAL, PING_INTERVAL);
        loop {
            tokio::select! {
                message = outbound.recv() => {
                    let Some(message) = message else { return };
                    // Counted before sending: when a write fails, it is unknown how much of it the server received.
                    written.add(1);
                    let mut sent = feed(&mut sink, &message).await;
                    while sent.is_ok() && let Ok(message) = outbound.try_recv() {
                        written.add(1);
                        sent = feed(&mut sink, &message).await;
                    }
                    if sent.is_ok() {
                        let _ = sink.flush().await;
                    }
                }
                _ = ping.tick() => drop(sink.send(Message::Ping(Bytes::new())).await),
            }
        }
    };
    let disconnect = tokio::select! {
        // Poll the writer first, so that messages queued before the session closed are still written.
        biased;
        () = writing => None,
        () = inbound.closed() => None,
        disconnect = read(&mut stream, &inbound) => Some(disconnect),
    };
    let close_frame =
        sink.send(Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() })));
    let _ = time::timeout(CLOSE_TIMEOUT, close_frame).await;
    match disconnect {
        None => Disconnect::because("the client closed the connection"),
        Some(disconnect) => {
            let _ = inbound.send(Inbound::Disconnected(disconnect.clone())).await;
            disconnect
        }
    }
}

async fn feed<S: ByteStream>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    message: &crate::Outbound,
) -> Result<(), Error> {
    let mut text = BytesMut::new();
    message.write(&mut text);
    match Utf8Bytes::try_from(text.freeze()) {
        Ok(text) if !text.is_empty() => sink.feed(Message::Text(text)).await,
        _ => Ok(()),
    }
}

/// Delivers messages from the server until the connection ends.
async fn read<S: ByteStream>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    inbound: &tokio::sync::mpsc::Sender<Inbound>,
) -> Disconnect {
    loop {
        let message = match time::timeout(MAX_SILENCE, stream.next()).await {
            Err(_) => return Disconnect::because("the server was silent for too long"),
            Ok(None) => return Disconnect::because("the server closed the connection"),
            Ok(Some(Err(error))) => return disconnect_of(&error),
            Ok(Some(Ok(message))) => message,
        };
        let frame = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(bytes) => bytes,
            Message::Close(Some(CloseFrame { code, reason })) => {
                return Disconnect::because(format!("the server closed the connection: {code} {reason}"));
            }
            _ => continue,
        };
        match decode_frame(&frame) {
            Verdict::Deliver(received) => {
                if inbound.send(received).await.is_err() {
                    return Disconnect::because("the client closed the connection");
                }
            }
            Verdict::Noise => {}
            Verdict::Violation(why) => return Disconnect::protocol_violation(why),
        }
    }
}

fn disconnect_of(error: &Error) -> Disconnect {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            Disconnect::protocol_violation("a message is longer than the limit")
        }
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
        | Error::ConnectionClosed
        | Error::Io(_) => Disconnect::because("the connection broke"),
        Error::Protocol(error) => {
            Disconnect::protocol_violation(format!("the server violated the WebSocket protocol: {error}"))
        }
        error => {
            Disconnect::protocol_violation(format!("the server violated the WebSocket protocol: {error}"))
        }
    }
}
