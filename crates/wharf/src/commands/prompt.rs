//! `wharf prompt`: one prompt, filled in.

use super::list::{fault_text, offers};
use crate::{
    arguments, content,
    dock::{Dock, Docked, hang_up},
    exit::Exit,
    output::Output,
};
use serde_json::{Value, json};
use wharf_mcp::{
    Raw, Request,
    model::{Item, Prompt, PromptResult},
    session::List,
};

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
    let exit = match find(&docked, &name) {
        Some((place, wire_name)) => get(&docked[place], &wire_name, &arguments, output).await,
        None => {
            docked
                .iter()
                .filter_map(|it| it.state.as_ref().err())
                .for_each(|it| output.complain(&fault_text(it)));
            output.complain(&not_found(&docked, &name));
            Exit::NotFound
        }
    };
    hang_up(docked).await;
    exit
}

/// The server that has the prompt, and its name there: by `server:name`, or by a name that only one has.
fn find(docked: &[Docked], wanted: &str) -> Option<(usize, String)> {
    let all = || {
        offers(docked).flat_map(|(source, offer)| {
            let place = docked.iter().position(|it| std::ptr::eq(it.upstream.source(), source));
            offer.prompts.iter().filter_map(move |it| match it {
                Item::Good(prompt) => Some((place?, source.name.expose(), prompt.name.as_str())),
                Item::Odd(..) => None,
            })
        })
    };
    let named = all().find(|(_, source, name)| {
        wanted.strip_prefix(source).and_then(|it| it.strip_prefix(':')) == Some(name)
    });
    let bare: Vec<_> = all().filter(|(_, _, name)| *name == wanted).collect();
    let found = named.or_else(|| if let [only] = bare[..] { Some(only) } else { None });
    found.map(|(place, _, name)| (place, name.to_owned()))
}

/// None has it, or several have.
fn not_found(docked: &[Docked], wanted: &str) -> String {
    let has = |it: &Item<Prompt>| matches!(it, Item::Good(prompt) if prompt.name == wanted);
    let owners: Vec<String> = offers(docked)
        .filter(|(_, offer)| offer.prompts.iter().any(has))
        .map(|(source, _)| format!("{}:{wanted}", source.name.shown()))
        .collect();
    match owners[..] {
        [] => format!("error: there is no prompt '{wanted}'\nhelp: `wharf prompts` lists what there is\n"),
        _ => format!(
            "error: several servers have a prompt '{wanted}'\nhelp: say which: {}\n",
            owners.join(", ")
        ),
    }
}

async fn get(docked: &Docked, name: &str, arguments: &Raw, output: Output) -> Exit {
    let Ok((live, _)) = &docked.state else { return Exit::Unavailable };
    match live.session.request(Request::get_prompt(name, Some(arguments))).await {
        Ok(raw) if output.json => {
            output.json(&content::value(&raw));
            Exit::Fine
        }
        Ok(raw) => {
            output.data(&to_text(&PromptResult::read(&raw)));
            Exit::Fine
        }
        Err(failure) => {
            let fault = docked.upstream.fault(&failure);
            if output.json {
                output.json(&json!({ "error": super::list::fault_json(&fault) }));
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
