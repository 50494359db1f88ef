//! Finds the model of a run and its key.

use super::model_egress;
use crate::{app::App, cli::RunArgs, command_error::CommandError, environment::Environment, exit::Exit};
use wharf_agent::{client::ModelClient, key_variables, uses_key_variable};
use wharf_config::{MaskedString, Model, Plan, Provider};

/// Creates the client of the model. The redactor learns its key.
pub(super) fn client(
    app: &App,
    args: &RunArgs,
    environment: &Environment,
) -> Result<ModelClient, CommandError> {
    let mut model = model_of(&app.plan, args)?;
    if model.api_key.is_none() && uses_key_variable(&model) {
        model.api_key = key_from_environment(model.provider, environment)?;
    }
    let key = model.api_key.clone();
    app.redactor().learn(&Plan { model: Some(model.clone()), ..app.plan.clone() });
    let key = key.as_ref().map(|it| it.expose());
    ModelClient::new(&model, key, Some(model_egress()), app.redactor().clone())
        .map_err(|error| config_error(&error))
}

/// Returns the model that the command line or the agent file names.
fn model_of(plan: &Plan, args: &RunArgs) -> Result<Model, CommandError> {
    let Some(named) = &args.model else {
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

fn key_from_environment(
    provider: Provider,
    environment: &Environment,
) -> Result<Option<MaskedString>, CommandError> {
    let variables = key_variables(provider);
    let Some(first) = variables.first() else { return Ok(None) };
    let found = variables.iter().find_map(|name| {
        let value = environment.variables.get(*name).filter(|it| !it.trim().is_empty())?;
        Some(MaskedString::secret(value.trim(), format!("${{{name}}}")))
    });
    let provider = provider.as_str();
    let missing = || config_error(&format!("no key for '{provider}': set {first}, or 'model.api_key'"));
    found.ok_or_else(missing).map(Some)
}

fn config_error(complaint: &str) -> CommandError {
    CommandError::new("ConfigError", complaint, Exit::Usage)
}
