//! Implements MCP: JSON-RPC envelopes, client transports, client sessions in both eras, and a server side that runs a
//! handler over the same transports.
//!
//! A [`Link`] carries JSON-RPC messages to and from one server; each transport is an [`Opener`] that opens links. A
//! [`Session`] is the client side of one MCP session over a link. Payloads stay raw JSON ([`Raw`]) until a caller
//! needs them typed.
//!
//! This crate knows nothing about configuration files, policies, tool renaming, databases or models.

mod charset;
mod egress;
pub mod envelope;
pub mod events;
mod failure;
pub mod fault_injection;
pub mod frame;
pub mod http;
mod id_map;
mod id_scan;
mod json;
mod link;
pub mod local_server;
pub mod model;
pub mod oauth;
mod outbox;
mod panic_guard;
mod reader;
pub mod serve;
pub mod session;
pub mod sse;
pub mod stdio;
mod stream_link;
pub mod tasks;
pub mod time_format;
pub mod ws;

pub use egress::EgressPolicy;
pub use envelope::{Message, RpcError};
pub use failure::{Class, Detail, Disconnect, Exit, Failure, Phase, Sent};
pub use id_map::IdMap;
pub use json::{Members, Raw};
pub use link::{Inbound, Link, Opener, Opening, Outbound, Routing, Written};
pub use session::{Host, News, Options, Request, Session, SessionFuture, SessionTask};
pub use stream_link::link_over;
