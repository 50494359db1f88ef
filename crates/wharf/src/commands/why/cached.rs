//! `wharf why --cached`: explains a tool from the agent file, its lock and the tool list of the last run, without starting
//! a server. It says which layers it cannot check.

use crate::{
    command_error::CommandError,
    exit::Exit,
    tool_cache::{CHECKS_KEY, ToolCache},
    why_layers::ask_layer,
};
use serde_json::Value;
use wharf_agent::RunRules;
use wharf_config::{Glob, LockMode, Plan, Source};
use wharf_runtime::{
    catalog::{QuarantineCause, tool_id},
    lock::LockState,
    why::{Audience, ToolExplanation, ToolLayer},
};

/// Code of a layer that needs a running server.
pub(super) const NOT_CHECKED: &str = "not_checked";

/// The tool list of the last run.
pub(super) struct CachedList {
    at: String,
    tools: Vec<CachedTool>,
}

/// A tool of the list.
struct CachedTool {
    source: String,
    name: String,
    wire_name: String,
    annotations: Value,
    /// Why the tool is quarantined, if it is.
    quarantined: Option<String>,
    cause: QuarantineCause,
    /// Hash of the server's definition, as the lock has it. Lists of earlier versions have none.
    hash: Option<String>,
}

impl CachedList {
    /// Reads the list.
    pub(super) fn load(tool_cache: Option<&ToolCache>) -> Result<CachedList, CommandError> {
        let list = tool_cache.ok_or_else(|| "there is no state folder".to_owned()).and_then(ToolCache::load);
        let list = list.map_err(|why| {
            let complaint = format!(
                "there is no cached tool list for this agent file: {why}\nhelp: `wharf tools` creates one"
            );
            CommandError::new("MCPError", &complaint, Exit::Unavailable)
        })?;
        let tools = list["tools"].as_array().into_iter().flatten().map(CachedTool::of).collect();
        Ok(CachedList { at: list["at"].as_str().unwrap_or_default().to_owned(), tools })
    }

    /// Finds the tools that a name means: those with this shown name or id, otherwise those with this bare name.
    fn find(&self, name: &str) -> Vec<&CachedTool> {
        let exact = self.tools.iter().find(|it| it.name == name || it.id() == name);
        exact.map_or_else(|| self.tools.iter().filter(|it| it.wire_name == name).collect(), |it| vec![it])
    }
}

impl CachedTool {
    fn of(tool: &Value) -> CachedTool {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let checks = &tool[CHECKS_KEY];
        let cause = checks["quarantine"].as_str().and_then(QuarantineCause::parse);
        CachedTool {
            source: text(&tool["source"]).unwrap_or_default(),
            name: text(&tool["name"]).unwrap_or_default(),
            wire_name: text(&tool["wire_name"]).unwrap_or_default(),
            annotations: tool["annotations"].clone(),
            quarantined: text(&tool["quarantined"]),
            cause: cause.unwrap_or(QuarantineCause::Schema),
            hash: text(&checks["hash"]),
        }
    }

    fn id(&self) -> String {
        tool_id(&self.source, &self.wire_name)
    }
}

/// Explains a tool.
pub(super) fn explain_cached(
    plan: &Plan,
    rules: &RunRules,
    list: &CachedList,
    name: &str,
    audience: Audience,
) -> ToolExplanation {
    let found = list.find(name);
    if found.len() > 1 {
        let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
        return explanation(name, vec![ambiguous(&names)]);
    }
    let tool = found.first().copied();
    let source = plan.sources.iter().find(|it| match tool {
        Some(tool) => tool.source == it.name.expose(),
        None => wire_name_of(it, name).is_some(),
    });
    let Some(source) = source else { return explanation(name, vec![config(None)]) };
    let Some(tool) = tool else {
        let hidden = wire_name_of(source, name).and_then(|it| override_hides(source, it));
        return explanation(name, vec![config(Some(source)), hidden.unwrap_or_else(|| not_listed(&list.at))]);
    };
    let mut layers = vec![
        config(Some(source)),
        layer("listing", None, format!("the server listed the tool at {}", list.at)),
        quarantine(tool),
        lock(plan, source, tool),
        override_hides(source, &tool.wire_name).unwrap_or_else(|| override_applies(source, tool)),
        not_checked("switch", "only a gateway knows whether an operator disabled the tool"),
    ];
    if audience == Audience::Agent {
        let names = (tool.name.as_str(), tool.wire_name.as_str());
        layers.push(ask_layer(rules.explain_listed(source, names, &tool.annotations)));
    }
    layers.extend([
        offer(source, tool, audience),
        layer("name", None, format!("shown as `{}`, also callable as `{}`", tool.name, tool.id())),
        not_checked("session", "the server was not started"),
        not_checked("breaker", "the server was not started"),
    ]);
    explanation(&tool.id(), layers)
}

fn explanation(tool_id: &str, layers: Vec<ToolLayer>) -> ToolExplanation {
    let is_unknown = layers.iter().any(|it| matches!(it.code, Some("source_unknown" | "not_listed")));
    ToolExplanation { tool_id: tool_id.to_owned(), is_unknown, layers, similar: Vec::new(), recent: None }
}

