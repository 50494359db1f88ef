//! `wharf read`: one resource.

use super::list::{fault_json, fault_text, offers};
use crate::{
    content,
    dock::{Dock, Docked, hang_up},
    exit::Exit,
    output::Output,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wharf_mcp::{
    Class, Request,
    model::{Item, ReadResult},
    session::List,
};

pub(super) async fn run(dock: Dock, uri: String, save: Option<PathBuf>) -> Exit {
    let output = dock.output;
    let docked = dock.connect(|_| true, &[List::Resources]).await;
    let exit = read(&docked, &uri, save.as_deref(), output).await;
    hang_up(docked).await;
    exit
}

/// Asks the server that lists the resource; if none does, those that have resources, one after the other.
async fn read(docked: &[Docked], uri: &str, save: Option<&Path>, output: Output) -> Exit {
    let lists = |it: &&Docked| {
        let offer = offers(std::slice::from_ref(*it)).next();
        offer.is_some_and(|(_, offer)| {
            offer.resources.iter().any(|it| matches!(it, Item::Good(it) if it.uri == uri))
        })
    };
    let owner: Vec<&Docked> = docked.iter().filter(lists).collect();
    let has_resources = |it: &&Docked| {
        it.state.as_ref().is_ok_and(|(live, _)| live.session.terms().offers("resources", None))
    };
    let asked: Vec<&Docked> =
        if owner.is_empty() { docked.iter().filter(has_resources).collect() } else { owner };
    let mut refused = None;
    for it in asked {
        let Ok((live, _)) = &it.state else { continue };
        match live.session.request(Request::read_resource(uri)).await {
            Ok(raw) => return say(&ReadResult::read(&raw), save, output),
            Err(failure) => refused = Some((failure.class, it.upstream.fault(&failure))),
        }
    }
    let (fault, exit) = match refused {
        Some((Class::Rpc, fault)) => (fault, Exit::NotFound),
        Some((_, fault)) => (fault.clone(), fault.kind.into()),
        None => return nobody(docked, uri, output),
    };
    if output.json {
        output.json(&json!({ "error": fault_json(&fault) }));
    } else {
        output.complain(&fault_text(&fault));
    }
    exit
}

fn say(result: &ReadResult, save: Option<&Path>, output: Output) -> Exit {
    if output.json {
        let contents: Vec<Value> = result
            .contents
            .iter()
            .map(|it| match it {
                Item::Good(it) => content::contents_json(it),
                Item::Odd(raw, why) => {
                    json!({ "type": "unknown", "reason": why, "raw": content::value(raw) })
                }
            })
            .collect();
        output.json(&json!({ "contents": contents }));
        return Exit::Fine;
    }
    for (number, contents) in result.contents.iter().enumerate() {
        let text = match contents {
            Item::Good(contents) => content::contents_text(contents, number, save),
            Item::Odd(raw, why) => format!("[{why}] {}", content::printable(raw.as_str())),
        };
        output.data(&if text.ends_with('\n') { text } else { text + "\n" });
    }
    Exit::Fine
}

fn nobody(docked: &[Docked], uri: &str, output: Output) -> Exit {
    let faults: Vec<_> = docked.iter().filter_map(|it| it.state.as_ref().err()).collect();
    faults.iter().for_each(|it| output.complain(&fault_text(it)));
    output.complain(&format!(
        "error: no server has a resource '{uri}'\nhelp: `wharf resources` lists what there is\n"
    ));
    if faults.len() == docked.len() && !docked.is_empty() { Exit::Unavailable } else { Exit::NotFound }
}
