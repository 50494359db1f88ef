//! `wharf explain`: shows the configuration of each server and the rule or default behind it. Never shows a secret.

mod describe;

use super::load_agent_or_todo;
use crate::{
    cli::Common, command_error::CommandError, exit::Exit, output::Output, surroundings::Surroundings,
};
use describe::{Fact, describe, describe_model};
use serde_json::{Map, Value, json};
use wharf_config::{Plan, Source};

pub(super) fn run(common: &Common, name: Option<&str>, around: &Surroundings, output: Output) -> Exit {
    let (loaded, diagnostics) = load_agent_or_todo(common, around);
    let Some((plan, _)) = loaded else {
        return output.fail_loading(&diagnostics);
    };
    output.warn_of_deprecated(&diagnostics);
    let chosen: Vec<&Source> =
        plan.sources.iter().filter(|it| name.is_none_or(|name| it.name.expose() == name)).collect();
    if let (Some(name), true) = (name, chosen.is_empty()) {
        return output.fail(&CommandError::usage(&unknown(name, &plan, diagnostics.file())));
    }
    if output.json {
        let sources: Vec<Value> = chosen.iter().map(|it| to_json(it, around)).collect();
        let model = plan.model.as_ref().map(|it| object(describe_model(it)));
        output.json(&json!({ "model": model, "sources": sources }));
    } else {
        let model =
            plan.model.as_ref().filter(|_| name.is_none()).map(|it| list("model", describe_model(it)));
        let sources = chosen.iter().map(|it| list(it.name.shown(), describe(it, around)));
        output.data(&model.into_iter().chain(sources).collect::<Vec<_>>().join("\n"));
    }
    Exit::Fine
}

fn unknown(name: &str, plan: &Plan, file: &str) -> String {
    let names: Vec<&str> = plan.sources.iter().map(|it| it.name.shown()).collect();
    match names[..] {
        [] => format!("error: {file} has no servers\n"),
        _ => format!("error: {file} has no server '{name}'\nhelp: it has {}\n", names.join(", ")),
    }
}

fn to_json(source: &Source, around: &Surroundings) -> Value {
    let name = Fact::new("name", source.name.shown(), json!(source.name.shown()));
    object([name].into_iter().chain(describe(source, around)))
}

fn object(facts: impl IntoIterator<Item = Fact>) -> Value {
    Value::Object(facts.into_iter().map(|fact| (fact.key.to_owned(), fact.json)).collect::<Map<_, _>>())
}

/// Formats the name and one line per fact. Further lines of a fact follow without the label.
fn list(name: &str, facts: Vec<Fact>) -> String {
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
