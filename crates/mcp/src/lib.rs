//! Speaks MCP: envelopes, links, sessions in both eras, and serving a handler over the same transports.
//!
//! A [`Link`] carries JSON-RPC messages to and from one far end; every transport is one way of opening it. A
//! [`Session`] holds the client's side of one conversation over a link. Payloads stay raw JSON ([`Raw`]) until
//! somebody needs them typed.
//!
//! This crate knows no configuration files, no policies, no renaming of tools, no databases and no models.

mod caught;
pub mod envelope;
pub mod events;
mod failure;
pub mod frame;
pub mod http;
mod json;
mod link;
pub mod model;
pub mod oauth;
mod outbox;
mod reach;
mod reader;
mod salvage;
pub mod serve;
pub mod session;
pub mod sse;
pub mod stdio;
mod streams;
pub mod ws;

pub use envelope::{Message, RpcError};
pub use failure::{Class, Detail, Exit, Failure, Goodbye, Phase, Sent};
pub use json::Raw;
pub use link::{Inbound, Link, Opener, Opening, Outbound, Routing, Written};
pub use reach::Reach;
pub use session::{Host, News, Options, Request, Session, SessionTask};
pub use streams::link_over;
