//! `load`: measures the cost of the gateway, compared with a minimal gateway and with another product.
//!
//! One program in several roles: `echo` is a minimal server, `probe` is a minimal gateway, `drive` is the load
//! generator, and `table` starts all of them, measures them in turns and writes the page.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that is run by hand")]

mod drive;
mod echo;
mod machine;
mod page;
mod post;
mod probe;
mod scene;
mod table;
mod words;

use std::{process::ExitCode, sync::Arc};
use words::Words;

const USAGE: &str = "load echo stdio [--tools N]
load echo http  [--tools N] [--listen 127.0.0.1:0]
load probe [--listen 127.0.0.1:0] --http HOST:PORT/PATH | -- COMMAND ARGS...
load drive --url URL [--token T] [--tool echo] [--clients 64] [--seconds 3] [--bytes 100] [--payload] [--list] [--pid P]
load table --wharf PROGRAM [--rival PROGRAM] [--rounds 3] [--seconds 3] [--page FILE]
";

#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments")]
fn main() -> ExitCode {
    let words = Words::new(std::env::args().skip(1));
    // The probe gets two threads, like a gateway. The load generator gets one, so that its own cost is predictable.
    let threads = if words.role() == "probe" { 2 } else { 1 };
    let runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    let done = runtime.block_on(play(&words));
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

async fn play(words: &Words) -> Result<(), String> {
    match words.role() {
        "echo" => echo::serve(words).await,
        "probe" => probe::serve(words).await,
        "drive" => {
            let target = drive::Target::of(words)?;
            let measured = drive::drive(&Arc::new(target), &drive::Load::of(words)).await?;
            println!("{}", serde_json::to_string(&measured).unwrap_or_default());
            Ok(())
        }
        "table" => table::measure(words).await,
        _ => Err(format!("what is to be done?\n{USAGE}")),
    }
}
