//! `wharf replay`: repeats a recorded conversation or recorded calls, and compares what happens with the recording.

mod compare;
pub(super) mod conversation;

use super::recording::Recording;
use crate::{
    app::{App, Connections},
    cassette_file::read_cassette,
    cli::ReplayArgs,
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    output::Output,
};
use compare::{Comparison, compare};
use conversation::repeat_conversations;
use serde_json::json;
use tempfile::TempDir;
use wharf_config::Overrides;
use wharf_mcp::session::List;
use wharf_runtime::{
    Call,
    cassette::{Cassette, ConversationNaming, MAIN_CONVERSATION, StepKind},
};

/// Maximum number of differences that are printed.
const MAX_SHOWN: usize = 10;

pub(super) async fn run(mut app: App, args: ReplayArgs, environment: Environment) -> Exit {
    let output = app.output;
    match replay(&mut app, &args, &environment).await {
        Ok(comparison) => print(&comparison, output),
        Err(error) => output.fail(&error),
    }
}

async fn replay(
    app: &mut App,
    args: &ReplayArgs,
    environment: &Environment,
) -> Result<Comparison, CommandError> {
    let recorded = read_cassette(&args.cassette)?;
    let folder =
        TempDir::new().map_err(|error| CommandError::usage(&format!("no temporary folder: {error}")))?;
    let file = args.record.clone().unwrap_or_else(|| folder.path().join("replayed.jsonl"));
    let has_model = recorded.steps_of(StepKind::Input).next().is_some();
    if !has_model {
        // Calls are recorded as they were sent, after the overrides.
        app.plan.sources.iter_mut().for_each(|it| it.overrides = Overrides::default());
    }
    let recording = Recording::begin(app, &args.to_cassette_args(file.clone()), naming(&recorded))?;
    let connections = app.connect(|it| recorded.servers.contains_key(it.name.expose()), &[List::Tools]).await;
    recording.add_servers(&connections);
    app.keep_temporary_results(&connections.handle);
    let repeated = match has_model {
        true => repeat_conversations(app, &recorded, &recording, &connections, environment).await,
        false => {
            repeat_calls(&recorded, &connections).await;
            Ok(Vec::new())
        }
    };
    connections.close().await;
    let exit = recording.end(Exit::Success, app.output);
    let errors = repeated?;
    if exit != Exit::Success {
        return Err(CommandError::new("MCPError", "the replay cannot be recorded", exit));
    }
    Ok(compare(&recorded, &read_cassette(&file)?, errors))
}

/// Returns how the conversations of a recording are named.
pub(super) fn naming(recorded: &Cassette) -> ConversationNaming {
    let calls = recorded.calls.iter().map(|it| &it.conversation);
    let mut all = calls.chain(recorded.steps.iter().map(|it| &it.conversation));
    match all.any(|it| it == MAIN_CONVERSATION) {
        true => ConversationNaming::Main,
        false => ConversationNaming::Numbered,
    }
}

/// Makes the recorded calls, one after the other.
async fn repeat_calls(recorded: &Cassette, connections: &Connections) {
    for call in &recorded.calls {
        let tool = format!("{}:{}", call.source, call.tool);
        let thread_id = Some(call.conversation.clone());
        let call = Call { thread_id, ..Call::new(tool).arguments(call.arguments.clone()) };
        connections.handle.call(call).await;
    }
}

fn print(comparison: &Comparison, output: Output) -> Exit {
    let Comparison { calls, turns, differences } = comparison;
    if output.json {
        output.json(&json!({
            "equal": differences.is_empty(), "calls": calls, "turns": turns, "differences": differences,
        }));
    } else if differences.is_empty() {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        output.data(&format!(
            "equal: {calls} call{}, {turns} model turn{}\n",
            plural(*calls),
            plural(*turns)
        ));
    } else {
        let shown = differences.iter().take(MAX_SHOWN).map(|it| format!("{it}\n"));
        output.data(&shown.collect::<String>());
        if differences.len() > MAX_SHOWN {
            output.data(&format!("and {} more\n", differences.len() - MAX_SHOWN));
        }
    }
    if differences.is_empty() { Exit::Success } else { Exit::ToolError }
}
