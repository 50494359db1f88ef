//! `wharf doctor`: how every server is, and what to do about those that are not well.

use super::list::{fault_text, source_json};
use crate::{
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

/// One line for a server that is well; for another, the line, its last words and what to do.
fn row(docked: &Docked, width: usize) -> String {
    let source = docked.upstream.source();
    let (name, transport) = (source.name.shown(), source.endpoint.transport());
    match &docked.state {
        Ok((live, offer)) => format!(
            "ok    {name:<width$}  {transport:<9}  {}  {} tools, {} prompts, {} resources  ready after {:.1} s\n",
            live.session.terms().version,
            offer.tools.len(),
            offer.prompts.len(),
            offer.resources.len(),
            live.took.as_secs_f64(),
        ),
        Err(fault) => {
            let details: String = fault_text(fault).lines().map(|it| format!("      {it}\n")).collect();
            format!("FAIL  {name:<width$}  {transport}\n{details}")
        }
    }
}
