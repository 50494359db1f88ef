//! The `wharf` program: a gateway between MCP servers and the agents that use their tools.
//!
//! Parses the command line, runs the command and turns its result into an exit code. `commands` does the work.

mod accepted_definitions;
mod agent_activity;
mod agent_input;
mod agent_model;
mod agent_runs;
mod api;
mod app;
mod arguments;
mod bundle;
mod call_stats;
mod cassette_file;
mod cassette_server;
mod cli;
mod command_error;
mod commands;
mod content;
mod conversations;
mod environment;
mod exit;
mod fault_file;
mod gateway;
mod http_server;
mod import;
mod journal;
mod lease_owner;
mod load_agent;
mod logs;
mod markdown;
mod message_context;
mod message_reader;
mod metrics;
mod output;
mod pretty_json;
mod progress;
#[cfg(unix)]
mod query_worker;
mod recent_calls;
mod registry;
mod reload;
mod replayed_servers;
mod replica;
mod request_ids;
mod running_gateway;
mod scenario;
mod signals;
mod source_facts;
mod startup_memory;
mod state_folder;
mod stored_results;
mod telemetry;
mod terminal;
mod todo;
mod tool_cache;
mod unmatched_rules;
mod why_layers;
mod wire_faults;

use exit::Exit;
use std::{panic, process::ExitCode};

/// A call allocates small objects on one thread and frees them on another; mimalloc is fast at that. The `no_thp`
/// feature turns off huge pages, which would mostly stay unused. On Linux the `override` feature gives SQLite the same
/// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(words) = environment::supervised_command() {
        return wharf_mcp::stdio::supervise(words);
    }
    #[cfg(unix)]
    if let Some(exit) = query_worker::run_if_asked() {
        return exit;
    }
    hide_from_servers();
    let outcome = panic::catch_unwind(|| match cli::Cli::parse_words(&environment::command_line()) {
        Ok(cli) => commands::run(cli),
        Err(error) => commands::report_usage_error(&error),
    });
    logs::flush();
    // The panic hook has already printed the panic.
    output::final_exit(outcome.unwrap_or(Exit::InternalError)).into()
}

/// Stops other processes of the same user from reading our environment and memory through /proc. MCP servers run as
/// that user, and our environment may hold tokens that they must not see.
fn hide_from_servers() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // If the kernel refuses, the process stays readable, as it is by default.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
