//! Compares what happened in a scenario with what it expects. Each difference is one sentence.

use serde_json::Value;
use wharf_config::{CallOrder, Expectations, ExpectedCall, TextCheck, TextPattern};

/// Maximum length of a shown text, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// Events of a scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScenarioEvents {
    /// Calls, in the order of their start.
    pub(crate) calls: Vec<MadeCall>,
    /// The final answer of the agent.
    pub(crate) answer: String,
    /// Number of turns of the model.
    pub(crate) turns: u64,
    /// Number of tokens.
    pub(crate) tokens: u64,
}

/// A call that was made.
#[derive(Clone, Debug)]
pub(crate) struct MadeCall {
    /// Shown name of the tool.
    pub(crate) name: String,
    /// `source:tool`.
    pub(crate) id: String,
    /// Arguments, as the caller sent them.
    pub(crate) arguments: Value,
    /// Text of the result or of the failure.
    pub(crate) result: String,
}

/// Returns everything that is not as expected.
pub(crate) fn check(expect: &Expectations, events: &ScenarioEvents) -> Vec<String> {
    let Expectations { calls, order, never, answer, max_turns, max_tokens } = expect;
    let mut failures = Vec::new();
    if let Some(calls) = calls {
        match order {
            CallOrder::Exact => check_exact(calls, &events.calls, &mut failures),
            CallOrder::Subsequence => check_in_order(calls, &events.calls, &mut failures),
            CallOrder::Any => check_any_order(calls, &events.calls, &mut failures),
        }
    }
    for call in &events.calls {
        let rule = never.iter().find(|it| it.matches(&call.name) || it.matches(&call.id));
        failures
            .extend(rule.map(|it| format!("`{}` was called, and '{}' forbids it", call.name, it.as_str())));
    }
    check_text("the answer", answer, &events.answer, &mut failures);
    for (what, max, found) in [("turns", max_turns, events.turns), ("tokens", max_tokens, events.tokens)] {
        if let Some(max) = max.filter(|it| found > *it) {
            failures.push(format!("the run took {found} {what}, at most {max} are expected"));
        }
    }
    failures
}

fn check_exact(expected: &[ExpectedCall], made: &[MadeCall], failures: &mut Vec<String>) {
    for at in 0..expected.len().max(made.len()) {
        match (expected.get(at), made.get(at)) {
            (Some(expected), Some(made)) => {
                let differences = call_differences(expected, made);
                failures.extend(differences.into_iter().map(|it| format!("call {}: {it}", at + 1)));
            }
            (Some(expected), None) => {
                failures.push(format!("call {}: `{}` is expected, but the run ended", at + 1, expected.tool));
            }
            (None, Some(made)) => {
                let (name, arguments) = (&made.name, shorten(&made.arguments.to_string()));
                failures.push(format!("call {}: `{name}` is not expected, with {arguments}", at + 1));
            }
            (None, None) => {}
        }
    }
}

fn check_in_order(expected: &[ExpectedCall], made: &[MadeCall], failures: &mut Vec<String>) {
    let mut rest = made;
    for expected in expected {
        match rest.iter().position(|it| call_differences(expected, it).is_empty()) {
            Some(at) => rest = &rest[at + 1..],
            None => failures.push(missing_call(expected, rest)),
        }
    }
}

fn check_any_order(expected: &[ExpectedCall], made: &[MadeCall], failures: &mut Vec<String>) {
    let mut rest: Vec<MadeCall> = made.to_vec();
    for expected in expected {
        match rest.iter().position(|it| call_differences(expected, it).is_empty()) {
            Some(at) => _ = rest.remove(at),
            None => failures.push(missing_call(expected, &rest)),
        }
    }
}

/// Describes an expected call that was not made, with the nearest one that was.
fn missing_call(expected: &ExpectedCall, made: &[MadeCall]) -> String {
    let same = made.iter().filter(|it| is_tool(expected, it));
    let nearest = same.map(|it| call_differences(expected, it)).min_by_key(Vec::len);
    match nearest {
        Some(differences) => {
            format!("`{}` was not called as expected; nearest: {}", expected.tool, differences.join("; "))
        }
        None => format!("`{}` was not called", expected.tool),
    }
}

fn is_tool(expected: &ExpectedCall, made: &MadeCall) -> bool {
    expected.tool == made.name || expected.tool == made.id
}

fn call_differences(expected: &ExpectedCall, made: &MadeCall) -> Vec<String> {
    if !is_tool(expected, made) {
        return vec![format!("`{}` is expected, but `{}` was called", expected.tool, made.name)];
    }
    let mut differences = Vec::new();
    for (key, value) in &expected.arguments {
        compare(&format!("/{key}"), value, made.arguments.get(key), &mut differences);
    }
    check_text(&format!("the result of `{}`", made.name), &expected.result, &made.result, &mut differences);
    differences
}

