//! Tests the REST API: authorization, lists, switches, idempotency, events, and hostile requests.

#![expect(clippy::disallowed_methods, reason = "programs under test are found and started like any other")]

mod agent_page;
mod attacks;
mod console_page;
mod definitions;
pub(crate) mod disabled_tools;
mod docs;
mod events;
mod first_use;
mod history;
mod idempotency;
mod lists;
mod lock;
mod lock_kinds;
mod plugins;
mod record_truncation;
mod recorded_requests;
mod registered_sources;
mod registration;
mod repeated_heads;
mod roles;
mod running;
mod schemathesis;
mod secret_leaks;
mod sign_in;
mod slow_clients;
mod slow_upstream;
mod sources_command;
mod stdio;
mod stream_limits;
mod upstream;

/// Path for calling the tool that creates a todo.
const CREATE: &str = "/api/v1/tools/todo:create_todo/call";
