//! `hostile`: the hostile server as a program. Its first line on stderr contains the address it listens on and its
//! seed.

#![expect(clippy::print_stderr, reason = "whoever started it reads the port there")]

use hostile::{
    orders::{Orders, Transport},
    serve,
};
use std::{io, process::ExitCode};
use tokio::runtime;

#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments")]
fn main() -> ExitCode {
    let orders = match Orders::parse(std::env::args().skip(1)) {
        Ok(orders) => orders,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let Ok(runtime) = runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let served = runtime.block_on(run(&orders));
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

async fn run(orders: &Orders) -> io::Result<()> {
    if orders.transport == Transport::Stdio {
        eprintln!("hostile: stdio seed={}", orders.seed);
        serve::over_stdio(orders).await;
        return Ok(());
    }
    let listening = serve::listen(orders).await?;
    eprintln!("hostile: {} seed={}", listening.address, orders.seed);
    listening.wait().await;
    Ok(())
}
