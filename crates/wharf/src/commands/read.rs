//! `wharf read`: reads one resource.

use super::list::fault_text;
use crate::{
    app::{App, ConnectedSource, Connections},
    command_error::CommandError,
    content,
    exit::Exit,
    output::Output,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use wharf_mcp::{
    Raw, RpcError,
    model::{Contents, Item, ReadResult},
    session::List,
};
use wharf_runtime::{
    Fault,
    views::{contents_block, unknown_block},
};

pub(super) async fn run(app: App, uri: String, save: Option<PathBuf>) -> Exit {
    let output = app.output;
    let connections = app.connect(|_| true, &[List::Resources]).await;
    let exit = read(&connections, &uri, save.as_deref(), output).await;
    connections.close().await;
    exit
}

/// Reads the resource and prints it.
async fn read(connections: &Connections, uri: &str, save: Option<&Path>, output: Output) -> Exit {
    match find_resource(connections, uri).await {
        Ok((_, result)) => print_contents(&result, save, output),
        Err(None) => report_not_found(connections, uri, output),
        Err(Some(fault)) => {
            let exit = if fault.rpc.is_some() { Exit::NotFound } else { fault.kind.into() };
            let mut error = CommandError::from(&*fault);
            error.exit = exit;
            output.fail(&error)
        }
    }
}

/// Reads a resource from the server that lists it. If none does, tries every connected server in turn. The error is that of the last server, or `None` if no server has it.
pub(super) async fn find_resource(
    connections: &Connections,
    uri: &str,
) -> Result<(String, ReadResult), Option<Arc<Fault>>> {
    let lists = |it: &&ConnectedSource| {
        connections
            .catalog
            .resources
            .iter()
            .any(|resource| it.is_named(&resource.source) && resource.item.uri == uri)
    };
    let owner: Vec<&ConnectedSource> = connections.sources.iter().filter(lists).collect();
    let all_healthy = || connections.sources.iter().filter(|it| it.is_connected()).collect();
    let mut refused = None;
    for it in if owner.is_empty() { all_healthy() } else { owner } {
        match connections.handle.read(it.source.name.expose(), uri, None).await {
            Ok(raw) => return Ok((it.source.name.expose().to_owned(), ReadResult::read(&raw))),
            // This server does not support resources, so its error does not matter.
            Err(fault) if fault.rpc.as_ref().is_some_and(|it| it.code == RpcError::METHOD_NOT_FOUND) => {}
            Err(fault) => refused = Some(fault),
        }
    }
    Err(refused)
}

fn print_contents(result: &ReadResult, save: Option<&Path>, output: Output) -> Exit {
    if output.json {
        let contents = result.contents.iter().map(|it| match it {
            Item::Valid(it) => contents_block(it).into(),
            Item::Invalid(raw, why) => unknown_block(raw, why),
        });
        output.raw_json(&Raw::object([("contents", Raw::list(contents))]));
        return Exit::Success;
    }
    for (number, contents) in result.contents.iter().enumerate() {
        let text = match contents {
            Item::Valid(Contents { text: Some(text), .. }) => {
                content::format_text(text, output.is_for_terminal())
            }
            Item::Valid(contents) => content::contents_text(contents, number, save),
            Item::Invalid(raw, why) => format!("[{why}] {}", content::printable(raw.as_str())),
        };
        output.data(&if text.ends_with('\n') { text } else { text + "\n" });
    }
    Exit::Success
}

fn report_not_found(connections: &Connections, uri: &str, output: Output) -> Exit {
    connections.faults().for_each(|it| output.print_error(&fault_text(it)));
    let all_failed =
        !connections.sources.is_empty() && !connections.sources.iter().any(ConnectedSource::is_connected);
    let exit = if all_failed { Exit::Unavailable } else { Exit::NotFound };
    let complaint = format!("no server has a resource '{uri}'\nhelp: `wharf resources` lists all resources");
    output.fail(&CommandError::new("MCPError", &complaint, exit))
}
