//! Decides about calls: the rules, the hints of a tool, and what the model has seen.

use crate::tool_facts::ToolFacts;
use serde_json::Value;
use wharf_config::{ApprovalRules, Decision, FilePosition, Glob, OperatorRules, Source};
use wharf_runtime::catalog::ToolEntry;

const AFTER_UNTRUSTED: &str = "it may write, and the model has seen content of an open-world server";

/// Rules of one run: those of the configuration, and those of the command line or of a request.
#[derive(Clone, Debug, Default)]
pub struct RunRules {
    /// Rules of agent.yaml.
    pub configured: ApprovalRules,
    /// Rules of wharf.toml, which nothing else loosens.
    pub operator: OperatorRules,
    /// Calls that the user allows. They do not override a rule that denies.
    pub allow: Vec<Glob>,
    /// Calls that the user denies.
    pub deny: Vec<Glob>,
    /// Whether the user allows every call that no rule denies.
    pub allow_all: bool,
}

/// Decision about one call, and its reason for people and records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyDecision {
    /// The decision.
    pub(crate) decision: Decision,
    /// The rule, hint or default that decided.
    pub(crate) why: String,
    /// Line of the rule that decided, if a file has it.
    pub(crate) at: Option<FilePosition>,
}

impl RunRules {
    /// Returns the rule that denies a tool, if any. Such a tool is not offered either.
    pub fn denying_rule(&self, tool_id: &str) -> Option<&Glob> {
        let rules = self.deny.iter().chain(&self.configured.deny).chain(&self.operator.deny);
        rules.into_iter().find(|it| it.matches(tool_id))
    }

    /// Decides about a call: the stricter decision of the operator's rules and all others. `has_seen_untrusted` says
    /// whether the model has seen a result of an open-world source.
    pub(crate) fn decide(&self, tool: &ToolFacts, has_seen_untrusted: bool) -> PolicyDecision {
        if let Some(rule) = self.denying_rule(&tool.id) {
            return decided_by(rule, Decision::Deny, |it| format!("the rule '{it}' denies it"));
        }
        let own = self.decide_for_user(tool, has_seen_untrusted);
        match self.decide_for_operator(tool, has_seen_untrusted) {
            Some(stricter) if stricter.decision > own.decision => stricter,
            _ => own,
        }
    }

    /// Returns the decision about a call of a model that has seen no results yet, its reason, and the line of the rule
    /// that decided.
    pub fn explain(&self, tool: &ToolEntry) -> (Decision, String, Option<FilePosition>) {
        let PolicyDecision { decision, why, at } = self.decide(&ToolFacts::of(tool), false);
        (decision, why, at)
    }

    /// Returns the same about a tool that a cached list has, with its shown name, its name on the wire and its annotations.
    pub fn explain_listed(
        &self,
        source: &Source,
        names: (&str, &str),
        annotations: &Value,
    ) -> (Decision, String, Option<FilePosition>) {
        let PolicyDecision { decision, why, at } =
            self.decide(&ToolFacts::of_listed(source, names, annotations), false);
        (decision, why, at)
    }

    /// Decides by the rules of the user and of agent.yaml.
    fn decide_for_user(&self, tool: &ToolFacts, has_seen_untrusted: bool) -> PolicyDecision {
        let ApprovalRules { default, allow, ask, deny: _, after_untrusted } = &self.configured;
        if self.allow_all {
            return decided(Decision::Allow, "the user allowed all calls".to_owned());
        }
        if let Some(rule) = find_rule(&self.allow, tool) {
            return decided_by(rule, Decision::Allow, |it| format!("the user allowed '{it}'"));
        }
        if let Some(rule) = find_rule(ask, tool) {
            return decided_by(rule, Decision::Ask, |it| format!("the rule '{it}' asks"));
        }
        if let Some(rule) = find_rule(allow, tool) {
            return decided_by(rule, Decision::Allow, |it| format!("the rule '{it}' allows it"));
        }
        if tool.is_trusted && tool.is_read_only {
            return decided(Decision::Allow, "its server declares it read-only".to_owned());
        }
        let general = match tool.is_builtin {
            true => decided(Decision::Allow, "it is built in".to_owned()),
            // The hint only tightens: a default that denies stays.
            false if tool.is_destructive && *default == Decision::Allow => {
                return decided(Decision::Ask, "its server declares it destructive".to_owned());
            }
            false => decided(*default, format!("'default' is '{}'", default.as_str())),
        };
        let asks = general.decision == Decision::Allow && has_seen_untrusted && tool.may_write();
        if asks && *after_untrusted == Decision::Ask {
            return decided(Decision::Ask, AFTER_UNTRUSTED.to_owned());
        }
        general
    }

    /// Decides by the operator's rules, if they say something about the tool. Denying rules come before.
    fn decide_for_operator(&self, tool: &ToolFacts, has_seen_untrusted: bool) -> Option<PolicyDecision> {
        let OperatorRules { default, allow, ask, deny: _, after_untrusted } = &self.operator;
        if let Some(rule) = find_rule(ask, tool) {
            return Some(decided_by(rule, Decision::Ask, |it| format!("the rule '{it}' of wharf.toml asks")));
        }
        if let Some(rule) = find_rule(allow, tool) {
            let why = |it: &str| format!("the rule '{it}' of wharf.toml allows it");
            return Some(decided_by(rule, Decision::Allow, why));
        }
        if *after_untrusted == Some(Decision::Ask) && has_seen_untrusted && tool.may_write() {
            return Some(decided(Decision::Ask, AFTER_UNTRUSTED.to_owned()));
        }
        if tool.is_trusted && tool.is_read_only || tool.is_builtin {
            return None;
        }
        default.map(|it| decided(it, format!("'default' of wharf.toml is '{}'", it.as_str())))
    }
}

