//! `wharf read`: reads one resource.

use super::list::fault_text;
use crate::{
    app::{App, ConnectedSource, Connections},
    command_error::CommandError,
    content,
    exit::Exit,
    message_reader::MessageReader,
    output::Output,
};
use std::path::{Path, PathBuf};
use wharf_mcp::{
    Raw,
    model::{Contents, Item, ReadResult},
    session::List,
};
use wharf_runtime::views::{contents_block, unknown_block};

pub(super) async fn run(app: App, uri: String, save: Option<PathBuf>) -> Exit {
    let output = app.output;
    let connections = app.connect(|_| true, &[List::Resources]).await;
    let exit = read(&connections, &uri, save.as_deref(), output).await;
    connections.close().await;
    exit
}

/// Reads the resource and prints it.
async fn read(connections: &Connections, uri: &str, save: Option<&Path>, output: Output) -> Exit {
    let reader = MessageReader { handle: &connections.handle, catalog: &connections.catalog, caller: None };
    match reader.find_resource(uri, None).await {
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
