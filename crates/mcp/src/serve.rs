//! The server side of MCP: serves a [`Handler`] over stdio, streamable HTTP, legacy SSE and WebSocket, in both
//! protocol eras.
//!
//! The handler receives requests with raw parameters and returns raw results. This module implements the protocol's
//! own parts once for all transports: handshake, discovery, pings, log levels, subscriptions and the members that
//! every result needs. It does not know what the handler serves.

mod announcements;
mod client;
mod connection;
mod dispatch;
pub mod http;
mod listen;
mod request_params;
mod stdio;
mod task_store;
mod watched;
mod ws;

pub use crate::model::LogLevel;
use crate::{
    News, Outbound, Raw, RpcError,
    model::Tool,
    session::{LATEST_LEGACY, MODERN},
    tasks,
};
use announcements::{Announcements, Announcer};
pub use client::{Client, ClientRef, ClientTerms};
pub use dispatch::complete_list;
pub use request_params::RequestParams;
use serde_json::json;
use std::{borrow::Cow, collections::BTreeSet, future::Future, pin::Pin, sync::Arc, time::Duration};
pub use stdio::over_streams;
pub use task_store::{TaskHandle, TaskLimits, TaskStore};
use tokio::sync::{mpsc, watch};
use watched::{ResourceSubscription, SubscribedResources};
pub use ws::over_websocket;

/// Notifications buffered per client. A client that falls further behind misses some.
const ANNOUNCEMENT_BUFFER: usize = 64;

/// Maximum number of messages in one JSON-RPC batch.
const MAX_BATCH: usize = 256;

/// Queues messages for a client. They are boxed, because a channel reserves space for 32 of them, and most requests
/// need none.
pub(crate) type MessageSender = mpsc::Sender<Box<Outbound>>;

/// Receives the messages for a client.
pub(crate) type MessageReceiver = mpsc::Receiver<Box<Outbound>>;

/// A pending response of a [`Handler`].
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;

/// Pending instructions of a [`Handler`].
pub type InstructionsFuture = Pin<Box<dyn Future<Output = Option<String>> + Send>>;

/// Answers the requests of MCP clients.
pub trait Handler: Send + Sync + 'static {
    /// Returns the server's identity, capabilities and settings. [`Service::new`] calls it once.
    fn about(&self) -> About;

    /// Returns usage instructions for clients and their models. Every handshake and every discovery asks for them.
    fn instructions(&self) -> InstructionsFuture {
        Box::pin(std::future::ready(None))
    }

    /// Answers one request. The future is dropped when the client cancels the request or disconnects.
    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture;

    /// Receives a notification from a handshake-era client. The default implementation ignores it.
    fn notified(&self, method: &str, params: Option<Raw>, client: &ClientRef) {
        let _ = (method, params, client);
    }

    /// Prepares to announce changes of this resource, or returns why it cannot.
    ///
    /// Called for clients of both eras, after the URI has been added to [`Service::watched`].
    fn watch(&self, uri: &str) -> Pin<Box<dyn Future<Output = Result<(), RpcError>> + Send>> {
        let _ = uri;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the tasks of this server, which then answer `tasks/*` instead of the handler.
    fn tasks(&self) -> Option<&TaskStore> {
        None
    }

    /// Returns the tool with this name, to check the HTTP headers that repeat its arguments.
    fn tool(&self, name: &str) -> Option<Tool> {
        let _ = name;
        None
    }
}

/// Identity, capabilities and settings of a server.
#[derive(Clone, Debug)]
pub struct About {
    /// `serverInfo`: an object with at least `name` and `version`.
    pub info: Raw,
    /// The server capabilities, as an object.
    pub capabilities: Raw,
    /// Cache lifetime of lists and resources, unless the handler's result has its own `ttlMs`.
    pub ttl: Duration,
    /// Whether caches may share lists and resources between users (`cacheScope`).
    pub shared_cache: bool,
    /// Protocol eras that the server accepts.
    pub eras: Eras,
    /// Tasks that the server offers, declared in the form of the client's era.
    pub tasks: OfferedTasks,
}

/// Tasks that a server offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfferedTasks {
    /// No tasks.
    #[default]
    None,
    /// Tool calls may become tasks, but clients of 2025-11-25 cannot list theirs.
    Unlisted,
    /// Tool calls may become tasks, and clients of 2025-11-25 can list theirs.
    Listed,
}

/// Protocol eras that a server accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eras {
    /// Both eras; the client chooses.
    #[default]
    Both,
    /// Only protocol versions with an `initialize` handshake.
    LegacyOnly,
    /// Only the stateless version, 2026-07-28.
    ModernOnly,
}

