//! Integration tests of the runtime: one binary, one module per subject.

mod breaker;
mod egress;
mod lifecycle;
#[cfg(unix)]
#[path = "../../../config/tests/it/plugin_folder.rs"]
mod plugin_folder;
#[cfg(unix)]
mod registered;
mod schema;
mod tool_search;
