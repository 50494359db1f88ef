//! Tests our client, server and gateway with the official conformance suite, and our client against our server.

#![expect(clippy::print_stdout, reason = "the log shows how many scenarios passed")]
#![expect(clippy::unwrap_used, reason = "a test whose setup fails should panic with the cause")]

mod gateway;
mod official_suite;
mod sdks;
mod server;
mod suite;
mod transports;
