//! The integration tests of the runtime: one binary, one module for each subject.

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
