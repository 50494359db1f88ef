//! Client transport for servers reached over WebSocket, one message per text frame.
//!
//! WebSocket is not part of the MCP specification, but several servers offer it with the sub-protocol `mcp`. If a
//! server does not confirm the sub-protocol, the client connects again without it.

mod tls;

use crate::{
    Class, Failure, Goodbye, Inbound, Link, Opener, Opening, Phase, Reach, Sent,
    frame::FRAME_LIMIT,
    http::headers::retry_after,
    link::{FarEnd, Verdict, hear},
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
const PING: Duration = Duration::from_secs(20);

/// Maximum silence before the connection counts as lost. A pong ends the silence.
const SILENCE: Duration = Duration::from_secs(60);

/// Time limit for sending the close frame.
const FAREWELL: Duration = Duration::from_secs(2);

const SUB_PROTOCOL: HeaderValue = HeaderValue::from_static("mcp");

type Wire = WebSocketStream<Socket>;

/// A byte stream that can carry a WebSocket.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Address and settings of a server.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// URL of the server, `ws://` or `wss://`.
    pub url: Url,
    /// Configured headers of the opening request, such as static credentials.
    pub headers: HeaderMap,
    /// Maximum size of a message from the server, in bytes.
    pub frame_limit: usize,
    /// Addresses that may be dialled; `None` allows all.
    pub reach: Option<Reach>,
}

impl Endpoint {
    /// Creates an endpoint with default settings and no configured headers.
    pub fn new(url: Url) -> Endpoint {
        Endpoint { url, headers: HeaderMap::new(), frame_limit: FRAME_LIMIT, reach: None }
    }

    async fn start(&self) -> Result<Link, Failure> {
        let wire = match self.connect(Some(SUB_PROTOCOL)).await {
            Err(Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(
                SubProtocolError::NoSubProtocol,
            ))) => self.connect(None).await,
            connected => connected,
        };
        let wire = wire.map_err(|error| self.not_connected(&error))?;
        Ok(Link::start(false, |far_end| run(wire, far_end)))
    }

    async fn connect(&self, sub_protocol: Option<HeaderValue>) -> Result<Wire, Error> {
        let mut request: Request<()> = self.url.as_str().into_client_request()?;
        request.headers_mut().extend(self.headers.clone());
        if let Some(sub_protocol) = sub_protocol {
            request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, sub_protocol);
        }
        let config = bounded(self.frame_limit);
        let socket = Socket::connect(&self.url, self.reach).await?;
        let (wire, _) = client_async_with_config(request, socket, Some(config)).await?;
        Ok(wire)
    }

    fn not_connected(&self, error: &Error) -> Failure {
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

impl Opener for Endpoint {
    fn open(&self) -> Opening<'_> {
        Box::pin(self.start())
    }
}

/// Creates a client link over a stream whose WebSocket handshake is already complete.
pub async fn link_over<S: Stream + 'static>(stream: S, frame_limit: usize) -> Link {
    let wire = WebSocketStream::from_raw_socket(stream, Role::Client, Some(bounded(frame_limit))).await;
    Link::start(false, |far_end| run(wire, far_end))
}

fn bounded(frame_limit: usize) -> WebSocketConfig {
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(frame_limit);
    config.max_frame_size = Some(frame_limit);
    config
}

async fn run<S: Stream>(wire: WebSocketStream<S>, far_end: FarEnd) -> Goodbye {
    let (mut sink, mut stream) = wire.split();
    let FarEnd { mut outbound, inbound, written, .. } = far_end;
    let writing = async {
        let mut ping = time::interval_at(time::Instant::now() + PING, PING);
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
    let goodbye = tokio::select! {
        // Poll the writer first, so that messages queued before the session closed are still written.
        biased;
        () = writing => None,
        () = inbound.closed() => None,
        goodbye = read(&mut stream, &inbound) => Some(goodbye),
    };
    let farewell =
        sink.send(Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() })));
    let _ = time::timeout(FAREWELL, farewell).await;
    match goodbye {
        None => Goodbye::because("we hung up"),
        Some(goodbye) => {
            let _ = inbound.send(Inbound::Gone(goodbye.clone())).await;
            goodbye
        }
    }
}

async fn feed<S: Stream>(
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
async fn read<S: Stream>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    inbound: &tokio::sync::mpsc::Sender<Inbound>,
) -> Goodbye {
    loop {
        let message = match time::timeout(SILENCE, stream.next()).await {
            Err(_) => return Goodbye::because("the server was silent for too long"),
            Ok(None) => return Goodbye::because("the server closed the connection"),
            Ok(Some(Err(error))) => return broken(&error),
            Ok(Some(Ok(message))) => message,
        };
        let frame = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(bytes) => bytes,
            Message::Close(Some(CloseFrame { code, reason })) => {
                return Goodbye::because(format!("the server closed the connection: {code} {reason}"));
            }
            _ => continue,
        };
        match hear(&frame) {
            Verdict::Deliver(heard) => {
                if inbound.send(heard).await.is_err() {
                    return Goodbye::because("we hung up");
                }
            }
            Verdict::Noise => {}
            Verdict::Breach(why) => return Goodbye::breach(why),
        }
    }
}

fn broken(error: &Error) -> Goodbye {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            Goodbye::breach("a message is longer than the limit")
        }
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
        | Error::ConnectionClosed
        | Error::Io(_) => Goodbye::because("the connection broke"),
        Error::Protocol(error) => {
            Goodbye::breach(format!("the server broke the WebSocket protocol: {error}"))
        }
        error => Goodbye::breach(format!("the server broke the WebSocket protocol: {error}")),
    }
}
