//! Implements MCP: JSON-RPC envelopes, client transports, client sessions in both eras, and a server side that runs a
//! handler over the same transports.
//!
//! A [`Link`] carries JSON-RPC messages to and from one server; each transport is an [`Opener`] that opens links. A
//! [`Session`] is the client side of one MCP session over a link. Payloads stay raw JSON ([`Raw`]) until a caller
//! needs them typed.
//!
//! This crate knows nothing about configuration files, policies, tool renaming, databases or models.

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
