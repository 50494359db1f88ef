//! `wharf tools --cached`: shows the tools from the last run without starting any server.

use super::{
    sections,
    token_table::{add_tokens, token_table},
    unknown_name,
    view::ToolView,
};
use crate::{
    cli::ToolsArgs,
    command_error::CommandError,
    exit::Exit,
    output::Output,
    tool_cache::{CHECKS_KEY, ToolCache},
};
use serde_json::{Value, json};

pub(in crate::commands) fn cached(tool_cache: &Option<ToolCache>, args: &ToolsArgs, output: Output) -> Exit {
    let recalled = tool_cache.as_ref().ok_or_else(|| "there is no state folder".to_owned());
    let shown = recalled.and_then(ToolCache::load).map_err(|why| {
        let complaint = format!(
            "there is no cached tool list for this agent file: {why}\nhelp: `wharf tools` creates one"
        );
        CommandError::new("MCPError", &complaint, Exit::Unavailable)
    });
    match shown.and_then(|list| show(list, args, output)) {
        Ok(()) => Exit::Success,
        Err(error) => output.fail(&error),
    }
}

fn show(mut list: Value, args: &ToolsArgs, output: Output) -> Result<(), CommandError> {
    for tool in list["tools"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        tool.shift_remove(CHECKS_KEY);
    }
    let name = args.name.as_deref();
    let tool = name.filter(|name| items(&list, "sources").all(|it| it["name"] != *name));
    let found = tool.map(|tool| find(&list, tool)).transpose()?;
    let server = found.as_ref().map_or(name, |it| it["source"].as_str()).map(str::to_owned);
    for (key, field) in [("tools", "source"), ("sources", "name")] {
        if let Some(items) = list[key].as_array_mut() {
            items.retain(|it| server.as_ref().is_none_or(|server| it[field] == **server));
        }
    }
    if let Some(found) = &found {
        list["tools"] = json!([found]);
    }
    if let (true, Some(tools)) = (args.tokens && output.json, list["tools"].as_array_mut()) {
        let total = add_tokens(tools);
        list["tokens"] = json!(total);
    }
    match (&found, output.json) {
        (_, true) => output.json(&list),
        (Some(found), false) if !args.tokens => output.data(&ToolView::of(found).page()),
        (_, false) => output.data(&to_text(&list, args)),
    }
    Ok(())
}

fn to_text(list: &Value, args: &ToolsArgs) -> String {
    let tools: Vec<Value> = items(list, "tools").cloned().collect();
    let mut servers: Vec<&str> = tools.iter().filter_map(|it| it["source"].as_str()).collect();
    servers.dedup();
    let servers = servers.into_iter().map(|it| (it, it));
    if args.tokens {
        return token_table(servers, &tools);
    }
    sections(servers, &tools, args.name.is_some() || args.long, args.long)
}

/// Finds a tool by its shown name, by `server:tool`, or by its bare name if that is unique.
fn find(list: &Value, name: &str) -> Result<Value, CommandError> {
    let word = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    let is_meant = |it: &&Value| {
        word(it, "name") == name || format!("{}:{}", word(it, "source"), word(it, "wire_name")) == name
    };
    let mut bare = items(list, "tools").filter(|it| it["wire_name"] == name);
    let only = bare.next().filter(|_| bare.next().is_none());
    let found = items(list, "tools").find(is_meant).or(only);
    found.cloned().ok_or_else(|| {
        let servers: Vec<String> = items(list, "sources").map(|it| word(it, "name")).collect();
        let tools: Vec<(String, String)> =
            items(list, "tools").map(|it| (word(it, "name"), word(it, "wire_name"))).collect();
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        let tools: Vec<(&str, &str)> = tools.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        unknown_name(name, &servers, &tools)
    })
}

fn items<'a>(list: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    list[key].as_array().into_iter().flatten()
}
