//! `wharf doctor`: how every server is, and what to do about those that are not well.

use super::list::source_json;
use crate::{
    content::printable,
    dock::{Dock, Docked, hang_up},
    exit::Exit,
};
use serde_json::{Value, json};
use wharf_mcp::session::List;

pub(super) async fn run(dock: Dock) -> Exit {
    let docked = dock.connect(|_| true, &[List::Tools, List::Prompts, List::Resources]).await;
    let output = dock.output;
    if output.json {
        let sources: Vec<Value> = docked.iter().map(source_json).collect();
        output.json(&json!({ "ok": docked.iter().all(|it| it.state.is_ok()), "sources": sources }));
    } else {
        let width = docked
            .iter()
            .map(|it| it.upstream.source().name.shown().chars().count())
            .max()
            .unwrap_or_default();
        let rows: String = docked.iter().map(|it| row(it, width)).collect();
        output.data(&rows);
    }
    let well = docked.iter().all(|it| it.state.is_ok());
    hang_up(docked).await;
    if well { Exit::Fine } else { Exit::Unavailable }
}

/// One line for a server that is well; for another, the line, the cause, its last words and what to do.
fn row(docked: &Docked, width: usize) -> String {
    let source = docked.upstream.source();
    let (name, transport) = (source.name.shown(), source.endpoint.transport());
    match &docked.state {
        Ok((live, offer)) => format!(
            "ok    {name:<width$}  {transport:<9}  {}  {}, {}, {}  ready after {:.1} s\n",
            live.session.terms().version,
            count(offer.tools.len(), "tool"),
            count(offer.prompts.len(), "prompt"),
            count(offer.resources.len(), "resource"),
            live.took.as_secs_f64(),
        ),
        Err(fault) => {
            let said = fault.stderr.lines().map(|it| format!("        | {}\n", printable(it)));
            let help = fault.hint.iter().map(|it| format!("      help: {it}\n"));
            let details: String = said.chain(help).collect();
            let (kind, cause, target) = (fault.kind.as_str(), &fault.cause, &fault.target);
            format!("FAIL  {name:<width$}  {transport:<9}  {target}\n      {kind}: {cause}\n{details}")
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
