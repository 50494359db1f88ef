//! `wharf why`: explains whether a tool can be called and what stops it, or what happened in a conversation.

mod cached;
mod conversation;
mod rendering;

use super::{call::can_have_tool, gateway_client::GatewayClient};
use crate::{
    app::App,
    cli::{Verdict, WhyArgs, WhyAudience},
    command_error::CommandError,
    environment::Token,
    exit::Exit,
    output::Output,
    recent_calls::add_recent_calls,
    tool_cache::ToolCache,
    why_layers::{ask_layer, role_layer},
};
use cached::{CachedList, explain_cached};
use rendering::to_text;
use serde_json::Value;
use uuid::Uuid;
use wharf_agent::RunRules;
use wharf_mcp::session::List;
use wharf_runtime::{
    Catalog, Handle,
    why::{Audience, ToolExplanation, explain_tool},
};
use wharf_store::{Location, Store};

/// Explains a conversation, or connects to the server of the tool and explains that.
pub(super) async fn run(
    app: App,
    args: WhyArgs,
    tool_cache: Option<ToolCache>,
    token: Option<Token>,
) -> Exit {
    let output = app.output;
    // The ids of conversations are UUIDs, and no tool has such a name.
    if Uuid::parse_str(&args.tool).is_ok() {
        return conversation::run(app, &args.tool, args.call.as_deref()).await;
    }
    if args.call.is_some() {
        return output.fail(&CommandError::usage("a call can be named only after a conversation"));
    }
    let explained = match &args.server {
        Some(server) => ask_gateway(server, token, &args).await,
        None => explain(&app, &args, tool_cache.as_ref()).await.map(|it| (it.to_json(), it.is_unknown)),
    };
    match explained {
        Ok((explanation, is_unknown)) => {
            print(&explanation, output);
            if is_unknown { Exit::NotFound } else { exit(&explanation, args.expect) }
        }
        Err(error) => output.fail(&error),
    }
}

/// Explains a tool of the agent file. With `--cached` it starts nothing.
async fn explain(
    app: &App,
    args: &WhyArgs,
    tool_cache: Option<&ToolCache>,
) -> Result<ToolExplanation, CommandError> {
    let audience = match args.audience {
        Some(WhyAudience::Agent) => Audience::Agent,
        Some(WhyAudience::Client) | None => Audience::Client,
    };
    let role = args.principal.as_deref().map(|it| role_of(app, it)).transpose()?;
    let mut explanation = match args.cached {
        true => {
            let cached_list = CachedList::load(tool_cache)?;
            explain_cached(&app.plan, &approval_rules(app), &cached_list, &args.tool, audience)
        }
        false => {
            let sources = &app.plan.sources;
            let connections = app.connect(|it| can_have_tool(it, &args.tool, sources), &[List::Tools]).await;
            let mut explanation = explain_tool(&connections.handle, &args.tool, audience);
            add_approval(&mut explanation, app, &connections.catalog, audience);
            add_journal(&mut explanation, app, &connections.handle).await;
            connections.close().await;
            explanation
        }
    };
    if let Some((name, role)) = role {
        explanation.add_layer("override", role_layer(&name, role));
    }
    Ok(explanation)
}

/// Adds whether a call of the model needs approval.
fn add_approval(explanation: &mut ToolExplanation, app: &App, catalog: &Catalog, audience: Audience) {
    let Some(tool) = catalog.tool(&explanation.tool_id).filter(|_| audience == Audience::Agent) else {
        return;
    };
    explanation.add_layer("switch", ask_layer(approval_rules(app).explain(tool)));
}

/// Returns the rules of agent.yaml and of wharf.toml.
fn approval_rules(app: &App) -> RunRules {
    let (configured, operator) = (app.plan.agent.approval.clone(), app.agent_policy.approval.clone());
    RunRules { configured, operator, ..RunRules::default() }
}

/// Returns the role of a token of wharf.toml.
fn role_of(app: &App, name: &str) -> Result<(String, wharf_config::Role), CommandError> {
    let found = app.server.tokens.iter().find(|it| it.name == name);
    let role = found.map(|it| it.role).or((name == "operator").then_some(wharf_config::Role::Admin));
    let unknown = || {
        let complaint = format!("wharf.toml has no token '{name}'\nhelp: `[tokens]` lists them");
        CommandError::new("MCPToolNotFoundError", &complaint, Exit::NotFound)
    };
    Ok((name.to_owned(), role.ok_or_else(unknown)?))
}

/// Adds the latest calls, if there is a journal.
async fn add_journal(explanation: &mut ToolExplanation, app: &App, handle: &Handle) {
    let is_there = |it: &&Location| !matches!(it, Location::Sqlite(path) if !path.exists());
    let Some(location) = app.database.as_ref().filter(is_there) else { return };
    if let Ok(store) = Store::open(location).await {
        add_recent_calls(explanation, &store, handle).await;
        store.close().await;
    }
}

/// Asks a running gateway.
async fn ask_gateway(
    server: &str,
    token: Option<Token>,
    args: &WhyArgs,
) -> Result<(Value, bool), CommandError> {
    let to_error =
        |it: super::gateway_client::GatewayClientError| CommandError::new("MCPError", &it.message, it.exit);
    let gateway = GatewayClient::new(server, token).map_err(to_error)?;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    if args.audience == Some(WhyAudience::Agent) {
        query.append_pair("for", "agent");
    }
    if let Some(principal) = &args.principal {
        query.append_pair("principal", principal);
    }
    let tool: String = url::form_urlencoded::byte_serialize(args.tool.as_bytes()).collect();
    let path = format!("/api/v1/tools/{}/why?{}", tool.replace('+', "%20"), query.finish());
    gateway.request("GET", &path, None).await.map(|it| (it, false)).map_err(to_error)
}

fn print(explanation: &Value, output: Output) {
    match output.json {
        true => output.json(explanation),
        false => output.data(&to_text(explanation)),
    }
}

fn exit(explanation: &Value, expected: Option<Verdict>) -> Exit {
    let is_stopped = explanation["verdict"] == "stopped";
    let mut layers = explanation["layers"].as_array().into_iter().flatten();
    let is_asked = layers.any(|it| it["layer"] == "ask" && it["code"] == "asked");
    let is_expected = match expected {
        None => !is_stopped,
        Some(Verdict::Callable) => !is_stopped && !is_asked,
        Some(Verdict::Asked) => !is_stopped && is_asked,
        Some(Verdict::Hidden) => is_stopped,
    };
    if is_expected { Exit::Success } else { Exit::ToolError }
}
