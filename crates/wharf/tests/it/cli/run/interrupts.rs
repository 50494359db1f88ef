//! Interrupts of `wharf run`: in a question, and in a call.

use super::super::{json, scripted_server::workspace_with_server};
use super::{agent_file, workspace};
use scripted_model::{Action, Reply, ScriptedModel, Wire, render, text};
use std::{
    fs,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

/// Timeout for each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

fn start(workspace: &super::super::CliWorkspace) -> Child {
    let mut command = workspace.command(env!("CARGO_BIN_EXE_wharf").as_ref());
    let command = command.args(["run", "Hi", "--json", "--yes"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("wharf runs")
}

fn interrupt(child: Child, signal: &str) -> Output {
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    child.wait_with_output().expect("wharf ends")
}

#[test]
fn a_signal_closes_the_stream_of_the_model() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let begun = render(Wire::Chat, &[text("Once upon")]);
        let model = ScriptedModel::start(vec![Reply::stream(begun).then(Action::Hang)]);
        let workspace = workspace(Wire::Chat, &model, "");
        let child = start(&workspace);
        model.wait_for_requests(1);
        let output = interrupt(child, signal);
        assert_eq!(output.status.code(), Some(code));
        let document = json(&output);
        assert_eq!(
            (&document["status"], &document["error"]["error_type"]),
            (&"cancelled".into(), &"cancelled".into())
        );
        model.wait_for_abandoned(1);
    }
}

#[test]
#[cfg(unix)]
fn a_signal_in_a_call_tells_the_server() {
    let model = ScriptedModel::start(vec![Reply::calls(Wire::Gemini, &[("c1", "own__never", "{}")])]);
    let workspace = workspace_with_server();
    let tools = fs::read_to_string(workspace.path("agent.yaml")).expect("the agent file");
    let file = agent_file(Wire::Gemini, &model.url(), "");
    let head = file.split("tools:").next().expect("the model").to_owned();
    workspace.write("agent.yaml", head + &tools);
    let workspace = workspace.set("MODEL_KEY", "k");
    let child = start(&workspace);
    wait_for_log(&workspace, "\"tools/call\"");
    let output = interrupt(child, "-INT");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(json(&output)["status"], "cancelled");
    wait_for_log(&workspace, "notifications/cancelled");
}

#[expect(clippy::disallowed_methods, reason = "polls a file of another process")]
fn wait_for_log(workspace: &super::super::CliWorkspace, words: &str) {
    let began = Instant::now();
    let log = || fs::read_to_string(workspace.path("log")).unwrap_or_default();
    while !log().contains(words) {
        assert!(began.elapsed() < STEP_TIMEOUT, "{words:?} is not in:\n{}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
}
