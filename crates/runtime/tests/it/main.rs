//! The integration tests of the runtime: one binary, one module for each subject.

mod breaker;
mod living;
mod load;
#[cfg(unix)]
mod manifests;
#[cfg(unix)]
mod plugins;
mod registration;
mod schema;
