//! Starts the servers of an agent file, calls one tool and prints its text:
//!
//! `cargo run -p wharf-runtime --example call_a_tool -- agent.yaml SOURCE__TOOL '{"key": "value"}'`

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program reads its arguments and prints"
)]

use std::{env, error::Error, time::Duration};
use wharf_runtime::{Raw, Runtime};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [file, tool, arguments] = [1, 2, 3].map(|at| env::args().nth(at).unwrap_or_default());
    let runtime = Runtime::from_file(file).await?;
    println!("{}", runtime.call(&tool, Raw::parse(arguments)?).await?.text());
    runtime.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
