//! Loads an agent file, starts its servers, calls one tool and prints what it says:
//! `cargo run -p wharf-runtime --example call_a_tool -- agent.yaml SOURCE__TOOL '{"key": "value"}'`

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program reads its arguments and prints"
)]

use std::{env, error::Error, fs, time::Duration};
use wharf_runtime::{Call, Ground, Runtime, Tuning, config, config::Env, project};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [file, tool, arguments] = [1, 2, 3].map(|at| env::args().nth(at).unwrap_or_default());
    let around = Env { variables: env::vars().collect(), folder: env::current_dir()?, ..Env::bare() };
    let (plan, complaints) = config::load(fs::read(file)?, &around);
    let plan = plan.ok_or_else(|| complaints.render(false))?;
    let runtime =
        Runtime::start(&plan, &Ground::plain(env::temp_dir().join("call-a-tool"))?, Tuning::default());
    let arguments: serde_json::Value = serde_json::from_str(&arguments)?;
    let record = runtime.handle().call(Call::new(tool).arguments(arguments)).await;
    println!("{}", project::tool_result(&record).as_str());
    runtime.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
