//! A model provider for tests: speaks the wire formats of five providers over real HTTP and misbehaves as scripted.
//!
//! It shares no code with the agent, so that both cannot be wrong in the same way. [`render()`] writes the stream of a
//! well-behaved provider, a [`Reply`] says how it is sent, and a [`ScriptedModel`] serves one reply per request and
//! keeps the requests. [`matrix()`] lists behaviours and how a run ends that meets them.

mod matrix;
mod render;
mod reply;
mod server;

pub use matrix::{MatrixRow, RunEnd, matrix};
pub use render::{Finish, Step, Wire, call, chat_delta, chat_end, render, sse, text};
pub use reply::{Action, Reply};
pub use server::{Request, ScriptedModel};
