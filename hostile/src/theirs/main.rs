//! `theirs ROW --hostile FILE --neighbour URL`: tries one row of the matrix with the client of the reference SDK in
//! its default configuration and prints a report as one line of JSON. That client has no timeouts, so this program
//! adds one of eight seconds.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the report on stdout is the output of this program"
)]

use hostile::{
    matrix::{self, Row},
    options::{Era, Transport},
    probe::{Mark, Report, TrialSetup, grown_kib, peak_kib},
};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{CallToolRequestParams, ProtocolVersion},
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use std::{path::PathBuf, process::ExitCode, time::Duration};
use tokio::time::{self, Instant};

/// Time after which a call counts as hanging.
const CALL_TIMEOUT: Duration = Duration::from_secs(8);

/// Time after which closing the client counts as hanging.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

type Client = RunningService<RoleClient, ()>;

#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments")]
#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [row, _, hostile, _, _] = &arguments[..] else {
        eprintln!("usage: theirs ROW --hostile FILE --neighbour URL");
        return ExitCode::from(2);
    };
    match try_row(row, hostile.into()).await {
        Ok(report) => {
            println!("{}", serde_json::to_string(&report).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn try_row(id: &str, hostile: PathBuf) -> Result<Report, String> {
    let row = matrix::find(id).ok_or_else(|| format!("there is no row `{id}`"))?;
    let setup = TrialSetup::of(row, &hostile).await.map_err(|error| error.to_string())?;
    let before = peak_kib();
    let started = Instant::now();
    let mut client = None;
    let tried = time::timeout(CALL_TIMEOUT, call(row, &setup, &mut client)).await;
    let ms = started.elapsed().as_millis() as u64;
    let (class, message) = match tried {
        Err(_) => ("hang", String::new()),
        Ok(Err(error)) => ("error", error),
        Ok(Ok(result)) => ("OK", result),
    };
    let grown_kib = grown_kib(before);
    if let Some(client) = client {
        let _ = time::timeout(CLOSE_TIMEOUT, client.cancel()).await;
    }
    let leftovers = setup.mark.leftovers().await;
    Ok(Report {
        row: row.id(),
        class: class.to_owned(),
        message: message.chars().take(300).collect(),
        ms,
        grown_kib,
        leftovers,
        ..Report::default()
    })
}

/// Connects, lists the tools and calls one, like our client.
async fn call(row: &Row, setup: &TrialSetup, slot: &mut Option<Client>) -> Result<String, String> {
    let client = slot.insert(connect(row, setup).await?);
    let tools = client.list_all_tools().await.map_err(|error| error.to_string())?;
    if !tools.iter().any(|tool| tool.name == "echo") {
        return Err("there is no tool `echo`".to_owned());
    }
    let mut params = CallToolRequestParams::new("echo");
    params.arguments = serde_json::json!({ "nonce": "first" }).as_object().cloned();
    let result = client.call_tool(params).await.map_err(|error| error.to_string())?;
    Ok(serde_json::to_string(&result).unwrap_or_default())
}

async fn connect(row: &Row, setup: &TrialSetup) -> Result<Client, String> {
    let lifecycle = match row.era {
        Era::Legacy | Era::Dual => ClientLifecycleMode::Initialize,
        Era::Modern => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
    };
    let connected = match row.transport {
        Transport::Stdio => {
            let mut command = tokio::process::Command::new(&setup.program);
            command.args(&setup.args).env(Mark::NAME, setup.mark.value());
            let transport = TokioChildProcess::new(command).map_err(|error| error.to_string())?;
            ().serve_with_lifecycle(transport, lifecycle).await
        }
        _ => {
            let transport = StreamableHttpClientTransport::from_uri(setup.url.clone());
            ().serve_with_lifecycle(transport, lifecycle).await
        }
    };
    connected.map_err(|error| error.to_string())
}
