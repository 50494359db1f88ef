//! The server's side: a [`Handler`] served over stdio, streamable HTTP, legacy SSE and WebSocket, in both eras.
//!
//! The handler sees requests with raw parameters and answers with raw results. What the protocol itself wants
//! (handshake, discovery, pings, log levels, subscriptions, the decorations of a result) is done here, once for all
//! transports.

mod announcements;
mod client;
mod conversation;
mod dispatch;
pub mod http;
mod listen;
pub mod mailbox;
mod stdio;
mod watched;
mod ws;

pub use crate::model::LogLevel;
use crate::{News, Raw, RpcError, model::Tool};
use announcements::{Announcements, Announcer};
pub use client::{Client, ClientTerms};
use serde_json::json;
use std::{collections::BTreeSet, future::Future, pin::Pin, sync::Arc, time::Duration};
pub use stdio::over_streams;
use tokio::sync::watch;
use watched::{Hold, Watched};
pub use ws::over_websocket;

/// How many announcements a slow client may fall behind before it misses some.
const ANNOUNCEMENTS: usize = 64;

/// How many messages one batch of a client may have.
const MAX_BATCH: usize = 256;

/// An answer being made.
pub type Serving = Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;

/// What a server does.
pub trait Handler: Send + Sync + 'static {
    /// Who the server is and what it can do.
    fn about(&self) -> About;

    /// Answers one request. Dropped when the client cancels it or leaves.
    fn handle(&self, request: Incoming, client: Client) -> Serving;

    /// Hears a notification of the client's.
    fn notified(&self, method: &str, params: Option<Raw>) {
        let _ = (method, params);
    }

    /// Sees to it that changes of this resource will be announced, or says why not. Called once it is part of
    /// [`Service::watched`], for clients of either era.
    fn watch(&self, uri: &str) -> Pin<Box<dyn Future<Output = Result<(), RpcError>> + Send>> {
        let _ = uri;
        Box::pin(std::future::ready(Ok(())))
    }

    /// A tool by name, to check the headers that repeat its arguments.
    fn tool(&self, name: &str) -> Option<Tool> {
        let _ = name;
        None
    }
}

/// Who a server is and what it can do.
#[derive(Clone, Debug)]
pub struct About {
    /// `serverInfo`: an object with at least `name` and `version`.
    pub info: Raw,
    /// The server capabilities, as an object.
    pub capabilities: Raw,
    /// How the server wants to be used.
    pub instructions: Option<String>,
    /// How long lists and resources may be cached, where the handler does not say.
    pub ttl: Duration,
    /// Whether they may be shared between users.
    pub shared_cache: bool,
    /// Which eras are served.
    pub eras: Eras,
}

/// Which eras a server serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eras {
    /// Both, each client as it likes.
    #[default]
    Both,
    /// Only with a handshake.
    LegacyOnly,
    /// Only without.
    ModernOnly,
}

/// One request of a client.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// What is asked.
    pub method: String,
    /// With which parameters.
    pub params: Option<Raw>,
    /// The HTTP request it came in, if it did: headers, and what a gateway's layers added.
    pub http: Option<Arc<::http::request::Parts>>,
}

/// A handler with what is needed to serve it; cheap to clone.
pub struct Service<H> {
    inner: Arc<Inner<H>>,
}

struct Inner<H> {
    handler: H,
    about: About,
    announcer: Announcer,
    watched: Watched,
}

impl About {
    /// A server of this name and version with these capabilities.
    pub fn new(name: &str, version: &str, capabilities: Raw) -> About {
        About {
            info: json!({ "name": name, "version": version }).into(),
            capabilities,
            instructions: None,
            ttl: Duration::ZERO,
            shared_cache: false,
            eras: Eras::Both,
        }
    }
}

impl<H: Handler> Service<H> {
    /// Makes a handler ready to be served.
    pub fn new(handler: H) -> Service<H> {
        let announcer = Announcer::new(ANNOUNCEMENTS);
        let about = handler.about();
        Service { inner: Arc::new(Inner { handler, about, announcer, watched: Watched::default() }) }
    }

    /// Tells every client that wants to hear it.
    pub fn announce(&self, news: News) {
        self.inner.announcer.tell(news);
    }

    /// The resources that clients want to hear of, now and later.
    pub fn watched(&self) -> watch::Receiver<Arc<BTreeSet<String>>> {
        self.inner.watched.all()
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.inner.handler
    }

    fn about(&self) -> &About {
        &self.inner.about
    }

    fn announcements(&self) -> Announcements {
        self.inner.announcer.listen()
    }

    /// Has a resource watched for somebody, as long as what is returned is held.
    async fn watch(&self, uri: &str) -> Result<Hold, RpcError> {
        let too_many = || RpcError::new(RpcError::INVALID_REQUEST, "too many resources are subscribed to");
        let hold = self.inner.watched.hold(uri).ok_or_else(too_many)?;
        self.handler().watch(uri).await?;
        Ok(hold)
    }
}

/// Refuses a batch of so many messages, if that is too many.
fn check_batch(messages: usize) -> Result<(), RpcError> {
    if messages <= MAX_BATCH {
        return Ok(());
    }
    let why = format!("a batch may have at most {MAX_BATCH} messages, and this one has {messages}");
    Err(RpcError::new(RpcError::INVALID_REQUEST, why))
}

impl<H> Clone for Service<H> {
    fn clone(&self) -> Service<H> {
        Service { inner: self.inner.clone() }
    }
}

impl<H> std::fmt::Debug for Service<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("about", &self.inner.about).finish_non_exhaustive()
    }
}
