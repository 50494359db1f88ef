//! Client transport for legacy SSE servers (2024-11-05): one event stream from the server, and a POST endpoint that
//! it announces on the stream.

use crate::{
    Disconnect, Failure, Inbound, Link, Opener, Opening, Outbound, Phase, Written,
    events::{SseEvent, SseParser, is_event_stream},
    frame::FRAME_LIMIT,
    http::{Answer, HttpClient, headers::retry_after, send_request, status_failure},
    link::{LinkIo, Verdict, decode_frame},
    oauth::{self, Authorizer},
};
use ::http::{HeaderMap, header};
use bytes::BytesMut;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::{task::JoinSet, time};
use url::Url;

/// Time limit for the server to accept a message. Its answer arrives on the stream.
const POST_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of messages waiting behind the POST in flight.
const MAX_WAITING: usize = 64;

/// Address and settings of a server.
#[derive(Clone, Debug)]
pub struct SseEndpoint {
    /// URL of the event stream.
    pub url: Url,
    /// Configured headers of every request, such as static credentials.
    pub headers: HeaderMap,
    /// Source of tokens that expire, such as OAuth.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Maximum silence on the stream. Servers send comments to keep it alive.
    pub read_timeout: Duration,
    /// Maximum size of a message from the server, in bytes.
    pub frame_limit: usize,
    /// Connection pool, shared with other endpoints.
    pub client: HttpClient,
}

/// The server's event stream, with events that have been parsed but not returned.
pub(crate) struct SseStream {
    endpoint: SseEndpoint,
    response: Answer,
    events: SseParser,
    waiting: VecDeque<SseEvent>,
}

impl SseEndpoint {
    /// Creates an endpoint with default settings and no configured headers.
    pub fn new(url: Url, client: HttpClient) -> SseEndpoint {
        let read_timeout = Duration::from_secs(300);
        let (headers, authorizer) = (HeaderMap::new(), None);
        SseEndpoint { url, headers, authorizer, read_timeout, frame_limit: FRAME_LIMIT, client }
    }

    async fn start(&self) -> Result<Link, Failure> {
        let (stream, post_url) = self.connect().await?;
        Ok(Link::start(false, |link_io| run(stream, post_url, link_io)))
    }

    /// Opens the stream and waits for the URL of the POSTs.
    pub(crate) async fn connect(&self) -> Result<(SseStream, Url), Failure> {
        let mut stream = self.listen().await?;
        let post_url = stream.wait_for_post_url().await?;
        Ok((stream, post_url))
    }

    async fn listen(&self) -> Result<SseStream, Failure> {
        let request = self.client.pool(&self.url)?.get(self.url.clone()).headers(self.headers.clone());
        let request = request.header(header::ACCEPT, "text/event-stream");
        let response = send_request(self.authorizer.as_ref(), &self.url, request).await?;
        let status = response.status();
        if !status.is_success() {
            let failure = Failure::connect(format!("the server answered {status}"));
            let challenge = oauth::challenge(response.headers());
            let wait = retry_after(status, response.headers());
            return Err(failure
                .with_status(status.as_u16())
                .with_challenge(challenge)
                .with_retry_after(wait));
        }
        if !is_event_stream(response.headers()) {
            return Err(Failure::connect("the server offers no event stream at this address"));
        }
        let events = SseParser::new(self.frame_limit);
        Ok(SseStream { endpoint: self.clone(), response, events, waiting: Default::default() })
    }
}

impl Opener for SseEndpoint {
    fn open(&self) -> Opening<'_> {
        Box::pin(self.start())
    }
}

impl SseStream {
    /// Returns the next event, or why the stream ended. Cancel-safe: a chunk is buffered as soon as it has been read.
    async fn next(&mut self) -> Result<SseEvent, Disconnect> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(event);
            }
            if self.events.is_broken() {
                return Err(Disconnect::protocol_violation("a message is longer than the limit"));
            }
            let chunk = time::timeout(self.endpoint.read_timeout, self.response.chunk()).await;
            let chunk = chunk.map_err(|_| Disconnect::because("the server was silent for too long"))?;
            let Ok(Some(chunk)) = chunk else {
                return Err(Disconnect::because("the server closed the stream"));
            };
            let received = self.events.push(&chunk);
            self.waiting.extend(
                received.map_err(|_| Disconnect::protocol_violation("a message is longer than the limit"))?,
            );
        }
    }

    /// Waits for the `endpoint` event and returns the URL for POSTs.
    ///
    /// Only the stream's own origin is accepted. Otherwise a server could make us send credentials anywhere.
    async fn wait_for_post_url(&mut self) -> Result<Url, Failure> {
        let event = loop {
            let event = self.next().await.map_err(|disconnect| Failure::connect(disconnect.to_string()))?;
            if event.kind == "endpoint" {
                break event;
            }
        };
        let named = String::from_utf8_lossy(&event.data);
        let url = self.endpoint.url.join(named.trim());
        match url {
            Ok(url) if url.origin() == self.endpoint.url.origin() => Ok(url),
            _ => {
                let what = format!("the server names another origin for messages: `{named}`");
                Err(Failure::protocol(what).during(Phase::Open))
            }
        }
    }
}