/// One request from a client.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// JSON-RPC method.
    pub method: String,
    /// JSON-RPC parameters, undecoded.
    pub params: Option<Raw>,
    /// Members of the parameters that the protocol defines.
    pub members: Box<RequestParams>,
    /// Head of the HTTP request, if the transport has one: headers, and extensions added by the embedding server.
    pub http: Option<Arc<::http::request::Parts>>,
}

impl Incoming {
    /// Reads the parameters of a request.
    fn new(method: String, params: Option<Raw>, http: Option<Arc<::http::request::Parts>>) -> Incoming {
        let members = RequestParams::read(params.as_ref());
        Incoming { method, params, members, http }
    }
}

/// Serves a handler on any number of transports. Cheap to clone.
///
/// The transports know their handler only as a `dyn Handler`, so they are compiled once and not once for each handler.
pub struct Service<H: ?Sized = dyn Handler> {
    inner: Arc<Inner<H>>,
}

struct Inner<H: ?Sized> {
    about: About,
    announcer: Announcer,
    watched: SubscribedResources,
    handler: H,
}

impl About {
    /// Describes a server that accepts both eras and allows no caching.
    pub fn new(name: &str, version: &str, capabilities: Raw) -> About {
        About {
            info: json!({ "name": name, "version": version }).into(),
            capabilities,
            ttl: Duration::ZERO,
            shared_cache: false,
            eras: Eras::Both,
            tasks: OfferedTasks::None,
        }
    }

    /// Returns the capabilities to declare to a client with this protocol version.
    fn capabilities(&self, version: &str) -> Cow<'_, Raw> {
        let tasks = match self.tasks {
            OfferedTasks::None => return Cow::Borrowed(&self.capabilities),
            OfferedTasks::Unlisted => json!({ "cancel": {}, "requests": { "tools": { "call": {} } } }),
            OfferedTasks::Listed => {
                json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
            }
        };
        match version {
            MODERN => Cow::Owned(tasks::declare(&self.capabilities)),
            LATEST_LEGACY => Cow::Owned(self.capabilities.with("tasks", &tasks.into())),
            _ => Cow::Borrowed(&self.capabilities),
        }
    }
}

impl<H: Handler> Service<H> {
    /// Wraps a handler so that it can be served.
    pub fn new(handler: H) -> Service<H> {
        let announcer = Announcer::new(ANNOUNCEMENT_BUFFER);
        let about = handler.about();
        Service {
            inner: Arc::new(Inner { about, announcer, watched: SubscribedResources::default(), handler }),
        }
    }
}

impl<H: Handler + ?Sized> Service<H> {
    /// Sends a notification to every client that subscribed to it.
    pub fn announce(&self, news: News) {
        self.inner.announcer.announce(news);
    }

    /// Returns the set of resource URIs with at least one subscriber, as a channel that publishes every change.
    pub fn watched(&self) -> watch::Receiver<Arc<BTreeSet<String>>> {
        self.inner.watched.all()
    }

    /// Returns the wrapped handler.
    pub fn handler(&self) -> &H {
        &self.inner.handler
    }

    fn about(&self) -> &About {
        &self.inner.about
    }

    fn announcements(&self) -> Announcements {
        self.inner.announcer.subscribe()
    }

    fn client_announcements(&self, peer: &client::Peer) -> Announcements {
        self.inner.announcer.subscribe_client(peer)
    }

    /// Subscribes to a resource until the returned [`ResourceSubscription`] is dropped.
    async fn watch(&self, uri: &str) -> Result<ResourceSubscription, RpcError> {
        let too_many = || RpcError::new(RpcError::INVALID_REQUEST, "too many resources are subscribed to");
        let subscription = self.inner.watched.subscribe(uri).ok_or_else(too_many)?;
        self.handler().watch(uri).await?;
        Ok(subscription)
    }
}

/// Rejects a batch with more than [`MAX_BATCH`] messages.
fn check_batch(messages: usize) -> Result<(), RpcError> {
    if messages <= MAX_BATCH {
        return Ok(());
    }
    let why = format!("a batch may have at most {MAX_BATCH} messages; this one has {messages}");
    Err(RpcError::new(RpcError::INVALID_REQUEST, why))
}

impl<H: Handler> From<Service<H>> for Service {
    fn from(service: Service<H>) -> Service {
        Service { inner: service.inner }
    }
}

impl<H: ?Sized> Clone for Service<H> {
    fn clone(&self) -> Service<H> {
        Service { inner: self.inner.clone() }
    }
}

impl<H: ?Sized> std::fmt::Debug for Service<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("about", &self.inner.about).finish_non_exhaustive()
    }
}
