//! Loads `[agent]` of wharf.toml: what the operator allows all agents, and what models cost.

use super::journal::{Limit, retention};
use crate::{
    agent_settings::{AgentPolicy, ModelPrice, RunLimits},
    diagnostic::Diagnostics,
    lower::agent_settings::{read_limits, read_rules},
    node::{Node, Pair, Value},
    raw::{Field, RawAgentPolicy, RawBreaker, RawLimits, RawModelBreaker, RawPrice},
    read::Reader,
};
use std::{collections::BTreeMap, time::Duration};

/// Maximum of `openai_approval_wait`, in seconds.
const MAX_WAIT_SECONDS: u64 = 86_400;
/// Maximum price per million tokens.
const MAX_PRICE: f64 = 1e9;

/// Reads `[agent]`. `None` means that a diagnostic was recorded.
pub(super) fn agent(field: Option<Field>, diagnostics: &mut Diagnostics) -> Option<AgentPolicy> {
    let usual = AgentPolicy::default();
    let Some(field) = field else { return Some(usual) };
    let RawAgentPolicy {
        keep,
        max_turns,
        max_tool_calls,
        max_repeats,
        max_parallel,
        run_timeout,
        max_total_tokens,
        max_cost,
        approval_timeout,
        approval,
        openai_approval_wait,
        prices,
        breaker,
    } = RawAgentPolicy::read(field.node, diagnostics)?;
    let limits = RawLimits {
        max_turns,
        max_tool_calls,
        max_repeats,
        max_parallel,
        run_timeout,
        max_total_tokens,
        max_cost,
        approval_timeout,
    };
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let keep = match retention(&mut reader, "keep", keep) {
        None => usual.keep,
        Some(Limit::At(keep)) => Some(keep),
        Some(Limit::Unlimited) => None,
    };
    let wait = reader.integer("openai_approval_wait", openai_approval_wait, 0, MAX_WAIT_SECONDS);
    Some(AgentPolicy {
        keep,
        limits: read_limits(limits, "agent", RunLimits::unlimited(), diagnostics),
        approval: read_rules(approval, "agent.approval", diagnostics),
        openai_approval_wait: wait.map_or(usual.openai_approval_wait, Duration::from_secs),
        breaker: match breaker {
            Some(field) => {
                let raw = RawModelBreaker::read(field.node, diagnostics)?;
                let RawModelBreaker { failure_threshold, recovery_timeout } = raw;
                let raw = RawBreaker { failure_threshold, recovery_timeout };
                super::breaker_policy(raw, usual.breaker, diagnostics)
            }
            None => usual.breaker,
        },
        prices: read_prices(prices, diagnostics),
    })
}

fn read_prices(field: Option<Field>, diagnostics: &mut Diagnostics) -> BTreeMap<String, ModelPrice> {
    let Some(Field { node, .. }) = field else { return BTreeMap::new() };
    let Value::Map(pairs) = node.value else {
        let mut reader = Reader { class: "ConfigError", diagnostics };
        reader.report_wrong_type("agent.prices", "a table of prices by model", &node);
        return BTreeMap::new();
    };
    let price = |pair: Pair| Some((pair.key, read_price(pair.node, diagnostics)?));
    pairs.into_iter().filter_map(price).collect()
}

fn read_price(node: Node, diagnostics: &mut Diagnostics) -> Option<ModelPrice> {
    let at = node.at;
    let RawPrice { input, cached_input, output } = RawPrice::read(node, diagnostics)?;
    if input.is_none() || output.is_none() {
        diagnostics.incomplete_price(at);
        return None;
    }
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let input = reader.number("input", input, 0.0, MAX_PRICE);
    let cached_input = reader.number("cached_input", cached_input, 0.0, MAX_PRICE);
    let output = reader.number("output", output, 0.0, MAX_PRICE);
    Some(ModelPrice { input: input?, cached_input: cached_input.or(input)?, output: output? })
}
