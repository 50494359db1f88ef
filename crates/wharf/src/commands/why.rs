//! `wharf why`: explains whether a tool can be called and what stops it, or what happened in a conversation.

mod conversation;

use super::call::can_have_tool;
use crate::{
    app::App,
    cli::{Verdict, WhyArgs},
    command_error::CommandError,
    content::printable,
    exit::Exit,
};
use uuid::Uuid;
use wharf_mcp::session::List;
use wharf_runtime::why::{Audience, ToolExplanation, ToolLayer, explain_tool};

/// Explains a conversation, or connects to the server of the tool and explains that.
pub(super) async fn run(app: App, args: WhyArgs) -> Exit {
    let output = app.output;
    // The ids of conversations are UUIDs, and no tool has such a name.
    if Uuid::parse_str(&args.tool).is_ok() {
        return conversation::run(app, &args.tool, args.call.as_deref()).await;
    }
    if args.call.is_some() {
        return output.fail(&CommandError::usage("a call can be named only after a conversation"));
    }
    let sources = &app.plan.sources;
    let connections = app.connect(|it| can_have_tool(it, &args.tool, sources), &[List::Tools]).await;
    let audience = if args.for_agent { Audience::Agent } else { Audience::Client };
    let explanation = explain_tool(&connections.handle, &args.tool, audience);
    match output.json {
        true => output.json(&explanation.to_json()),
        false => output.data(&text(&explanation)),
    }
    connections.close().await;
    exit(&explanation, args.expect)
}

fn exit(explanation: &ToolExplanation, expected: Option<Verdict>) -> Exit {
    let is_stopped = explanation.stopped_by().is_some();
    match expected {
        _ if explanation.is_unknown => Exit::NotFound,
        Some(Verdict::Hidden) if is_stopped => Exit::Success,
        Some(Verdict::Callable) | None if !is_stopped => Exit::Success,
        _ => Exit::ToolError,
    }
}

/// Formats the answer first, then every layer.
fn text(explanation: &ToolExplanation) -> String {
    let id = printable(&explanation.tool_id);
    let mut out = match explanation.stopped_by() {
        None => format!("{id} can be called\n"),
        Some(layer) => {
            let hint = layer.hint.as_ref().map(|it| format!("help: {}\n", printable(it))).unwrap_or_default();
            let code = layer.code.unwrap_or_default();
            format!("{id} is stopped by {}/{code}: {}\n{hint}", layer.name, printable(&layer.detail))
        }
    };
    if !explanation.similar.is_empty() {
        out.push_str(&format!("similar: {}\n", printable(&explanation.similar.join(", "))));
    }
    let line = |it: &ToolLayer| {
        let state = if it.is_ok { "ok  " } else { "FAIL" };
        let at = it.at.as_ref().map(|at| format!(" ({})", printable(at))).unwrap_or_default();
        format!("  {state}  {:<12}  {}{at}\n", it.name, printable(&it.detail))
    };
    out + &explanation.layers.iter().map(line).collect::<String>()
}
