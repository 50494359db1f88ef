//! Tests with third-party servers from the package registries, started as a user would start them.
//!
//! `cargo xtask provision` installs the requirements. A test whose requirements are missing fails and says so.

mod agent;
pub(crate) mod background;
#[cfg(target_os = "linux")]
pub(crate) mod docker;
mod everything;
mod model;
mod npx;
pub(crate) mod popular;
#[cfg(target_os = "linux")]
mod token_estimate;
mod uvx;
mod websocket;
pub(crate) mod workspace;
