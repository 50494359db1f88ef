//! Servers that others wrote, found by their names in the registries and started as a user would start them.
//!
//! What these tests need beyond the program is put in place by `cargo xtask provision`. None of them is left out when it is
//! missing: it fails and says so.

pub(crate) mod background;
#[cfg(target_os = "linux")]
pub(crate) mod docker;
mod everything;
mod npx;
pub(crate) mod place;
pub(crate) mod popular;
mod uvx;
mod websocket;
