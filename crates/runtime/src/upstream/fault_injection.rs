//! Decides which calls get an injected fault. `--faults` and scenarios have the rules.
//!
//! Each rule counts the calls that it is about, so the same calls get the same faults in every run.

use crate::{Fault, events::EventKind, status_publisher::StatusPublisher};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use wharf_config::{FaultEffect, FaultRule, FaultRules, FaultTarget, FaultTrigger};
use wharf_mcp::{
    Raw, RpcError,
    fault_injection::{FaultInjector, InjectedFault},
};

/// Faults to inject, and how many calls each rule has seen.
#[derive(Debug, Default)]
pub struct FaultInjection {
    seed: u64,
    rules: Vec<CountedRule>,
    injected: AtomicU64,
    /// Calls whose fault was injected and whose outcome is not known yet, by source, tool and arguments. The number of
    /// those that never reached the server.
    unanswered: Mutex<HashMap<String, u64>>,
}

#[derive(Debug)]
struct CountedRule {
    rule: FaultRule,
    /// Number of calls that the rule is about, so far.
    calls: AtomicU64,
}

/// Injects the faults of one source.
#[derive(Debug)]
pub(super) struct SourceFaults {
    pub(super) source: String,
    pub(super) injection: Arc<FaultInjection>,
    /// Receives an event for each fault.
    pub(super) publisher: Option<Arc<StatusPublisher>>,
}

impl FaultInjection {
    /// Creates the faults of these rules.
    pub fn new(rules: FaultRules) -> FaultInjection {
        let FaultRules { seed, rules } = rules;
        let counted = |rule| CountedRule { rule, calls: AtomicU64::new(0) };
        FaultInjection { seed, rules: rules.into_iter().map(counted).collect(), ..FaultInjection::default() }
    }

    /// Returns the number of rules.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// Returns the number of faults injected so far.
    pub fn injected(&self) -> u64 {
        self.injected.load(Ordering::Relaxed)
    }

    /// Counts a question to the model and returns its fault, if it gets one.
    pub fn next_for_model(&self) -> Option<&FaultEffect> {
        self.next(|it| *it == FaultTarget::Model).map(|(_, effect)| effect)
    }

    /// Counts a call of a tool, `source:tool`, and returns its fault, if it gets one.
    pub fn next_for_tool(&self, tool_id: &str) -> Option<&FaultEffect> {
        self.next_rule_for_tool(tool_id).map(|(_, effect)| effect)
    }

    fn next_rule_for_tool(&self, tool_id: &str) -> Option<(usize, &FaultEffect)> {
        self.next(|it| matches!(it, FaultTarget::Tool(glob) if glob.matches(tool_id)))
    }