/// Returns the name on the wire, if the name begins with the name or the prefix of the source.
fn wire_name_of<'a>(source: &Source, name: &'a str) -> Option<&'a str> {
    let behind = |start: &str, separator: &str| {
        name.strip_prefix(start).filter(|_| !start.is_empty())?.strip_prefix(separator)
    };
    behind(source.name.expose(), ":").or_else(|| behind(source.prefix.expose(), "__"))
}

fn layer(name: &'static str, code: Option<&'static str>, detail: impl Into<String>) -> ToolLayer {
    ToolLayer { name, is_ok: code.is_none(), code, detail: detail.into(), hint: None, at: None }
}

fn not_checked(name: &'static str, why: &str) -> ToolLayer {
    ToolLayer { code: Some(NOT_CHECKED), ..layer(name, None, format!("not checked: {why}")) }
}

fn ambiguous(names: &[&str]) -> ToolLayer {
    ToolLayer {
        hint: Some(format!("choose one: {}", names.join(", "))),
        ..layer("name", Some("ambiguous"), "several servers have a tool of this name")
    }
}

fn config(source: Option<&Source>) -> ToolLayer {
    match source {
        Some(source) => ToolLayer {
            at: Some(source.at.to_string()),
            ..layer("config", None, format!("the entry `{}`", source.name.shown()))
        },
        None => ToolLayer {
            hint: Some("`wharf tools` lists all tools".to_owned()),
            ..layer("config", Some("source_unknown"), "no server has this name or prefix")
        },
    }
}

fn not_listed(at: &str) -> ToolLayer {
    ToolLayer {
        hint: Some("`wharf tools` reads the lists again".to_owned()),
        ..layer("listing", Some("not_listed"), format!("the server did not list such a tool at {at}"))
    }
}

fn quarantine(tool: &CachedTool) -> ToolLayer {
    match &tool.quarantined {
        Some(why) if tool.cause != QuarantineCause::Override => ToolLayer {
            hint: Some("the server has to fix its definition".to_owned()),
            ..layer("quarantine", Some(tool.cause.as_str()), why)
        },
        _ => layer("quarantine", None, "the definition is valid"),
    }
}

/// Compares the listed definition with the lock file. Whether the package is the locked one is known only when it runs.
fn lock(plan: &Plan, source: &Source, tool: &CachedTool) -> ToolLayer {
    let state = LockState::new(plan.lock.clone(), Default::default());
    let Some(server) = state.server(source) else {
        return layer("lock", None, "nothing differs from a lock");
    };
    let locked = server.tools.get(&tool.wire_name);
    let Some(hash) = &tool.hash else {
        return not_checked("lock", "the cached list has no hashes; `wharf tools` reads the lists again");
    };
    let (code, detail) = match locked {
        Some(locked) if locked.hash == *hash => {
            return layer("lock", None, "the definition is the locked one");
        }
        Some(_) => ("changed", "the definition differs from wharf.lock"),
        None => ("new", "wharf.lock does not have the tool"),
    };
    let stopped = ToolLayer {
        hint: Some(format!(
            "review it with `wharf lock --diff {id}`, then `wharf lock --accept {id}`",
            id = tool.id()
        )),
        ..layer("lock", Some(code), detail)
    };
    ToolLayer { is_ok: source.lock.mode != LockMode::Enforce, ..stopped }
}

fn override_hides(source: &Source, wire_name: &str) -> Option<ToolLayer> {
    let changes = source.overrides.find(wire_name).filter(|it| !it.enabled)?;
    Some(ToolLayer {
        at: Some(changes.at.to_string()),
        hint: Some("remove `enabled: false` from the override".to_owned()),
        ..layer("override", Some("hidden"), "an override hides the tool from everybody")
    })
}

fn override_applies(source: &Source, tool: &CachedTool) -> ToolLayer {
    let at = source.overrides.find(&tool.wire_name).map(|it| it.at.to_string());
    match &tool.quarantined {
        Some(why) if tool.cause == QuarantineCause::Override => ToolLayer {
            at,
            hint: Some("change the override in agent.yaml".to_owned()),
            ..layer("override", Some("invalid"), why)
        },
        _ if at.is_some() => ToolLayer { at, ..layer("override", None, "an override changes the tool") },
        _ => layer("override", None, "no override"),
    }
}

fn offer(source: &Source, tool: &CachedTool, audience: Audience) -> ToolLayer {
    let matches = |it: &&Glob| it.matches(&tool.wire_name) || it.matches(&tool.name);
    let denied = source.deny.iter().find(matches);
    let is_allowed = source.allow.is_empty() || source.allow.iter().any(|it| matches(&it));
    let rule = match denied {
        Some(glob) => format!("'{}' in `deny`", glob.as_str()),
        None if is_allowed => return layer("offer", None, "models may use the tool"),
        None => "`allow`, which does not name it,".to_owned(),
    };
    match audience {
        Audience::Client => ToolLayer {
            is_ok: true,
            ..layer(
                "offer",
                Some("denied"),
                format!("{rule} keeps the tool from models; other clients may call it"),
            )
        },
        Audience::Agent => ToolLayer {
            hint: Some("change `allow` or `deny` of the entry".to_owned()),
            ..layer("offer", Some("denied"), format!("{rule} keeps the tool from models"))
        },
    }
}
