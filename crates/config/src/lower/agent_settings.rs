//! Lowers the settings of the agent's loop: `limits`, `approval`, `context`, `sampling` and `response_format`.

use super::json_schema::check_schema;
use crate::{
    agent_settings::{
        ApprovalRules, ClientTools, ContextSettings, Decision, OperatorRules, RunLimits, SamplingPolicy,
    },
    diagnostic::Diagnostics,
    env::Env,
    file_position::FilePosition,
    glob::Glob,
    node::{Node, Pair, Value},
    place::{Lines, PlacedString},
    raw::{Field, RawApproval, RawContext, RawLimits},
    read::{MAX_TIMEOUT_SECONDS, Reader},
};
use serde_json::Value as Json;
use std::time::Duration;

/// Maximum size of a `response_format` file, in bytes.
const MAX_SCHEMA_BYTES: u64 = 1024 * 1024;
/// Bounds of `context.tool_budget`, in tokens.
const TOOL_BUDGETS: (u64, u64) = (1_000, 1_000_000);
/// Minimum of `limits.max_total_tokens`.
const MIN_TOTAL_TOKENS: u64 = 1000;

pub(super) fn limits(field: Option<Field>, diagnostics: &mut Diagnostics) -> RunLimits {
    let raw = field.and_then(|it| RawLimits::read(it.node, diagnostics));
    raw.map_or_else(RunLimits::default, |it| read_limits(it, "limits", RunLimits::default(), diagnostics))
}

/// Reads limits. `prefix` is the path of their mapping, and `usual` has those that are not set.
pub(crate) fn read_limits(
    raw: RawLimits,
    prefix: &str,
    usual: RunLimits,
    diagnostics: &mut Diagnostics,
) -> RunLimits {
    let RawLimits {
        max_turns,
        max_tool_calls,
        max_repeats,
        max_parallel,
        run_timeout,
        max_total_tokens,
        max_cost,
        approval_timeout,
    } = raw;
    let mut limit = |key: &str, field: Option<Field>, min: u64, max: u64| {
        let node = field?.node;
        let mut reader = Reader { class: "ConfigError", diagnostics };
        let found = reader.integer_in(&node, min, max);
        if found.is_none() && node.value != Value::Broken {
            let expected = match max {
                u64::MAX => format!("an integer of at least {min}"),
                _ => format!("an integer from {min} to {max}"),
            };
            diagnostics.limit_out_of_range(&node, &format!("{prefix}.{key}"), &expected);
        }
        found
    };
    let run_timeout = limit("run_timeout", run_timeout, 1, MAX_TIMEOUT_SECONDS);
    let approval_timeout = limit("approval_timeout", approval_timeout, 1, MAX_TIMEOUT_SECONDS);
    let max_parallel = limit("max_parallel", max_parallel, 1, 64).and_then(|it| usize::try_from(it).ok());
    RunLimits {
        max_turns: limit("max_turns", max_turns, 1, 1000).unwrap_or(usual.max_turns),
        max_tool_calls: limit("max_tool_calls", max_tool_calls, 0, 10_000).unwrap_or(usual.max_tool_calls),
        max_repeats: limit("max_repeats", max_repeats, 1, 100).unwrap_or(usual.max_repeats),
        max_total_tokens: limit("max_total_tokens", max_total_tokens, MIN_TOTAL_TOKENS, u64::MAX)
            .unwrap_or(usual.max_total_tokens),
        max_parallel: max_parallel.unwrap_or(usual.max_parallel),
        run_timeout: run_timeout.map_or(usual.run_timeout, Duration::from_secs),
        approval_timeout: approval_timeout.map_or(usual.approval_timeout, Duration::from_secs),
        max_cost: max_cost.and_then(|it| read_cost(it, prefix, diagnostics)).or(usual.max_cost),
    }
}

fn read_cost(field: Field, prefix: &str, diagnostics: &mut Diagnostics) -> Option<f64> {
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let found = reader.positive_number(&field.node);
    if found.is_none() && field.node.value != Value::Broken {
        diagnostics.limit_out_of_range(&field.node, &format!("{prefix}.max_cost"), "a number above 0");
    }
    found
}

pub(super) fn approval(field: Option<Field>, diagnostics: &mut Diagnostics) -> ApprovalRules {
    let usual = ApprovalRules::default();
    let OperatorRules { default, allow, ask, deny, after_untrusted } =
        read_rules(field, "approval", diagnostics);
    ApprovalRules {
        default: default.unwrap_or(usual.default),
        after_untrusted: after_untrusted.unwrap_or(usual.after_untrusted),
        allow,
        ask,
        deny,
    }
}