    /// Counts a call at every rule that is about it. Returns the first that applies, by its number from 1.
    fn next(&self, is_about: impl Fn(&FaultTarget) -> bool) -> Option<(usize, &FaultEffect)> {
        let mut found = None;
        for (number, counted) in self.rules.iter().enumerate().filter(|(_, it)| is_about(&it.rule.target)) {
            let call = counted.calls.fetch_add(1, Ordering::Relaxed) + 1;
            let applies = match &counted.rule.trigger {
                FaultTrigger::Always => true,
                FaultTrigger::Nth(numbers) => numbers.contains(&call),
                FaultTrigger::Rate(rate) => random_share(self.seed, number as u64, call) < *rate,
            };
            if applies && found.is_none() {
                found = Some((number + 1, &counted.rule.effect));
            }
        }
        if found.is_some() {
            self.injected.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// Returns whether the outcome of a call is an injected one, which a recording must not contain: a replay injects it
    /// again.
    pub(crate) fn take_injected(
        &self,
        (source, tool): (&str, &str),
        arguments: Option<&Raw>,
        outcome: &Result<Raw, Arc<Fault>>,
    ) -> bool {
        let key = call_key(source, tool, arguments);
        let mut unanswered = self.unanswered();
        let Some(count) = unanswered.get_mut(&key).filter(|it| **it > 0) else { return false };
        *count -= 1;
        // A call that was repeated after a lost connection has the result of the server.
        let is_injected_result =
            |result: &Raw| result.member("_meta").is_some_and(|it| it.member(INJECTED).is_some());
        outcome.as_ref().map_or(true, is_injected_result)
    }

    fn note_unanswered(&self, source: &str, tool: &str, arguments: Option<&Raw>) {
        *self.unanswered().entry(call_key(source, tool, arguments)).or_default() += 1;
    }

    fn unanswered(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Member of `_meta` that marks an injected result.
const INJECTED: &str = "wharf/injected";

impl FaultInjector for SourceFaults {
    fn inject(&self, method: &str, params: Option<&Raw>) -> Option<InjectedFault> {
        let [name, arguments] = params.filter(|_| method == "tools/call")?.pick(["name", "arguments"]);
        let tool: String = name?.decode().ok()?;
        let (rule, effect) = self.injection.next_rule_for_tool(&format!("{}:{tool}", self.source))?;
        if let Some(publisher) = &self.publisher {
            publisher.publish(EventKind::FaultInjected { rule });
        }
        let fault = injected_fault(effect);
        if !matches!(fault, InjectedFault::Delay(_) | InjectedFault::ToolsChanged(_)) {
            self.injection.note_unanswered(&self.source, &tool, arguments.as_ref());
        }
        Some(fault)
    }
}

fn injected_fault(effect: &FaultEffect) -> InjectedFault {
    match effect {
        FaultEffect::Delay(delay) => InjectedFault::Delay(*delay),
        FaultEffect::Drop => InjectedFault::Drop,
        FaultEffect::Disconnect => InjectedFault::Disconnect,
        FaultEffect::RpcError { code, text } => InjectedFault::Answer(Err(RpcError::new(*code, text))),
        FaultEffect::ToolError { text } => InjectedFault::Answer(Ok(tool_result(text, true))),
        FaultEffect::Oversized(bytes) => InjectedFault::Answer(Ok(tool_result(&"x".repeat(*bytes), false))),
        FaultEffect::Malformed => InjectedFault::Malformed,
        FaultEffect::ListChanged(times) => InjectedFault::ToolsChanged(*times),
    }
}

/// Returns an injected result of a tool.
pub fn tool_result(text: &str, is_error: bool) -> Raw {
    let content = json!([{ "type": "text", "text": text }]);
    json!({ "content": content, "isError": is_error, "_meta": { INJECTED: true } }).into()
}

fn call_key(source: &str, tool: &str, arguments: Option<&Raw>) -> String {
    let arguments: Value = arguments.map_or_else(|| json!({}), |it| it.decode_or_default());
    json!([source, tool, arguments]).to_string()
}

/// Returns a number from 0 to 1 that depends on nothing but the seed, the rule and the number of the call (SplitMix64).
fn random_share(seed: u64, rule: u64, call: u64) -> f64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = seed ^ rule.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = mixed.wrapping_add(call.wrapping_mul(STEP)).wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_config::load_faults;

    fn injection(text: &str) -> FaultInjection {
        FaultInjection::new(load_faults(text, "faults.yaml").0.expect("valid rules"))
    }

    fn kinds(injection: &FaultInjection, tool_id: &str, calls: usize) -> Vec<Option<&'static str>> {
        (0..calls).map(|_| injection.next_for_tool(tool_id).map(FaultEffect::as_str)).collect()
    }

    #[test]
    fn first_rule_that_applies_wins_and_every_rule_counts() {
        let faults = injection(
            "faults:\n- {tool: 'a:*', kind: drop, nth: [2]}\n- {tool: '*', kind: malformed, nth: [2, 3]}\n- {model: true, kind: drop}\n",
        );
        assert_eq!(kinds(&faults, "a:x", 4), [None, Some("drop"), Some("malformed"), None]);
        assert_eq!(kinds(&faults, "b:x", 1), [None]);
        assert_eq!(faults.next_for_model(), Some(&FaultEffect::Drop));
        assert_eq!(faults.injected(), 3);
    }

    #[test]
    fn same_seed_gives_the_same_faults_at_about_the_rate() {
        let run = |seed| {
            let text = format!("seed: {seed}\nfaults: [{{tool: '*', kind: drop, rate: 0.2}}]\n");
            kinds(&injection(&text), "a:x", 10_000)
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        let hits = run(7).iter().flatten().count();
        assert!((1_800..2_200).contains(&hits), "{hits}");
    }
}