/// Compares a value with what is expected. `{matches: PATTERN}` and `{any: true}` stand for values.
fn compare(path: &str, expected: &Value, found: Option<&Value>, differences: &mut Vec<String>) {
    let Some(found) = found else {
        return differences.push(format!("{path} is absent, {} is expected", shown(expected)));
    };
    let only = expected.as_object().filter(|it| it.len() == 1).and_then(|it| it.iter().next());
    match (only, expected, found) {
        (Some((key, Value::Bool(true))), ..) if key == "any" => {}
        (Some((key, Value::String(pattern))), ..) if key == "matches" => {
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            let matches = TextPattern::new(pattern).is_ok_and(|it| it.regex().is_match(&text));
            if !matches {
                differences.push(format!("{path} is {}, which does not match '{pattern}'", shown(found)));
            }
        }
        (_, Value::Object(expected), Value::Object(found)) => {
            for (key, value) in expected {
                compare(&format!("{path}/{key}"), value, found.get(key), differences);
            }
        }
        (_, Value::Array(expected), Value::Array(items)) if expected.len() == items.len() => {
            for (at, (expected, found)) in expected.iter().zip(items).enumerate() {
                compare(&format!("{path}/{at}"), expected, Some(found), differences);
            }
        }
        _ if is_equal(expected, found) => {}
        _ => differences.push(format!("{path} is {}, {} is expected", shown(found), shown(expected))),
    }
}

/// Compares two values. `1` and `1.0` are equal.
fn is_equal(one: &Value, two: &Value) -> bool {
    one == two || one.as_f64().is_some_and(|one| two.as_f64() == Some(one))
}

fn check_text(what: &str, check: &TextCheck, text: &str, failures: &mut Vec<String>) {
    let TextCheck { contains, not, matches, json } = check;
    for part in contains.iter().filter(|it| !text.contains(it.as_str())) {
        failures.push(format!("{what} does not contain {part:?}: {:?}", shorten(text)));
    }
    for part in not.iter().filter(|it| text.contains(it.as_str())) {
        failures.push(format!("{what} contains {part:?}: {:?}", shorten(text)));
    }
    if let Some(pattern) = matches.as_ref().map(TextPattern::regex).filter(|it| !it.is_match(text)) {
        failures.push(format!("{what} does not match '{}': {:?}", pattern.as_str(), shorten(text)));
    }
    if json.is_empty() {
        return;
    }
    match serde_json::from_str::<Value>(text) {
        Err(_) => failures.push(format!("{what} is not JSON: {:?}", shorten(text))),
        Ok(value) => {
            for (pointer, expected) in json {
                let mut differences = Vec::new();
                compare(pointer, expected, value.pointer(pointer), &mut differences);
                failures.extend(differences.into_iter().map(|it| format!("{what}: {it}")));
            }
        }
    }
}

fn shown(value: &Value) -> String {
    shorten(&value.to_string())
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wharf_config::load_scenario;

    fn failures(expect: &str, events: &ScenarioEvents) -> Vec<String> {
        let text = format!("cassette: a.jsonl\nmessage: Hi\nexpect:\n{expect}");
        let (scenario, diagnostics) = load_scenario(&text, "a.test.yaml");
        let scenario = scenario.unwrap_or_else(|| panic!("{}", diagnostics.render(false)));
        check(&scenario.expect, events)
    }

    fn events(calls: &[(&str, Value)]) -> ScenarioEvents {
        let calls = calls.iter().map(|(name, arguments)| MadeCall {
            name: (*name).to_owned(),
            id: name.replace("__", ":"),
            arguments: arguments.clone(),
            result: "ok: done".to_owned(),
        });
        ScenarioEvents {
            calls: calls.collect(),
            answer: r#"{"ok": true, "n": 3}"#.to_owned(),
            turns: 3,
            tokens: 500,
        }
    }

    #[test]
    fn each_expectation_is_judged_and_explained() {
        let made = events(&[
            ("f__read", json!({ "path": "a.txt", "n": 1.0 })),
            ("f__write", json!({ "path": "b.txt" })),
        ]);
        let rows: &[(&str, &[&str])] = &[
            (
                "  calls: [{tool: f__read, arguments: {path: a.txt, n: 1}}, {tool: 'f:write', result: {contains: ok}}]",
                &[],
            ),
            (
                "  calls: [{tool: f__read}]",
                &["call 2: `f__write` is not expected, with {\"path\":\"b.txt\"}"],
            ),
            (
                "  calls: [{tool: f__write}, {tool: f__write}]",
                &["call 1: `f__write` is expected, but `f__read` was called"],
            ),
            (
                "  calls: [{tool: f__read}, {tool: f__write, arguments: {path: {matches: '^c'}}}, {tool: f__read}]",
                &[
                    "call 2: /path is \"b.txt\", which does not match '^c'",
                    "call 3: `f__read` is expected, but the run ended",
                ],
            ),
            ("  order: subsequence\n  calls: [{tool: f__write, arguments: {path: {any: true}}}]", &[]),
            (
                "  order: subsequence\n  calls: [{tool: f__write}, {tool: f__read}]",
                &["`f__read` was not called"],
            ),
            ("  order: any\n  calls: [{tool: f__write}, {tool: f__read}]", &[]),
            (
                "  order: any\n  calls: [{tool: f__write, arguments: {path: c}}]",
                &["`f__write` was not called as expected; nearest: /path is \"b.txt\", \"c\" is expected"],
            ),
            ("  never: ['*__wr*']", &["`f__write` was called, and '*__wr*' forbids it"]),
            ("  answer: {contains: [ok], not: [error], matches: '(?i)OK', json: {/ok: true, /n: 3}}", &[]),
            ("  answer: {json: {/ok: false}}", &["the answer: /ok is true, false is expected"]),
            ("  answer: {not: ok}", &["the answer contains \"ok\": \"{\\\"ok\\\": true, \\\"n\\\": 3}\""]),
            ("  max: {turns: 2, tokens: 500}", &["the run took 3 turns, at most 2 are expected"]),
        ];
        for (expect, expected) in rows {
            assert_eq!(&failures(expect, &made), expected, "{expect}");
        }
    }
}
