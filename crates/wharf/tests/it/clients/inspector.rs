//! The official Inspector, which runs one step per start.

use super::{
    Transport,
    scripted::node,
    steps::{Step, StepRunner},
    test_gateway::{TOKEN, Target},
};
use crate::servers::workspace::tool;
use serde_json::{Value, json};

pub(super) const INSPECTOR: &str =
    "inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// Exit code for a tool error.
const TOOL_ERROR: i32 = 5;

/// Maximum number of attempts for a step that may run too early.
const TRIES: usize = 10;

pub(super) fn run_steps<'a>(target: &'a Target, era: &'a str) -> Box<StepRunner<'a>> {
    Box::new(move |steps| steps.iter().map(|step| repeat_step(target, era, step)).collect())
}

/// Retries a step, because each start uses a new server that may not be ready.
fn repeat_step(target: &Target, era: &str, step: &Step) -> Value {
    let mut answer = run_step(target, era, step);
    for _ in 1..TRIES {
        if answer.to_string().contains(step.until) {
            break;
        }
        answer = run_step(target, era, step);
    }
    answer
}

fn run_step(target: &Target, era: &str, step: &Step) -> Value {
    let mut command = target.client(node());
    command.arg(tool(INSPECTOR)).arg("--cli");
    match target.transport {
        Transport::Stdio => {
            // The Inspector passes only explicitly listed variables to its server.
            let variables = target.variables();
            let variables =
                variables.iter().filter_map(|(name, it)| Some(format!("{name}={}", it.as_str()?)));
            let variables: Vec<String> = variables.flat_map(|it| ["-e".to_owned(), it]).collect();
            command.args(&target.words).args(variables);
        }
        Transport::Sse => _ = command.args(["--transport", "sse", "--server-url", &target.words[0]]),
        _ => _ = command.args(["--transport", "http", "--server-url", &target.words[0]]),
    }
    if target.transport != Transport::Stdio {
        command.args(["--header", &format!("Authorization: Bearer {TOKEN}"), "--protocol-era", era]);
    }
    let output = command.args(words(step)).output().expect("the Inspector runs");
    let code = output.status.code();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(code, Some(0 | TOOL_ERROR)), "{} {}: {code:?} {said}", step.method, step.params);
    json!({ "result": serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default() })
}

/// Converts a step to command-line arguments.
fn words(step: &Step) -> Vec<String> {
    let text = |key: &str| step.params[key].as_str().unwrap_or_default().to_owned();
    let typed = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<String>>();
    let mut words = typed(&["--method", step.method]);
    match step.method {
        "tools/call" => {
            let arguments = step.params["arguments"].to_string();
            words.extend(typed(&["--tool-name", &text("name"), "--tool-args-json", &arguments]));
        }
        "prompts/get" => {
            words.extend(typed(&["--prompt-name", &text("name"), "--prompt-args"]));
            let pairs = step.params["arguments"].as_object().into_iter().flatten();
            words.extend(pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())));
        }
        "resources/read" => words.extend(typed(&["--uri", &text("uri")])),
        _ => {}
    }
    words
}
