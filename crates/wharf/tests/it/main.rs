//! The integration tests of the program: one binary, one module for each subject.

mod cli;
mod config;
mod import;
mod tidy;
