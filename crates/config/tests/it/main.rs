//! Integration tests of the configuration: one binary, one module per subject.

mod load;
mod lock;
#[cfg(unix)]
mod manifests;
#[cfg(unix)]
mod plugin_folder;
#[cfg(unix)]
mod plugins;
mod registration;