/// Returns the hash of the definition of a tool, to which an approval of the tool is bound.
pub fn approved_definition(tool: &ToolEntry) -> String {
    ToolFacts::of(tool).definition_hash
}

fn find_rule<'a>(rules: &'a [Glob], tool: &ToolFacts) -> Option<&'a Glob> {
    rules.iter().find(|it| it.matches(&tool.id))
}

fn decided_by(rule: &Glob, decision: Decision, why: impl FnOnce(&str) -> String) -> PolicyDecision {
    PolicyDecision { at: rule.at().cloned(), ..decided(decision, why(rule.as_str())) }
}

fn decided(decision: Decision, why: String) -> PolicyDecision {
    PolicyDecision { decision, why, at: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(hints: &str) -> ToolFacts {
        let has = |hint: &str| hints.contains(hint);
        ToolFacts {
            name: "files__write".into(),
            id: "files:write".into(),
            source: "files".into(),
            is_read_only: has("read"),
            is_destructive: has("destroy"),
            is_open_world: has("open"),
            is_trusted: has("trust"),
            is_builtin: has("builtin"),
            defer_loading: wharf_config::DeferLoading::Auto,
            definition_hash: String::new(),
        }
    }

    #[test]
    fn the_strictest_rule_then_hints_then_the_default_decide() {
        let globs = |text: &str| -> Vec<Glob> { text.split_whitespace().map(Glob::new).collect() };
        // Rules of agent.yaml (deny, ask, allow), rules of the user (deny, allow), hints, untrusted, decision.
        #[rustfmt::skip]
        let rows = [
            ("", "", "", "", "", "", false, "ask"),
            ("", "", "files:*", "", "", "", false, "allow"),
            ("", "files:w*", "files:*", "", "", "trust read", false, "ask"),
            ("files:*", "files:*", "files:*", "", "", "trust read", false, "deny"),
            ("", "", "files:*", "files:write", "", "", false, "deny"),
            ("", "files:*", "", "", "files:write", "", false, "allow"),
            ("files:write", "", "", "", "files:*", "", false, "deny"),
            ("files:write", "", "", "", "ALL", "", false, "deny"),
            ("", "files:*", "", "", "ALL", "destroy", false, "allow"),
            ("", "", "", "", "", "trust read", false, "allow"),
            ("", "", "", "", "", "read", false, "ask"),
            ("", "", "", "", "", "trust destroy", false, "ask"),
            ("", "", "", "", "", "builtin", false, "allow"),
            ("", "", "", "", "", "builtin destroy", false, "allow"),
            ("", "", "", "", "", "builtin", true, "ask"),
            ("", "", "", "", "", "trust read", true, "allow"),
            ("", "", "files:*", "", "", "", true, "allow"),
            ("", "", "other:*", "", "", "", false, "ask"),
        ];
        for row in rows {
            let (deny, ask, allow, user_deny, user_allow, hints, untrusted, expected) = row;
            let configured = ApprovalRules {
                deny: globs(deny),
                ask: globs(ask),
                allow: globs(allow),
                ..ApprovalRules::default()
            };
            let allow_all = user_allow == "ALL";
            let allow = if allow_all { Vec::new() } else { globs(user_allow) };
            let deny = globs(user_deny);
            let rules = RunRules { configured, allow, deny, allow_all, ..RunRules::default() };
            let decision = rules.decide(&tool(hints), untrusted);
            assert_eq!(decision.decision.as_str(), expected, "{row:?}: {}", decision.why);
        }
    }

    #[test]
    fn the_destructive_hint_never_loosens_the_default() {
        for (default, expected) in [
            (Decision::Allow, Decision::Ask),
            (Decision::Ask, Decision::Ask),
            (Decision::Deny, Decision::Deny),
        ] {
            let configured = ApprovalRules { default, ..ApprovalRules::default() };
            let rules = RunRules { configured, ..RunRules::default() };
            for hints in ["destroy", "trust destroy"] {
                let decided = rules.decide(&tool(hints), false);
                assert_eq!(decided.decision, expected, "{default:?} {hints}: {}", decided.why);
            }
        }
    }

    #[test]
    fn nothing_loosens_the_rules_of_the_operator() {
        let globs = |text: &str| -> Vec<Glob> { text.split_whitespace().map(Glob::new).collect() };
        // Rules of the operator (deny, ask, allow, default), the user's `--yes`, hints, untrusted, decision.
        #[rustfmt::skip]
        let rows = [
            ("", "", "", None, true, "", false, "allow"),
            ("files:*", "", "files:*", None, true, "", false, "deny"),
            ("", "files:*", "files:*", None, true, "", false, "ask"),
            ("", "", "files:*", Some(Decision::Deny), true, "", false, "allow"),
            ("", "", "", Some(Decision::Ask), true, "", false, "ask"),
            ("", "", "", Some(Decision::Deny), true, "trust read", false, "allow"),
            ("", "", "files:*", None, false, "", false, "ask"),
            ("", "", "", None, true, "", true, "ask"),
            ("", "other:*", "", None, true, "", false, "allow"),
        ];
        for row in rows {
            let (deny, ask, allow, default, allow_all, hints, untrusted, expected) = row;
            let after_untrusted = Some(Decision::Ask);
            let (deny, ask, allow) = (globs(deny), globs(ask), globs(allow));
            let operator = OperatorRules { default, allow, ask, deny, after_untrusted };
            let rules = RunRules { operator, allow_all, ..RunRules::default() };
            let decision = rules.decide(&tool(hints), untrusted);
            assert_eq!(decision.decision.as_str(), expected, "{row:?}: {}", decision.why);
        }
    }
}
