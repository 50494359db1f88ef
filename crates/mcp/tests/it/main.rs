//! Integration tests of the public API: sessions against scripted servers and real processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should say so loudly")]

mod belonging;
mod eras;
mod fake;
mod fake_http;
mod fake_oauth;
mod http;
mod interop;
mod oauth;
mod processes;
mod serving;
mod serving_elsewhere;
mod serving_http;
mod serving_limits;
mod serving_resumed;
mod sse;
mod wire;
mod ws;
