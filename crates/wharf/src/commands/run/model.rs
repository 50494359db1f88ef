//! Finds the model of a run.

use crate::{
    agent_model::{model_client, model_price, set_model_key},
    app::App,
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
};
use wharf_agent::{
    ModelTape,
    client::{ModelBreaker, ModelClient},
};
use wharf_config::{MaskedString, Model, ModelPrice, Plan, Provider, RunLimits};

/// Creates the client of the model, with the circuit breaker that the operator set. The redactor learns its key.
pub(in crate::commands) fn client(
    app: &App,
    named: Option<&str>,
    environment: &Environment,
    tape: &ModelTape,
) -> Result<ModelClient, CommandError> {
    let mut model = model_of(&app.plan, named)?;
    set_model_key(&mut model, &environment.variables);
    app.redactor().learn(&Plan { model: Some(model.clone()), ..app.plan.clone() });
    let client = model_client(&model, app.redactor(), tape).map_err(|error| config_error(&error))?;
    let breaker = ModelBreaker::new(client.breaker_key().into(), app.agent_policy.breaker, None);
    Ok(client.with_breaker(breaker))
}

/// Returns the price of the model, if it is known.
pub(in crate::commands) fn price(
    app: &App,
    client: &ModelClient,
    limits: &RunLimits,
) -> Result<Option<ModelPrice>, CommandError> {
    let price = model_price(&app.agent_policy, &client.options().name, limits);
    price.map_err(|error| config_error(&error))
}

/// Returns the model that the command line or the agent file names.
fn model_of(plan: &Plan, named: Option<&str>) -> Result<Model, CommandError> {
    let Some(named) = named else {
        let hint =
            "add `model: {provider: ollama, name: qwen3}` to agent.yaml, or use `--model PROVIDER/NAME`";
        let missing = || config_error(&format!("'run' needs 'model'\nhelp: {hint}"));
        return plan.model.clone().ok_or_else(missing);
    };
    let parsed = named.split_once('/').and_then(|(provider, name)| Some((Provider::parse(provider)?, name)));
    let Some((provider, name)) = parsed.filter(|(_, name)| !name.is_empty()) else {
        let providers = Provider::KEYWORDS.join(", ");
        let complaint = format!("`--model` must be PROVIDER/NAME\nhelp: the providers are {providers}");
        return Err(CommandError::usage(&complaint));
    };
    let name = MaskedString::plain(name);
    match &plan.model {
        Some(model) if model.provider == provider => Ok(Model { name, ..model.clone() }),
        _ if provider == Provider::AzureOpenAi => {
            Err(config_error("'endpoint' is required for azure_openai\nhelp: set it in agent.yaml"))
        }
        _ => Ok(Model::new(provider, name)),
    }
}

fn config_error(complaint: &str) -> CommandError {
    CommandError::new("ConfigError", complaint, Exit::Usage)
}
