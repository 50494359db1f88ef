//! `wharf prompt`: gets one prompt with its arguments filled in.

use super::list::fault_text;
use crate::{
    app::{App, Connections},
    arguments::{Parameters, TypedArguments},
    command_error::CommandError,
    content,
    exit::Exit,
    output::Output,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wharf_mcp::{
    Raw,
    model::{Item, Prompt, PromptArgument, PromptResult},
    session::List,
};

pub(super) async fn run(app: App, name: String, typed: Vec<String>) -> Exit {
    let output = app.output;
    let typed = match TypedArguments::read(None, &typed) {
        Ok(typed) => typed,
        Err(error) => return output.fail(&error.into()),
    };
    let connections = app.connect(|_| true, &[List::Prompts]).await;
    let exit = match connections.catalog.prompt(&name) {
        Some(entry) => match build_arguments(&typed, &name, &entry.prompt) {
            Ok(arguments) => get(&connections, &name, &arguments, output).await,
            Err(error) => output.fail(&error),
        },
        None => {
            connections.faults().for_each(|it| output.print_error(&fault_text(it)));
            output.fail(&CommandError::new(
                "MCPError",
                &not_found_message(&connections, &name),
                Exit::NotFound,
            ))
        }
    };
    connections.close().await;
    exit
}

/// Builds the arguments of a prompt, all strings. A missing required argument is an error, and so is an unknown name
/// if the prompt declares its arguments.
pub(super) fn build_arguments(
    typed: &TypedArguments,
    name: &str,
    prompt: &Prompt,
) -> Result<Raw, CommandError> {
    let properties: Map<String, Value> =
        prompt.arguments.iter().map(|it| (it.name.clone(), json!({ "type": "string" }))).collect();
    let schema = if properties.is_empty() { Value::Null } else { json!({ "properties": properties }) };
    let arguments = typed.to_object(name, &Parameters::of(&schema, BTreeMap::new()));
    let arguments = arguments.map_err(CommandError::from)?;
    let is_missing = |it: &&PromptArgument| it.required && typed.names().all(|name| name != it.name);
    let missing: Vec<&str> = prompt.arguments.iter().filter(is_missing).map(|it| it.name.as_str()).collect();
    if missing.is_empty() {
        return Ok(arguments);
    }
    let missing = content::printable(&missing.join(", "));
    let example = missing.replace(", ", "=… ");
    Err(CommandError::usage(&format!(
        "the prompt '{name}' requires {missing}\nhelp: `wharf prompt {name} {example}=…`"
    )))
}

/// Formats the error for a prompt that no server has, or that several servers have.
pub(super) fn not_found_message(connections: &Connections, wanted: &str) -> String {
    let owners = connections.catalog.prompts.iter().filter(|it| it.prompt.name == wanted);
    let owners: Vec<String> = owners.map(|it| format!("{}:{wanted}", it.source)).collect();
    match owners[..] {
        [] => format!("error: there is no prompt '{wanted}'\nhelp: `wharf prompts` lists all prompts\n"),
        _ => format!(
            "error: several servers have a prompt '{wanted}'\nhelp: choose one: {}\n",
            owners.join(", ")
        ),
    }
}

async fn get(connections: &Connections, name: &str, arguments: &Raw, output: Output) -> Exit {
    match connections.handle.prompt(name, Some(arguments), None).await {
        Ok(raw) if output.json => {
            output.raw_json(&raw);
            Exit::Success
        }
        Ok(raw) => {
            output.data(&to_text(&PromptResult::read(&raw)));
            Exit::Success
        }
        Err(fault) => output.fail(&CommandError::from(&*fault)),
    }
}

fn to_text(result: &PromptResult) -> String {
    let messages = result.messages.iter().map(|message| match message {
        Item::Valid(message) => {
            format!(
                "{}:\n{}",
                content::printable(&message.role),
                content::to_text(&vec![message.content.clone()], None, false)
            )
        }
        Item::Invalid(raw, why) => format!("[{why}] {}\n", content::printable(raw.as_str())),
    });
    messages.collect::<Vec<_>>().join("\n")
}
