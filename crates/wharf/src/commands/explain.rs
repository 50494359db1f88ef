//! `wharf explain`: shows the configuration of each server and the rule or default behind it. Never shows a secret.

use crate::load_agent::load_agent_or_todo;
use crate::{
    cli::GlobalOptions,
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    output::Output,
    source_facts::{Fact, describe, describe_model, facts_json, source_facts_json},
};
use serde_json::{Value, json};
use wharf_config::{Plan, Source};

pub(super) fn run(
    common: &GlobalOptions,
    name: Option<&str>,
    environment: &Environment,
    output: Output,
) -> Exit {
    let (loaded, diagnostics) = load_agent_or_todo(common, environment);
    let Some((plan, _)) = loaded else {
        return output.fail_loading(&diagnostics);
    };
    output.warn_deprecated(&diagnostics);
    let chosen: Vec<&Source> =
        plan.sources.iter().filter(|it| name.is_none_or(|name| it.name.expose() == name)).collect();
    if let (Some(name), true) = (name, chosen.is_empty()) {
        return output.fail(&CommandError::usage(&unknown_server(name, &plan, diagnostics.file())));
    }
    if output.json {
        let sources: Vec<Value> = chosen.iter().map(|it| source_facts_json(it, environment)).collect();
        let model = plan.model.as_ref().map(|it| facts_json(describe_model(it)));
        output.json(&json!({ "model": model, "sources": sources }));
    } else {
        let model = plan
            .model
            .as_ref()
            .filter(|_| name.is_none())
            .map(|it| format_facts("model", describe_model(it)));
        let sources = chosen.iter().map(|it| format_facts(it.name.shown(), describe(it, environment)));
        output.data(&model.into_iter().chain(sources).collect::<Vec<_>>().join("\n"));
    }
    Exit::Success
}

fn unknown_server(name: &str, plan: &Plan, file: &str) -> String {
    let names: Vec<&str> = plan.sources.iter().map(|it| it.name.shown()).collect();
    match names[..] {
        [] => format!("error: {file} has no servers\n"),
        _ => format!("error: {file} has no server '{name}'\nhelp: it has {}\n", names.join(", ")),
    }
}

/// Formats the name and one line per fact. Further lines of a fact follow without the label.
fn format_facts(name: &str, facts: Vec<Fact>) -> String {
    let mut out = format!("{name}\n");
    for Fact { key, lines, .. } in facts {
        let mut label = key.replace('_', " ");
        for line in lines {
            out.push_str(format!("  {label:<14} {line}").trim_end());
            out.push('\n');
            label.clear();
        }
    }
    out
}
