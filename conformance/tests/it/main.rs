//! Tests our client, server and gateway with the official conformance suite, and our client against our server.

#![expect(clippy::print_stdout, reason = "how many scenarios passed is worth seeing in a log")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should say so loudly")]

mod gateway;
mod server;
mod suite;
mod transports;
