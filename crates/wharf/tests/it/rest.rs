//! Tests the REST API: authorization, lists, switches, idempotency, events, and hostile requests.

#![expect(clippy::disallowed_methods, reason = "programs under test are found and started like any other")]

mod attacks;
mod canaries;
mod crowds;
mod docs;
mod events;
mod far;
mod lists;
mod once;
mod plugins;
mod records;
mod registered;
mod registering;
mod roles;
mod schemathesis;
mod slow;
mod stdio;
mod switches;
mod typed;
mod upstream;

/// Path for calling the tool that creates a todo.
const CREATE: &str = "/api/v1/tools/todo:create_todo/call";
