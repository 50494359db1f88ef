//! Finds the API key and the price of a model and creates its client, for every command that runs the agent.

use std::{collections::BTreeMap, sync::Arc};
use wharf_agent::{ModelTape, client::ModelClient, key_variables, uses_key_variable};
use wharf_config::{AgentPolicy, MaskedString, Model, ModelPrice, RunLimits};
use wharf_runtime::{EgressPolicy, Redactor};

/// Sets the key of a model from the provider's usual variable, if the configuration has none.
pub(crate) fn set_model_key(model: &mut Model, variables: &BTreeMap<String, String>) {
    if model.api_key.is_some() || !uses_key_variable(model) {
        return;
    }
    model.api_key = key_variables(model.provider).iter().find_map(|name| {
        let value = variables.get(*name).map(|it| it.trim()).filter(|it| !it.is_empty())?;
        Some(MaskedString::secret(value, format!("${{{name}}}")))
    });
}

/// Creates the client of a model. The error is a message of `ConfigError`.
pub(crate) fn model_client(
    model: &Model,
    redactor: &Arc<Redactor>,
    tape: &ModelTape,
) -> Result<ModelClient, String> {
    if tape.is_replay() {
        // The provider is never asked, so there need be no key.
        return Ok(ModelClient::new(model, None, None, redactor.clone())?.with_tape(tape.clone()));
    }
    let variable = key_variables(model.provider).first().filter(|_| uses_key_variable(model));
    if let (None, Some(variable)) = (&model.api_key, variable) {
        let provider = model.provider.as_str();
        return Err(format!("no key for '{provider}': set {variable}, or 'model.api_key'"));
    }
    let key = model.api_key.as_ref().map(|it| it.expose());
    // The model's server may have any address but link-local and metadata addresses.
    let client = ModelClient::new(model, key, Some(EgressPolicy::wide()), redactor.clone())?;
    Ok(client.with_tape(tape.clone()))
}

/// Returns the price of a model, if it is known. A limit on the cost needs one.
pub(crate) fn model_price(
    policy: &AgentPolicy,
    name: &str,
    limits: &RunLimits,
) -> Result<Option<ModelPrice>, String> {
    match policy.prices.get(name) {
        Some(price) => Ok(Some(*price)),
        None if limits.max_cost.is_some() => Err(format!(
            "'max_cost' needs the price of the model\nhelp: add `[agent.prices.\"{name}\"]` with `input` and \
             `output` per million tokens to wharf.toml"
        )),
        None => Ok(None),
    }
}
