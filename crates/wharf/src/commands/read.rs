//! `wharf read`: reads one resource.

use super::list::fault_text;
use crate::{
    command_error::CommandError,
    content,
    dock::{Dock, Docked, DockedSource},
    exit::Exit,
    output::Output,
};
use std::path::{Path, PathBuf};
use wharf_mcp::{
    Raw, RpcError,
    model::{Contents, Item, ReadResult},
    session::List,
};
use wharf_runtime::project::{contents_block, unknown_block};

pub(super) async fn run(dock: Dock, uri: String, save: Option<PathBuf>) -> Exit {
    let output = dock.output;
    let docked = dock.connect(|_| true, &[List::Resources]).await;
    let exit = read(&docked, &uri, save.as_deref(), output).await;
    docked.leave().await;
    exit
}

/// Reads the resource from the server that lists it. If none does, tries every connected server in turn.
async fn read(docked: &Docked, uri: &str, save: Option<&Path>, output: Output) -> Exit {
    let lists = |it: &&DockedSource| {
        docked.catalog.resources.iter().any(|resource| it.has(&resource.source) && resource.item.uri == uri)
    };
    let owner: Vec<&DockedSource> = docked.sources.iter().filter(lists).collect();
    let everyone = || docked.sources.iter().filter(|it| it.is_well()).collect();
    let mut refused = None;
    for it in if owner.is_empty() { everyone() } else { owner } {
        match docked.handle.read(it.source.name.expose(), uri).await {
            Ok(raw) => return say(&ReadResult::read(&raw), save, output),
            // This server does not support resources, so its error does not matter.
            Err(fault) if fault.rpc.as_ref().is_some_and(|it| it.code == RpcError::METHOD_NOT_FOUND) => {}
            Err(fault) => refused = Some(fault),
        }
    }
    let Some(fault) = refused else { return nobody(docked, uri, output) };
    let exit = if fault.rpc.is_some() { Exit::NotFound } else { fault.kind.into() };
    let mut error = CommandError::from(&*fault);
    error.exit = exit;
    output.fail(&error)
}

fn say(result: &ReadResult, save: Option<&Path>, output: Output) -> Exit {
    if output.json {
        let contents = result.contents.iter().map(|it| match it {
            Item::Good(it) => contents_block(it).into(),
            Item::Odd(raw, why) => unknown_block(raw, why),
        });
        output.raw_json(&Raw::object([("contents", Raw::list(contents))]));
        return Exit::Fine;
    }
    for (number, contents) in result.contents.iter().enumerate() {
        let text = match contents {
            Item::Good(Contents { text: Some(text), .. }) => {
                content::laid_out(text, output.is_for_a_person())
            }
            Item::Good(contents) => content::contents_text(contents, number, save),
            Item::Odd(raw, why) => format!("[{why}] {}", content::printable(raw.as_str())),
        };
        output.data(&if text.ends_with('\n') { text } else { text + "\n" });
    }
    Exit::Fine
}

fn nobody(docked: &Docked, uri: &str, output: Output) -> Exit {
    docked.faults().for_each(|it| output.complain(&fault_text(it)));
    let hopeless = !docked.sources.is_empty() && !docked.sources.iter().any(DockedSource::is_well);
    let exit = if hopeless { Exit::Unavailable } else { Exit::NotFound };
    let complaint = format!("no server has a resource '{uri}'\nhelp: `wharf resources` lists what there is");
    output.fail(&CommandError::new("MCPError", &complaint, exit))
}
