//! wharf: where MCP servers dock and agents pick up their tools.
//!
//! What was typed → what it means → run it → an exit code. This file only translates between those.

mod agent_input;
mod arguments;
mod cli;
mod command_error;
mod commands;
mod content;
mod dock;
mod door;
mod exit;
mod front;
mod gateway;
mod import;
mod journal;
mod logs;
mod metrics;
mod output;
mod pretty_json;
mod progress;
mod registry;
mod reload;
mod remembered;
mod replica;
mod running_gateway;
mod signals;
mod state_folder;
mod surroundings;
mod telemetry;
mod terminal;
mod todo;

use clap::Parser;
use exit::Exit;
use std::{panic, process::ExitCode};

/// A call allocates little things on one thread and frees them on another, over and over: this one is made for that.
/// Without pages of megabytes, of which we would use a corner each.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(words) = surroundings::supervised() {
        return wharf_mcp::stdio::supervise(words);
    }
    hide_from_servers();
    let outcome = panic::catch_unwind(|| match cli::Cli::try_parse() {
        Ok(cli) => commands::run(cli),
        Err(error) => commands::explain_usage(&error),
    });
    logs::end();
    // The panic itself has been printed by then.
    output::checked(outcome.unwrap_or(Exit::OurBug)).into()
}

/// Forbids other processes of the same user to read our environment and memory through /proc. Servers run as that user,
/// and our environment may hold tokens that are not theirs.
fn hide_from_servers() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A kernel that refuses leaves everything as it was.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
