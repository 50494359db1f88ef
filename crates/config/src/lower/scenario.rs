//! Lowers a scenario.

use super::fault_rules::fault_rules;
use crate::{
    diagnostic::Diagnostics,
    glob::Glob,
    node::{Node, Value},
    place::Place,
    raw::{Field, RawExpect, RawExpectedCall, RawMaximum, RawScenario, RawScenarioCall, RawTextCheck},
    read::Reader,
    record_settings::TextPattern,
    scenario::{CallOrder, Expectations, ExpectedCall, Scenario, ScenarioCall, ScenarioTask, TextCheck},
};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

const CLASS: &str = "ScenarioError";

/// Maximum number of calls in a scenario.
const MAX_CALLS: usize = 1_000;

/// Lowers a scenario. `None` means that at least one diagnostic was recorded.
pub(crate) fn scenario(root: Node, diagnostics: &mut Diagnostics) -> Option<Scenario> {
    let at = root.at;
    let raw = RawScenario::read(root, diagnostics)?;
    let RawScenario { name, agent, cassette, message, calls, faults, expect } = raw;
    let mut text = |key: &str, field| {
        let text = Reader { class: CLASS, diagnostics }.text(key, field);
        text.map(|it| it.value.expose().to_owned())
    };
    let (name, agent, cassette) = (text("name", name), text("agent", agent), text("cassette", cassette));
    let message = text("message", message);
    if cassette.is_none() {
        diagnostics.scenario_without_cassette(at);
    }
    let calls = calls.map(|it| items("calls", it, diagnostics, call));
    let task = match (message, calls) {
        (Some(message), None) => Some(ScenarioTask::Message(message)),
        (None, Some(calls)) => Some(ScenarioTask::Calls(calls)),
        _ => {
            diagnostics.scenario_without_task(at);
            None
        }
    };
    let expect = expect.map(|it| expectations(it.node, diagnostics)).unwrap_or_default();
    let faults = faults.map(|it| fault_rules(it, diagnostics)).unwrap_or_default();
    let (agent, cassette) = (agent.map(Into::into), cassette?.into());
    Some(Scenario { name, agent, cassette, faults, task: task?, expect })
}

fn call(node: Node, diagnostics: &mut Diagnostics) -> Option<ScenarioCall> {
    let RawScenarioCall { tool, arguments } = RawScenarioCall::read(node, diagnostics)?;
    let mut reader = Reader { class: CLASS, diagnostics };
    let tool = reader.text("calls.tool", tool).map(|it| it.value.expose().to_owned());
    let arguments = object("calls.arguments", arguments, &mut reader);
    Some(ScenarioCall { tool: tool?, arguments })
}

fn expectations(node: Node, diagnostics: &mut Diagnostics) -> Expectations {
    let Some(raw) = RawExpect::read(node, diagnostics) else { return Expectations::default() };
    let RawExpect { calls, order, never, answer, max } = raw;
    let calls = calls.map(|it| items("expect.calls", it, diagnostics, expected_call));
    let mut reader = Reader { class: CLASS, diagnostics };
    let order = reader.keyword("expect.order", order, CallOrder::KEYWORDS, CallOrder::parse);
    let never = reader.texts("expect.never", never).map(|it| it.value).unwrap_or_default();
    let answer = text_check("expect.answer", answer, diagnostics);
    let max = max.and_then(|it| RawMaximum::read(it.node, diagnostics));
    let mut reader = Reader { class: CLASS, diagnostics };
    let (max_turns, max_tokens) = match max {
        None => (None, None),
        Some(RawMaximum { turns, tokens }) => (
            reader.count("expect.max.turns", turns, u64::MAX),
            reader.count("expect.max.tokens", tokens, u64::MAX),
        ),
    };
    Expectations {
        calls,
        order: order.unwrap_or_default(),
        never: never.iter().map(|it| Glob::new(it.value.expose())).collect(),
        answer,
        max_turns,
        max_tokens,
    }
}

fn expected_call(node: Node, diagnostics: &mut Diagnostics) -> Option<ExpectedCall> {
    let at = node.at;
    let RawExpectedCall { tool, arguments, result } = RawExpectedCall::read(node, diagnostics)?;
    let mut reader = Reader { class: CLASS, diagnostics };
    let tool = reader.text("expect.calls.tool", tool).map(|it| it.value.expose().to_owned());
    let arguments = object("expect.calls.arguments", arguments, &mut reader);
    arguments.values().for_each(|it| check_patterns(it, at, diagnostics));
    let result = text_check("expect.calls.result", result, diagnostics);
    Some(ExpectedCall { tool: tool?, arguments, result })
}

/// T-04: checks the patterns in expected arguments.
fn check_patterns(value: &Json, at: Place, diagnostics: &mut Diagnostics) {
    match value {
        Json::Array(items) => items.iter().for_each(|it| check_patterns(it, at, diagnostics)),
        Json::Object(members) => {
            let pattern = members.get("matches").and_then(Json::as_str).filter(|_| members.len() == 1);
            if let Some(Err(why)) = pattern.map(TextPattern::new) {
                diagnostics.scenario_pattern(at, &why);
            }
            members.values().for_each(|it| check_patterns(it, at, diagnostics));
        }
        _ => {}
    }
}

fn text_check(key: &str, field: Option<Field>, diagnostics: &mut Diagnostics) -> TextCheck {
    let Some(raw) = field.and_then(|it| RawTextCheck::read(it.node, diagnostics)) else {
        return TextCheck::default();
    };
    let RawTextCheck { contains, not, matches, json } = raw;
    let mut reader = Reader { class: CLASS, diagnostics };
    let (contains, not) = (texts(key, contains, &mut reader), texts(key, not, &mut reader));
    let json: BTreeMap<String, Json> = object(key, json, &mut reader).into_iter().collect();
    let matches = reader.text(key, matches).and_then(|it| match TextPattern::new(it.value.expose()) {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            diagnostics.scenario_pattern(it.at, &why);
            None
        }
    });
    TextCheck { contains, not, matches, json }
}

/// Reads one text or a list of texts.
fn texts(key: &str, field: Option<Field>, reader: &mut Reader<'_>) -> Vec<String> {
    let is_text = field.as_ref().is_some_and(|it| matches!(it.node.value, Value::Str(_)));
    if is_text {
        return reader.text(key, field).map(|it| it.value.expose().to_owned()).into_iter().collect();
    }
    let texts = reader.texts(key, field).map(|it| it.value).unwrap_or_default();
    texts.into_iter().map(|it| it.value.expose().to_owned()).collect()
}

fn object(key: &str, field: Option<Field>, reader: &mut Reader<'_>) -> Map<String, Json> {
    let value = reader.json(key, field).map(|it| it.value);
    value.and_then(|it| it.as_object().cloned()).unwrap_or_default()
}

fn items<T>(
    key: &str,
    field: Field,
    diagnostics: &mut Diagnostics,
    lower: impl Fn(Node, &mut Diagnostics) -> Option<T>,
) -> Vec<T> {
    match field.node.value {
        Value::Seq(nodes) if nodes.len() <= MAX_CALLS => {
            nodes.into_iter().filter_map(|it| lower(it, diagnostics)).collect()
        }
        _ => {
            diagnostics.wrong_type(CLASS, key, &format!("a list of at most {MAX_CALLS} calls"), &field.node);
            Vec::new()
        }
    }
}
