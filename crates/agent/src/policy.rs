//! Decides about calls: the rules, the hints of a tool, and what the model has seen.

use crate::tool_facts::ToolFacts;
use wharf_config::{ApprovalRules, Decision, Glob};

/// Rules of one run: those of the configuration, and those of the command line or of a request.
#[derive(Clone, Debug, Default)]
pub struct RunRules {
    /// Rules of agent.yaml.
    pub configured: ApprovalRules,
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
}

impl RunRules {
    /// Returns the rule that denies a tool, if any. Such a tool is not offered either.
    pub(crate) fn denying_rule(&self, tool_id: &str) -> Option<&str> {
        let rules = self.deny.iter().chain(&self.configured.deny);
        rules.into_iter().find(|it| it.matches(tool_id)).map(Glob::as_str)
    }

    /// Decides about a call. `has_seen_untrusted` says whether the model has seen a result of an open-world source.
    pub(crate) fn decide(&self, tool: &ToolFacts, has_seen_untrusted: bool) -> PolicyDecision {
        let found =
            |globs: &[Glob]| globs.iter().find(|it| it.matches(&tool.id)).map(|it| it.as_str().to_owned());
        let ApprovalRules { default, allow, ask, deny: _, after_untrusted } = &self.configured;
        if let Some(rule) = self.denying_rule(&tool.id) {
            return decided(Decision::Deny, format!("the rule '{rule}' denies it"));
        }
        if self.allow_all {
            return decided(Decision::Allow, "the user allowed all calls".to_owned());
        }
        if let Some(rule) = found(&self.allow) {
            return decided(Decision::Allow, format!("the user allowed '{rule}'"));
        }
        if let Some(rule) = found(ask) {
            return decided(Decision::Ask, format!("the rule '{rule}' asks"));
        }
        if let Some(rule) = found(allow) {
            return decided(Decision::Allow, format!("the rule '{rule}' allows it"));
        }
        if tool.is_trusted && tool.is_read_only {
            return decided(Decision::Allow, "its server declares it read-only".to_owned());
        }
        let general = match tool.is_builtin {
            true => decided(Decision::Allow, "it is built in".to_owned()),
            false if tool.is_destructive => {
                return decided(Decision::Ask, "its server declares it destructive".to_owned());
            }
            false => decided(*default, format!("'default' is '{}'", default.as_str())),
        };
        let asks = general.decision == Decision::Allow && has_seen_untrusted && tool.may_write();
        if asks && *after_untrusted == Decision::Ask {
            let why = "it may write, and the model has seen content of an open-world server";
            return decided(Decision::Ask, why.to_owned());
        }
        general
    }
}

fn decided(decision: Decision, why: String) -> PolicyDecision {
    PolicyDecision { decision, why }
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
            let rules = RunRules { configured, allow, deny: globs(user_deny), allow_all };
            let decision = rules.decide(&tool(hints), untrusted);
            assert_eq!(decision.decision.as_str(), expected, "{row:?}: {}", decision.why);
        }
    }
}
