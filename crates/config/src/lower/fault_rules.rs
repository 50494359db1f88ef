//! Lowers the faults to inject.

use crate::{
    diagnostic::Diagnostics,
    fault_rules::{FaultEffect, FaultRule, FaultRules, FaultTarget, FaultTrigger},
    glob::Glob,
    node::{Node, Value},
    place::Place,
    raw::{Field, RawFaultFile, RawFaultRule},
    read::Reader,
};
use std::time::Duration;

const CLASS: &str = "FaultError";

/// Maximum number of rules.
const MAX_RULES: usize = 1_000;

/// Maximum delay, in milliseconds.
const MAX_DELAY_MS: u64 = 3_600_000;

/// Maximum size of a result, in bytes. Frames end at half of it, so both sides of that limit can be tested.
const MAX_RESULT_BYTES: u64 = 32 << 20;

/// Maximum number of announced changes for one call.
const MAX_CHANGES: u64 = 1_000;

/// Code of an injected JSON-RPC error that names none: internal error.
const DEFAULT_CODE: i64 = -32_603;

/// Lowers the file of `--faults`. `None` means that at least one diagnostic was recorded.
pub(crate) fn fault_file(root: Node, diagnostics: &mut Diagnostics) -> Option<FaultRules> {
    let at = root.at;
    let RawFaultFile { seed, faults } = RawFaultFile::read(root, diagnostics)?;
    let seed = Reader { class: CLASS, diagnostics }.integer("seed", seed, 0, u64::MAX);
    let Some(faults) = faults else {
        diagnostics.no_faults(at);
        return None;
    };
    Some(FaultRules { seed: seed.unwrap_or_default(), rules: fault_rules(faults, diagnostics) })
}

/// Lowers a list of rules.
pub(crate) fn fault_rules(field: Field, diagnostics: &mut Diagnostics) -> Vec<FaultRule> {
    match field.node.value {
        Value::Seq(nodes) if nodes.len() <= MAX_RULES => {
            nodes.into_iter().filter_map(|it| fault_rule(it, diagnostics)).collect()
        }
        _ => {
            let expected = format!("a list of at most {MAX_RULES} rules");
            diagnostics.wrong_type(CLASS, "faults", &expected, &field.node);
            Vec::new()
        }
    }
}

fn fault_rule(node: Node, diagnostics: &mut Diagnostics) -> Option<FaultRule> {
    let at = node.at;
    let raw = RawFaultRule::read(node, diagnostics)?;
    let RawFaultRule { tool, model, kind, ms, code, text, bytes, times, nth, rate } = raw;
    let target = target(tool, model, at, diagnostics);
    let trigger = trigger(nth, rate, at, diagnostics);
    let mut parameters = EffectParameters { ms, code, text, bytes, times };
    let Some(kind) = kind else {
        diagnostics.fault_without_kind(at);
        return None;
    };
    let effect = effect(kind, &mut parameters, at, diagnostics)?;
    for key in parameters.written_keys() {
        diagnostics.unused_fault_key(at, key, effect.as_str());
    }
    let target = target?;
    if target == FaultTarget::Model && !effect.fits_model() {
        diagnostics.fault_not_for_model(at, effect.as_str());
    }
    Some(FaultRule { target, effect, trigger: trigger? })
}

/// Keys of a rule that belong to one kind of fault.
struct EffectParameters {
    ms: Option<Field>,
    code: Option<Field>,
    text: Option<Field>,
    bytes: Option<Field>,
    times: Option<Field>,
}

impl EffectParameters {
    /// Returns the keys that nothing has read.
    fn written_keys(&self) -> impl Iterator<Item = &'static str> {
        let EffectParameters { ms, code, text, bytes, times } = self;
        let fields = [("ms", ms), ("code", code), ("text", text), ("bytes", bytes), ("times", times)];
        fields.map(|(key, field)| field.as_ref().map(|_| key)).into_iter().flatten()
    }
}

