//! Integration tests of the public API: sessions against scripted servers and real processes.

#![expect(clippy::unwrap_used, reason = "a test whose setup fails should panic with the cause")]

mod assertions;
mod dpop;
mod eras;
mod fake;
mod fake_dpop;
mod fake_http;
mod fake_oauth;
mod http;
mod interop;
mod oauth;
mod processes;
mod request_owner;
mod requests;
mod serving;
mod serving_http;
mod serving_limits;
mod serving_replicas;
mod serving_resumed;
mod serving_tasks;
mod sse;
mod tasks;
mod ws;