/// Reads approval rules. `prefix` is the path of their mapping.
pub(crate) fn read_rules(field: Option<Field>, prefix: &str, diagnostics: &mut Diagnostics) -> OperatorRules {
    let Some(raw) = field.and_then(|it| RawApproval::read(it.node, diagnostics)) else {
        return OperatorRules::default();
    };
    let RawApproval { default, allow, ask, deny, after_untrusted } = raw;
    let (source, file) = (diagnostics.source().to_owned(), diagnostics.file().to_owned());
    let lines = Lines::of(&source);
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let mut globs = |key: &str, field| -> Vec<Glob> {
        let texts = reader.texts(&format!("{prefix}.{key}"), field).map_or_else(Vec::new, |it| it.value);
        let glob = |it: PlacedString| {
            let (line, column) = lines.quick_position(it.at.start);
            Glob::new(it.value.expose()).written_at(FilePosition { file: file.clone(), line, column })
        };
        texts.into_iter().map(glob).collect()
    };
    let (allow, ask, deny) = (globs("allow", allow), globs("ask", ask), globs("deny", deny));
    let mut decision = |key: &str, field, supported: &[&str]| {
        let text = reader.text(&format!("{prefix}.{key}"), field)?;
        let found = Decision::parse(text.value.expose()).filter(|it| supported.contains(&it.as_str()));
        if found.is_none() {
            reader.diagnostics.unknown_decision(text.at, &text.value, supported);
        }
        found
    };
    OperatorRules {
        default: decision("default", default, Decision::KEYWORDS),
        after_untrusted: decision("after_untrusted", after_untrusted, &Decision::KEYWORDS[..2]),
        allow,
        ask,
        deny,
    }
}

pub(super) fn context(field: Option<Field>, diagnostics: &mut Diagnostics) -> ContextSettings {
    let usual = ContextSettings::default();
    let Some(raw) = field.and_then(|it| RawContext::read(it.node, diagnostics)) else { return usual };
    let RawContext { preamble, compact, tool_budget, pin, clients, server_instructions } = raw;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let (min, max) = TOOL_BUDGETS;
    let pin = reader.texts("context.pin", pin).map_or_else(Vec::new, |it| it.value);
    let clients = reader.keyword("context.clients", clients, ClientTools::KEYWORDS, ClientTools::parse);
    ContextSettings {
        preamble: reader.flag("context.preamble", preamble).unwrap_or(usual.preamble),
        compact: reader.flag("context.compact", compact).unwrap_or(usual.compact),
        server_instructions: reader
            .flag("context.server_instructions", server_instructions)
            .unwrap_or(usual.server_instructions),
        tool_budget: reader.integer("context.tool_budget", tool_budget, min, max),
        pin: pin.into_iter().map(|it| Glob::new(it.value.expose())).collect(),
        clients: clients.unwrap_or(usual.clients),
    }
}

/// Reads which servers may use the model: a decision, or a mapping from servers to decisions.
pub(super) fn sampling(field: Option<Field>, diagnostics: &mut Diagnostics) -> SamplingPolicy {
    let mut policy = SamplingPolicy::default();
    let Some(field) = field else { return policy };
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let mut decision = |key: &str, node: Node| {
        let text = reader.text(key, Some(Field { node, ..field.clone() }))?;
        let found = Decision::parse(text.value.expose());
        if found.is_none() {
            reader.diagnostics.unknown_decision(text.at, &text.value, Decision::KEYWORDS);
        }
        found
    };
    match field.node.value.clone() {
        Value::Map(pairs) => {
            for Pair { key, node, .. } in pairs {
                let found = decision(&format!("sampling.{key}"), node);
                policy.sources.extend(found.map(|it| (key, it)));
            }
        }
        _ => policy.default = decision("sampling", field.node.clone()).unwrap_or(policy.default),
    }
    policy
}

/// Reads the schema of the final answer: a mapping, or the path of a JSON file.
pub(super) fn response_format(
    field: Option<Field>,
    env: &Env,
    diagnostics: &mut Diagnostics,
) -> Option<Json> {
    const KEY: &str = "response_format";
    let field = field?;
    let at = field.node.at;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let schema = match &field.node.value {
        Value::Str(_) => {
            let path = reader.text(KEY, Some(field))?;
            let bytes = env.files.read(path.value.expose(), MAX_SCHEMA_BYTES).map_err(|error| {
                reader.diagnostics.file_error(path.at, "ConfigError", KEY, &path.value, &error);
            });
            let Ok(schema) = serde_json::from_slice(&bytes.ok()?) else {
                diagnostics.not_a_json_schema(at, "the file is not JSON", "/");
                return None;
            };
            schema
        }
        _ => reader.json(KEY, Some(field))?.expose().clone(),
    };
    if let Err(error) = check_schema(&schema) {
        diagnostics.not_a_json_schema(at, &error.why, &error.path);
        return None;
    }
    Some(schema)
}
