//! `wharf prompt`: one prompt, filled in.

use super::list::fault_text;
use crate::{
    arguments, content,
    dock::{Dock, Docked},
    exit::Exit,
    output::Output,
};
use serde_json::{Value, json};
use wharf_mcp::{
    Raw,
    model::{Item, PromptResult},
    session::List,
};
use wharf_runtime::project;

pub(super) async fn run(dock: Dock, name: String, typed: Vec<String>) -> Exit {
    let output = dock.output;
    let arguments = match arguments::object(None, &typed) {
        Ok(arguments) => Raw::from(Value::Object(arguments)),
        Err(complaint) => {
            output.complain(&format!("error: {complaint}\n"));
            return Exit::Usage;
        }
    };
    let docked = dock.connect(|_| true, &[List::Prompts]).await;
    let exit = match docked.catalog.prompt(&name) {
        Some(_) => get(&docked, &name, &arguments, output).await,
        None => {
            docked.faults().for_each(|it| output.complain(&fault_text(it)));
            output.complain(&not_found(&docked, &name));
            Exit::NotFound
        }
    };
    docked.leave().await;
    exit
}

/// None has it, or several have.
fn not_found(docked: &Docked, wanted: &str) -> String {
    let owners = docked.catalog.prompts.iter().filter(|it| it.prompt.name == wanted);
    let owners: Vec<String> = owners.map(|it| format!("{}:{wanted}", it.source)).collect();
    match owners[..] {
        [] => format!("error: there is no prompt '{wanted}'\nhelp: `wharf prompts` lists what there is\n"),
        _ => format!(
            "error: several servers have a prompt '{wanted}'\nhelp: say which: {}\n",
            owners.join(", ")
        ),
    }
}

async fn get(docked: &Docked, name: &str, arguments: &Raw, output: Output) -> Exit {
    match docked.handle.prompt(name, Some(arguments)).await {
        Ok(raw) if output.json => {
            output.json(&content::value(&raw));
            Exit::Fine
        }
        Ok(raw) => {
            output.data(&to_text(&PromptResult::read(&raw)));
            Exit::Fine
        }
        Err(fault) => {
            if output.json {
                output.json(&json!({ "error": project::error(&fault) }));
            } else {
                output.complain(&fault_text(&fault));
            }
            fault.kind.into()
        }
    }
}

fn to_text(result: &PromptResult) -> String {
    let messages = result.messages.iter().map(|message| match message {
        Item::Good(message) => {
            format!(
                "{}:\n{}",
                content::printable(&message.role),
                content::to_text(&vec![message.content.clone()], None)
            )
        }
        Item::Odd(raw, why) => format!("[{why}] {}\n", content::printable(raw.as_str())),
    });
    messages.collect::<Vec<_>>().join("\n")
}
