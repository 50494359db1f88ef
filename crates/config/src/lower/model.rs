//! Lowers `model:`, which only `run` and `chat` use.

use super::endpoint::check_header_syntax;
use crate::{
    diagnostic::Diagnostics,
    env::Env,
    masked_string::MaskedString,
    model::{Model, ModelApi, ModelEndpoint, Provider, ReasoningEffort},
    node::Node,
    place::{Place, Placed},
    raw::{Field, RawModel},
    read::Reader,
    server_config::ServerConfig,
    url::{is_insecure, parse_http_url},
};
use std::time::Duration;

/// Maximum number of entries of `model.headers`.
const MAX_HEADERS: usize = 32;
/// Maximum size of `model.extra` as JSON, in bytes.
const MAX_EXTRA_BYTES: usize = 64 * 1024;
/// Maximum value of `model.timeout` and `model.idle_timeout`, in seconds.
const MAX_MODEL_TIMEOUT_SECONDS: f64 = 3600.0;

/// Keys of a request that `model.extra` must not set, in any provider's dialect.
#[rustfmt::skip]
const WRITTEN_KEYS: &[&str] = &[
    "model", "messages", "input", "contents", "tools", "tool_choice", "toolConfig", "stream", "system", "instructions",
    "systemInstruction",
];

pub(super) fn model(node: Node, env: &Env, diagnostics: &mut Diagnostics) -> Option<Model> {
    let at = node.at;
    #[rustfmt::skip]
    let RawModel {
        provider, name, temperature, max_tokens, top_p, endpoint, api_key, api_version, api, reasoning, context_window,
        images, timeout, idle_timeout, headers, extra,
    } = RawModel::read(node, diagnostics)?;
    for (key, field) in [("provider", &provider), ("name", &name)] {
        if field.is_none() {
            diagnostics.missing_model_key(at, key);
        }
    }
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let provider = reader.keyword("model.provider", provider, Provider::KEYWORDS, Provider::parse);
    let name = reader.text("model.name", name);
    if let Some(blank) = name.as_ref().filter(|it| it.value.is_blank()) {
        reader.diagnostics.missing_model_key(blank.at, "name");
    }
    if provider == Some(Provider::AzureOpenAi) && endpoint.is_none() {
        reader.diagnostics.missing_azure_endpoint(at);
    }
    let api_at = api.as_ref().map(|it| it.key_at);
    let is_openai = matches!(provider, None | Some(Provider::OpenAi | Provider::AzureOpenAi));
    if let Some(at) = api_at.filter(|_| !is_openai) {
        reader.diagnostics.api_not_for_provider(at);
    }
    Some(Model {
        name: name?.value,
        api: reader.keyword("model.api", api, ModelApi::KEYWORDS, ModelApi::parse),
        reasoning: reader.keyword(
            "model.reasoning",
            reasoning,
            ReasoningEffort::KEYWORDS,
            ReasoningEffort::parse,
        ),
        temperature: reader.number("model.temperature", temperature, 0.0, 2.0),
        max_tokens: reader.count("model.max_tokens", max_tokens, u64::from(u32::MAX)),
        top_p: reader.number("model.top_p", top_p, 0.0, 1.0),
        context_window: reader.integer("model.context_window", context_window, 2048, 10_000_000),
        images: reader.flag("model.images", images),
        endpoint: self::endpoint(reader.text("model.endpoint", endpoint), env, reader.diagnostics),
        api_key: reader.text("model.api_key", api_key).map(|it| it.value),
        api_version: reader.text("model.api_version", api_version).map(|it| it.value),
        timeout: seconds("model.timeout", timeout, &mut reader).unwrap_or(Model::TIMEOUT),
        idle_timeout: seconds("model.idle_timeout", idle_timeout, &mut reader).unwrap_or(Model::IDLE_TIMEOUT),
        headers: self::headers(headers, provider, &mut reader),
        extra: self::extra(extra, &mut reader),
        provider: provider?,
    })
}

fn endpoint(
    text: Option<Placed<MaskedString>>,
    env: &Env,
    diagnostics: &mut Diagnostics,
) -> Option<ModelEndpoint> {
    let Placed { value: shown, at } = text?;
    let parsed = parse_http_url(shown.expose());
    let Some(url) = parsed.filter(|it| it.username().is_empty() && it.password().is_none()) else {
        diagnostics.model_endpoint(at);
        return None;
    };
    if is_insecure(&url, env) {
        diagnostics.insecure_model_endpoint(at);
        return None;
    }
    Some(ModelEndpoint { url, shown })
}

fn seconds(key: &str, field: Option<Field>, reader: &mut Reader<'_>) -> Option<Duration> {
    reader.seconds_up_to(key, field, MAX_MODEL_TIMEOUT_SECONDS)
}

/// Checks the headers: valid names and values, and none that wharf sets itself.
fn headers(
    field: Option<Field>,
    provider: Option<Provider>,
    reader: &mut Reader<'_>,
) -> Vec<(String, MaskedString)> {
    const KEY: &str = "model.headers";
    let at = field.as_ref().map(|it| it.node.at);
    let pairs = reader.text_map(KEY, field).unwrap_or_default();
    if let Some(at) = at.filter(|_| pairs.len() > MAX_HEADERS) {
        reader.diagnostics.too_much(at, KEY, "a mapping of at most 32 strings");
    }
    let is_ours = |name: &str| {
        let name = name.to_ascii_lowercase();
        name == "host" || name.starts_with("content-") || provider.is_some_and(|it| it.key_header() == name)
    };
    for (name, _) in pairs.iter().filter(|(name, _)| is_ours(&name.value)) {
        reader.diagnostics.key_set_by_wharf(name.at, KEY, &name.value);
    }
    check_header_syntax(pairs, reader.diagnostics)
}

fn extra(field: Option<Field>, reader: &mut Reader<'_>) -> Option<ServerConfig> {
    const KEY: &str = "model.extra";
    let at: Place = field.as_ref()?.node.at;
    let extra = reader.json(KEY, field)?;
    for name in WRITTEN_KEYS.iter().filter(|it| extra.expose().get(**it).is_some()) {
        reader.diagnostics.key_set_by_wharf(at, KEY, name);
    }
    if extra.expose().to_string().len() > MAX_EXTRA_BYTES {
        reader.diagnostics.too_much(at, KEY, "a mapping of at most 64 KiB");
    }
    Some(extra)
}
