//! `wharf lint`: finds definitions of tools that are hard to use or suspicious, and suggests overrides.

mod rules;

use super::list::{report_failures, unknown_server};
use crate::{app::App, cli::LintArgs, command_error::CommandError, content::printable, exit::Exit};
use rules::{CODES, Finding, findings};
use serde_json::json;
use wharf_mcp::session::List;

/// Connects to the servers and checks their tools.
pub(super) async fn run(app: App, args: LintArgs) -> Exit {
    let output = app.output;
    if let Some(error) = args.name.as_deref().and_then(|name| unknown_server(&app, name)) {
        return output.fail(&error);
    }
    if let Some(code) = args.deny.iter().find(|it| !CODES.contains(&it.as_str())) {
        let complaint = format!("there is no finding '{code}'\nhelp: the findings are {}", CODES.join(", "));
        return output.fail(&CommandError::usage(&complaint));
    }
    let connections = app
        .connect(|it| args.name.as_deref().is_none_or(|name| it.name.expose() == name), &[List::Tools])
        .await;
    let listed = connections.sources.iter().filter(|it| it.is_connected());
    let sources: Vec<_> = listed.map(|it| it.source.clone()).collect();
    let found = findings(&connections.catalog, &sources);
    let is_denied = found.iter().any(|it| args.deny.iter().any(|code| code == it.code));
    match output.json {
        true => {
            let findings: Vec<_> = found.iter().map(Finding::to_json).collect();
            output.json(&json!({ "findings": findings }));
        }
        false => {
            output.data(&found.iter().map(text).collect::<String>());
            output.print_info(&summary(found.len()));
        }
    }
    let failed = report_failures(&connections, output);
    connections.close().await;
    if is_denied { Exit::ToolError } else { failed }
}

fn summary(count: usize) -> String {
    match count {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        _ => format!("{count} findings"),
    }
}

fn text(finding: &Finding) -> String {
    let Finding { code, tool_id, message, tokens, suggestion } = finding;
    let tokens = tokens.map(|it| format!(" ({it} tokens)")).unwrap_or_default();
    let suggestion = suggestion.as_ref().map(|it| format!("      overrides: {it}\n")).unwrap_or_default();
    format!("{code}  {}{tokens}: {}\n{}", printable(tool_id), printable(message), printable(&suggestion))
}
