//! Diagnostics about scenarios.

use crate::{diagnostic::Diagnostics, echo::echo, place::Place};

/// Diagnostics about scenarios.
impl Diagnostics {
    pub(crate) fn scenario_without_cassette(&mut self, at: Place) {
        self.error("T-02", at, "ScenarioError: 'cassette' is missing").hint(
            "name a file, for example `cassette: reads.cassette.jsonl`; `wharf test --update` records it",
        );
    }

    pub(crate) fn scenario_without_task(&mut self, at: Place) {
        self.error("T-03", at, "ScenarioError: a scenario has either 'message' or 'calls'")
            .hint("`message` asks the agent; `calls` needs no model");
    }

    pub(crate) fn scenario_pattern(&mut self, at: Place, why: &str) {
        self.error("T-04", at, format!("ScenarioError: invalid pattern: {}", echo(why)))
            .hint("patterns are regular expressions without look-around and back-references");
    }
}