/// Reads the kind and takes its parameters.
fn effect(
    kind: Field,
    parameters: &mut EffectParameters,
    at: Place,
    diagnostics: &mut Diagnostics,
) -> Option<FaultEffect> {
    let mut reader = Reader { class: CLASS, diagnostics };
    let word = |it: &str| FaultEffect::KEYWORDS.iter().copied().find(|known| *known == it);
    let kind = reader.keyword("kind", Some(kind), FaultEffect::KEYWORDS, word)?;
    let mut text = |field: Option<Field>| {
        let text = reader.text("text", field).map(|it| it.value.expose().to_owned());
        text.unwrap_or_else(|| "injected fault".to_owned())
    };
    let missing = match kind {
        "drop" => return Some(FaultEffect::Drop),
        "disconnect" => return Some(FaultEffect::Disconnect),
        "malformed" => return Some(FaultEffect::Malformed),
        "tool_error" => return Some(FaultEffect::ToolError { text: text(parameters.text.take()) }),
        "rpc_error" => {
            let text = text(parameters.text.take());
            let code = error_code(parameters.code.take(), &mut reader)?;
            return Some(FaultEffect::RpcError { code, text });
        }
        "list_changed" => {
            let times = parameters.times.take();
            let has_times = times.is_some();
            let times = reader.count("times", times, MAX_CHANGES);
            return if has_times { times } else { Some(1) }.map(FaultEffect::ListChanged);
        }
        "delay" => match parameters.ms.take() {
            None => "ms",
            ms => {
                let ms = reader.count("ms", ms, MAX_DELAY_MS)?;
                return Some(FaultEffect::Delay(Duration::from_millis(ms)));
            }
        },
        _ => match parameters.bytes.take() {
            None => "bytes",
            bytes => {
                let bytes = reader.count("bytes", bytes, MAX_RESULT_BYTES)?;
                return usize::try_from(bytes).ok().map(FaultEffect::Oversized);
            }
        },
    };
    diagnostics.missing_fault_key(at, missing, kind);
    None
}

fn error_code(field: Option<Field>, reader: &mut Reader<'_>) -> Option<i64> {
    let Some(Field { node, .. }) = field else { return Some(DEFAULT_CODE) };
    let code = match node.value {
        Value::Int(code) => i64::try_from(code).ok(),
        _ => None,
    };
    if code.is_none() {
        reader.report_wrong_type("code", "an integer", &node);
    }
    code
}

fn target(
    tool: Option<Field>,
    model: Option<Field>,
    at: Place,
    diagnostics: &mut Diagnostics,
) -> Option<FaultTarget> {
    let mut reader = Reader { class: CLASS, diagnostics };
    let has_tool = tool.is_some();
    let tool = reader.text("tool", tool);
    match (has_tool, reader.flag("model", model).unwrap_or_default()) {
        (true, false) => tool.map(|it| FaultTarget::Tool(Glob::new(it.value.expose()))),
        (false, true) => Some(FaultTarget::Model),
        _ => {
            diagnostics.fault_target(at);
            None
        }
    }
}

fn trigger(
    nth: Option<Field>,
    rate: Option<Field>,
    at: Place,
    diagnostics: &mut Diagnostics,
) -> Option<FaultTrigger> {
    match (nth, rate) {
        (None, None) => Some(FaultTrigger::Always),
        (None, rate) => {
            let rate = Reader { class: CLASS, diagnostics }.number("rate", rate, 0.0, 1.0);
            rate.map(FaultTrigger::Rate)
        }
        (Some(nth), None) => numbers(&nth.node, diagnostics).map(FaultTrigger::Nth),
        (Some(_), Some(_)) => {
            diagnostics.fault_trigger(at);
            None
        }
    }
}

/// Reads the numbers of calls.
fn numbers(node: &Node, diagnostics: &mut Diagnostics) -> Option<Vec<u64>> {
    let mut reader = Reader { class: CLASS, diagnostics };
    let numbers = match &node.value {
        Value::Seq(nodes) => nodes.iter().map(|it| reader.integer_in(it, 1, u64::MAX)).collect(),
        _ => None,
    };
    if numbers.is_none() {
        reader.report_wrong_type("nth", "a list of positive integers", node);
    }
    numbers
}
