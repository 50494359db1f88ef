//! Starts the servers of an agent file and prints their events for some seconds:
//!
//! `cargo run -p wharf-runtime --example observe -- agent.yaml 10`

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program reads its arguments and prints"
)]

use std::{env, error::Error, sync::Arc, time::Duration};
use wharf_runtime::{Event, Happening, Observer, Runtime, Tuning};

/// Prints one line per event. It runs in a task of its own and may block; if it falls behind, it receives an event
/// with the number of lost events.
struct Printer;

impl Observer for Printer {
    fn heard(&self, event: &Event) {
        let said = match &event.what {
            Happening::Session(state) => state.as_str().to_owned(),
            Happening::Connection(state) => state.as_str().to_owned(),
            Happening::Health(health) => health.as_str().to_owned(),
            Happening::Breaker(breaker) => breaker.as_str().to_owned(),
            Happening::Listed { tools } => format!("{tools} tools"),
            Happening::Log { level, data, .. } => format!("{level}: {}", data.as_str()),
            Happening::Stderr(line) | Happening::Exception(line) => line.clone(),
            Happening::Called(record) => format!("{} {}", record.tool, record.status().as_str()),
            other => format!("{other:?}"),
        };
        println!("{:12} {:12} {said}", event.source, event.what.as_str());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).unwrap_or_default();
    let seconds = env::args().nth(2).and_then(|it| it.parse().ok()).unwrap_or(5);
    let tuning = Tuning { observers: vec![Arc::new(Printer)], ..Tuning::default() };
    let runtime = Runtime::from_file(file).tuning(tuning).await?;
    runtime.handle().settled().await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    runtime.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
