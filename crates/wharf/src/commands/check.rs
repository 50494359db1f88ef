//! `wharf check`: validates the agent file.

use super::load_agent;
use crate::{cli::Common, exit::Exit, output::Output, surroundings::Surroundings};
use serde_json::json;

pub(super) fn run(common: &Common, strict: bool, around: &Surroundings, output: Output) -> Exit {
    let (loaded, mut diagnostics) = load_agent(common, around);
    if strict {
        diagnostics.raise_missing_descriptions();
    }
    let ok = !diagnostics.has_errors();
    if output.json {
        output.json(&json!({ "ok": ok, "diagnostics": diagnostics.to_json() }));
    } else {
        if !(diagnostics.items().is_empty() || ok && output.quiet) {
            output.diagnostics(&diagnostics);
        }
        if let Some((plan, _)) = loaded.filter(|_| ok) {
            let count = plan.sources.len();
            output.say(&format!(
                "{}: fine, {count} server{}",
                diagnostics.file(),
                if count == 1 { "" } else { "s" }
            ));
        }
    }
    if ok { Exit::Fine } else { Exit::Usage }
}
