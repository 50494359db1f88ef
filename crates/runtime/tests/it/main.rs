//! Integration tests of the runtime: one binary, one module per subject.

mod breaker;
mod living;
mod load;
#[cfg(unix)]
mod manifests;
#[cfg(unix)]
mod plugins;
#[cfg(unix)]
mod registered;
mod registration;
mod schema;
