//! finds approval rules that match no tool, such as misspelt ones.

use wharf_agent::RunRules;
use wharf_runtime::Catalog;

/// Returns the rules of the agent file and of the command line that match no tool.
pub(crate) fn unmatched_rules(rules: &RunRules, catalog: &Catalog) -> Vec<String> {
    let configured = &rules.configured;
    let all = configured.allow.iter().chain(&configured.ask).chain(&configured.deny);
    let all = all.chain(&rules.allow).chain(&rules.deny);
    let unmatched = all.filter(|rule| !catalog.tools.iter().any(|it| rule.matches(&it.id())));
    unmatched.map(|it| it.as_str().to_owned()).collect()
}

/// Returns the warning about such a rule.
pub(crate) fn unmatched_warning(rule: &str) -> String {
    format!("approval rule '{rule}' matches no tool")
}
