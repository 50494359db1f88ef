//! Asks a model on this machine, which may call the tools of an agent file:
//!
//! `cargo run -p wharf-agent --example agent -- agent.yaml 'Remind me to buy eggs'`

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program reads its arguments and prints"
)]

use std::{env, error::Error, future::pending, sync::Arc, time::Duration};
use wharf_agent::{Agent, RunRequest, RunSignals, client::ModelClient, message::Content};
use wharf_config::{AgentSettings, MaskedString, Model, Provider};
use wharf_runtime::{Redactor, Runtime};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [file, message] = [1, 2].map(|at| env::args().nth(at).unwrap_or_default());
    let runtime = Runtime::from_file(file).await?;
    let redactor = Arc::new(Redactor::default());
    let model = Model::new(Provider::Ollama, MaskedString::plain("qwen3"));
    let model = Arc::new(ModelClient::new(&model, None, None, redactor.clone())?);
    let agent = Agent { model, tools: runtime.handle(), redactor, call_log: None };
    let catalog = runtime.handle().settled().await;
    let request = RunRequest::new(vec![Content::Text(message)], AgentSettings::default(), catalog);
    let signals = RunSignals { cancel: pending(), drain: pending() };
    let result = agent.run(request, signals, &mut |_| ()).await?;
    println!("{}", result.report.final_output);
    runtime.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
