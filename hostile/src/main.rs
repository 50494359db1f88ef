//! `hostile`: the hostile server as a program. Its first line on stderr contains the address it listens on and its
//! seed.

#![expect(clippy::print_stderr, reason = "the starting process reads the port from stderr")]

use hostile::{
    options::{ServerOptions, Transport},
    serve,
};
use std::{io, process::ExitCode};
use tokio::runtime;

#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments")]
fn main() -> ExitCode {
    let options = match ServerOptions::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let Ok(runtime) = runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let served = runtime.block_on(run(&options));
    // A pending read of stdin cannot be cancelled.
    runtime.shutdown_background();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &ServerOptions) -> io::Result<()> {
    if options.transport == Transport::Stdio {
        eprintln!("hostile: stdio seed={}", options.seed);
        serve::over_stdio(options).await;
        return Ok(());
    }
    let listening = serve::listen(options).await?;
    eprintln!("hostile: {} seed={}", listening.address, options.seed);
    listening.wait().await;
    Ok(())
}
