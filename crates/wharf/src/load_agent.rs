//! Loads the agent file together with the operator's settings.

use crate::{
    agent_input,
    agent_model::set_model_key,
    cli::{DEFAULT_AGENT_FILE, GlobalOptions},
    environment::Environment,
};
use std::path::Path;
use wharf_config::{Diagnostics, Plan, Settings, load};

/// The agent file to use when there is none: the built-in Todo server.
const TODO_AGENT_FILE: &str =
    "tools:\n  - name: todo\n    description: A list of todos\n    type: mcp\n    server: builtin:todo\n";

/// Checks whether an agent file exists. One named with `-f` counts as existing, so that loading reports its absence.
pub(crate) fn has_agent_file(common: &GlobalOptions) -> bool {
    let exists = |name: &str| Path::new(name).exists();
    common.file != Path::new(DEFAULT_AGENT_FILE) || exists(DEFAULT_AGENT_FILE) || exists("agent.yml")
}

/// Loads the agent file like [`load_agent`]. Without one, loads a plan with the built-in Todo server instead.
pub(crate) fn load_agent_or_todo(
    common: &GlobalOptions,
    environment: &Environment,
) -> (Option<(Plan, Settings)>, Diagnostics) {
    if has_agent_file(common) {
        return load_agent(common, environment);
    }
    let settings = environment.settings(common.settings.as_deref());
    let loaded = settings.map(|settings| {
        let (plan, diagnostics) =
            load(TODO_AGENT_FILE, &environment.env_for(&common.file, settings.grants.clone()));
        (plan.map(|it| (it, settings)), diagnostics)
    });
    loaded.unwrap_or_else(|diagnostics| (None, diagnostics))
}

/// Loads the agent file with the operator's settings. The diagnostics hold every error.
pub(crate) fn load_agent(
    common: &GlobalOptions,
    environment: &Environment,
) -> (Option<(Plan, Settings)>, Diagnostics) {
    let loaded = environment.settings(common.settings.as_deref()).and_then(|settings| {
        let text = agent_input::read(&common.file)?;
        let (mut plan, diagnostics) = load(text, &environment.env_for(&common.file, settings.grants.clone()));
        if let Some(model) = plan.as_mut().and_then(|it| it.model.as_mut()) {
            set_model_key(model, &environment.variables);
        }
        Ok((plan.map(|it| (it, settings)), diagnostics))
    });
    loaded.unwrap_or_else(|diagnostics| (None, diagnostics))
}
