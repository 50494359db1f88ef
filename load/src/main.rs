//! `load`: measures the cost of the gateway, compared with a minimal gateway and with another product.
//!
//! One program in several roles: `echo` is a minimal server, `probe` is a minimal gateway, `drive` is the load
//! generator, and `table` starts all of them, measures them in turns and writes the page.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

mod agent;
mod command_line;
mod drive;
mod echo;
mod gateways;
mod growth;
mod machine;
mod mixed;
mod page;
mod post;
mod probe;
mod table;

use command_line::CommandLine;
use gateways::Programs;
use std::{process::ExitCode, sync::Arc};

const USAGE: &str = "load echo stdio [--tools N]
load echo http  [--tools N] [--listen 127.0.0.1:0]
load probe [--listen 127.0.0.1:0] --http HOST:PORT/PATH | -- COMMAND ARGS...
load drive --url URL [--token T] [--tool echo] [--clients 64] [--seconds 3] [--bytes 100] [--payload] [--list] [--pid P]
load table --wharf PROGRAM [--before PROGRAM] [--rival PROGRAM] [--one-thread] [--rounds 3] [--seconds 3] [--page FILE]
load agent --wharf PROGRAM --python PROGRAM [--rounds 5] [--page FILE]
load growth --wharf PROGRAM [--rounds 3] [--seconds 3]
";

#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments")]
fn main() -> ExitCode {
    let command_line = CommandLine::new(std::env::args().skip(1));
    // The probe gets two threads, like a gateway. The load generator gets one, so that its own cost is predictable.
    let threads = if command_line.role() == "probe" { 2 } else { 1 };
    let runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    let done = runtime.block_on(run(&command_line));
    // A pending read of stdin cannot be cancelled.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command_line: &CommandLine) -> Result<(), String> {
    match command_line.role() {
        "echo" => echo::serve(command_line).await,
        "probe" => probe::serve(command_line).await,
        "drive" => {
            let target = drive::Target::of(command_line)?;
            let measured = drive::drive(&Arc::new(target), &drive::Load::of(command_line)).await?;
            println!("{}", serde_json::to_string(&measured).unwrap_or_default());
            Ok(())
        }
        "agent" => agent::measure(command_line),
        "table" => table::measure(command_line).await,
        "growth" => {
            let (rounds, seconds) = table::rounds(command_line);
            let growth = growth::measure(&Programs::of(command_line)?, rounds, seconds).await?;
            println!("{}", page::growth(&growth));
            Ok(())
        }
        _ => Err(format!("missing or unknown command\n{USAGE}")),
    }
}
