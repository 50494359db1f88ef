//! Integration tests of the program: one binary, one module per subject.

mod add;
#[cfg(unix)]
mod bridge;
#[cfg(unix)]
mod bundles;
#[cfg(unix)]
mod bypass;
#[cfg(unix)]
mod chat;
mod cli;
#[cfg(unix)]
mod clients;
mod config;
#[cfg(unix)]
mod connect;
#[cfg(unix)]
mod deploy;
#[cfg(unix)]
mod doc_examples;
#[cfg(unix)]
mod doctor;
mod editor;
#[cfg(unix)]
mod exact;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod first_five_minutes;
#[cfg(target_os = "linux")]
mod hints;
mod import;
#[cfg(target_os = "linux")]
mod install;
#[cfg(unix)]
mod journal;
#[cfg(unix)]
mod kills;
#[cfg(unix)]
mod library;
#[cfg(target_os = "linux")]
mod lint;
mod local_servers;
#[cfg(target_os = "linux")]
mod lock;
mod login;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(unix)]
mod privacy;
#[cfg(unix)]
mod protocols;
#[cfg(unix)]
#[cfg(unix)]
mod recorded_chat;
mod recorded_questions;
mod recordings;
#[cfg(target_os = "linux")]
mod replays;
#[cfg(unix)]
mod replicas;
#[cfg(unix)]
mod rest;
mod results;
#[cfg(target_os = "linux")]
mod scenarios;
#[cfg(unix)]
mod serve;
mod servers;
#[cfg(unix)]
mod telemetry;
#[cfg(unix)]
mod terminal;
mod tidy;
#[cfg(unix)]
mod todo;
mod tool_search;
#[cfg(target_os = "linux")]
mod why;
