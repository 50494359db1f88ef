//! `wharf check`: validates the agent file.

use crate::load_agent::load_agent;
use crate::{cli::GlobalOptions, environment::Environment, exit::Exit, output::Output};
use serde_json::json;

pub(super) fn run(common: &GlobalOptions, strict: bool, environment: &Environment, output: Output) -> Exit {
    let (loaded, mut diagnostics) = load_agent(common, environment);
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
            output.print_info(&format!(
                "{}: valid, {count} server{}",
                diagnostics.file(),
                if count == 1 { "" } else { "s" }
            ));
        }
    }
    if ok { Exit::Success } else { Exit::Usage }
}
