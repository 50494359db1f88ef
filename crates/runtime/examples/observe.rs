//! Starts the servers of an agent file and prints their events for some seconds:
//!
//! `cargo run -p wharf-runtime --example observe -- agent.yaml 10`

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program reads its arguments and prints"
)]

use std::{env, error::Error, sync::Arc, time::Duration};
use wharf_runtime::{Event, EventKind, Observer, Runtime, RuntimeOptions};

/// Prints one line per event. It runs in a task of its own and may block; if it falls behind, it receives an event
/// with the number of lost events.
struct Printer;

impl Observer for Printer {
    fn on_event(&self, event: &Event) {
        let text = match &event.what {
            EventKind::Session(state) => state.as_str().to_owned(),
            EventKind::Connection(state) => state.as_str().to_owned(),
            EventKind::Health(health) => health.as_str().to_owned(),
            EventKind::Breaker(breaker) => breaker.as_str().to_owned(),
            EventKind::Listed { tools } => format!("{tools} tools"),
            EventKind::Log { level, data, .. } => format!("{level}: {}", data.as_str()),
            EventKind::Stderr(line) | EventKind::Exception(line) => line.clone(),
            EventKind::Called(record) => format!("{} {}", record.tool, record.status().as_str()),
            other => format!("{other:?}"),
        };
        println!("{:12} {:12} {text}", event.source, event.what.as_str());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).unwrap_or_default();
    let seconds = env::args().nth(2).and_then(|it| it.parse().ok()).unwrap_or(5);
    let options = RuntimeOptions { observers: vec![Arc::new(Printer)], ..RuntimeOptions::default() };
    let runtime = Runtime::from_file(file).options(options).await?;
    runtime.handle().settled().await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    runtime.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