pub(crate) async fn run(mut stream: SseStream, post_url: Url, mut link_io: LinkIo) -> Disconnect {
    let mut posts = Posts::new(stream.endpoint.clone(), post_url, link_io.written.clone());
    // An inbound message for which the session has no capacity yet. POSTs continue meanwhile, because the session may
    // be waiting for one before it reads on.
    let mut held = None;
    let disconnect = loop {
        tokio::select! {
            Ok(permit) = link_io.inbound.reserve(), if held.is_some() => {
                if let Some(received) = held.take() {
                    permit.send(received);
                }
            }
            message = link_io.outbound.recv(), if posts.has_capacity() => match message {
                Some(message) => posts.push(message),
                None => return Disconnect::because("the client closed the connection"),
            },
            Some(posted) = posts.in_flight.join_next() => {
                posts.send_next();
                if let Ok(Some(failed)) = posted {
                    let _ = link_io.inbound.send(failed).await;
                }
            }
            event = stream.next(), if held.is_none() => match event {
                Ok(event) if event.kind == "message" => match decode_frame(&event.data) {
                    Verdict::Deliver(received) => held = Some(received),
                    Verdict::Noise => {}
                    Verdict::Violation(why) => break Disconnect::protocol_violation(why),
                },
                // A second `endpoint` event does not change the URL.
                Ok(_) => {}
                Err(disconnect) => break disconnect,
            },
            () = link_io.inbound.closed() => return Disconnect::because("the client closed the connection"),
        }
    };
    let _ = link_io.inbound.send(Inbound::Disconnected(disconnect.clone())).await;
    disconnect
}

/// Sends messages to the server one at a time, so that they arrive in order.
struct Posts {
    endpoint: SseEndpoint,
    post_url: Url,
    written: Written,
    in_flight: JoinSet<Option<Inbound>>,
    /// Id of the request in flight, if the message is a request.
    request: Option<u64>,
    waiting: VecDeque<Outbound>,
}

impl Posts {
    fn new(endpoint: SseEndpoint, post_url: Url, written: Written) -> Posts {
        let (in_flight, request, waiting) = (JoinSet::new(), None, VecDeque::new());
        Posts { endpoint, post_url, written, in_flight, request, waiting }
    }

    fn has_capacity(&self) -> bool {
        self.waiting.len() < MAX_WAITING
    }

    fn push(&mut self, message: Outbound) {
        if let Outbound::Abandon { id } = message {
            return self.abandon(id);
        }
        self.waiting.push_back(message);
        self.send_next();
    }

    fn send_next(&mut self) {
        if !self.in_flight.is_empty() {
            return;
        }
        let Some(message) = self.waiting.pop_front() else { return };
        // Counted before sending: when a POST fails, it is unknown how much of it the server received.
        self.written.add(1);
        self.request = request_id(&message);
        self.in_flight.spawn(post(self.endpoint.clone(), self.post_url.clone(), message));
    }

    /// Aborts the POST of an abandoned request, so that a server that does not accept it cannot block the next
    /// message.
    fn abandon(&mut self, id: u64) {
        self.written.add(1);
        if self.request == Some(id) {
            self.in_flight.abort_all();
        }
    }
}

fn request_id(message: &Outbound) -> Option<u64> {
    match message {
        Outbound::Request { id, .. } => Some(*id),
        _ => None,
    }
}

/// Posts one message. Returns the failure if the message is a request and the server did not accept it.
async fn post(endpoint: SseEndpoint, post_url: Url, message: Outbound) -> Option<Inbound> {
    let id = request_id(&message);
    let mut body = BytesMut::new();
    message.write(&mut body);
    let sending = async {
        let pool = match endpoint.client.pool(&post_url) {
            Ok(pool) => pool,
            Err(failure) => return Some(failure),
        };
        let request = pool.post(post_url.clone()).headers(endpoint.headers);
        let request = request.header(header::CONTENT_TYPE, "application/json").body(body.freeze());
        match send_request(endpoint.authorizer.as_ref(), &post_url, request).await {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(status_failure(response).await),
            Err(failure) => Some(failure),
        }
    };
    let sent = time::timeout(POST_TIMEOUT, sending).await;
    let failure = sent.unwrap_or_else(|_| Some(Failure::timeout(crate::Sent::Unknown)))?;
    id.map(|id| Inbound::Failed { id, failure })
}
