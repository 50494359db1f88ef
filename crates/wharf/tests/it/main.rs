//! The integration tests of the program: one binary, one module for each subject.

mod cli;
mod config;
#[cfg(unix)]
mod doctor;
mod editor;
mod import;
mod login;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(unix)]
mod servers;
mod tidy;
