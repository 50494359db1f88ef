//! Lowers `model:`, which only `run` and `chat` use.

use crate::{
    diagnostic::Diagnostics,
    node::Node,
    plan::{Model, Provider},
    raw::RawModel,
    read::Reader,
    url::parse_http_url,
};

pub(super) fn model(node: Node, diagnostics: &mut Diagnostics) -> Option<Model> {
    let at = node.at;
    let raw = RawModel::read(node, diagnostics)?;
    let RawModel { provider, name, temperature, max_tokens, top_p, endpoint, api_key, api_version } = raw;
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
    let temperature = reader.number("model.temperature", temperature, 0.0, 2.0);
    let max_tokens = reader.count("model.max_tokens", max_tokens, u64::from(u32::MAX));
    let top_p = reader.number("model.top_p", top_p, 0.0, 1.0);
    let endpoint = reader.text("model.endpoint", endpoint);
    if let Some(endpoint) = &endpoint {
        let parsed = parse_http_url(endpoint.value.expose());
        let fits = parsed.is_some_and(|it| it.username().is_empty() && it.password().is_none());
        if !fits {
            reader.diagnostics.model_endpoint(endpoint.at);
        }
    }
    Some(Model {
        provider: provider?,
        name: name?.value,
        temperature,
        max_tokens,
        top_p,
        endpoint: endpoint.map(|it| it.value),
        api_key: reader.text("model.api_key", api_key).map(|it| it.value),
        api_version: reader.text("model.api_version", api_version).map(|it| it.value),
    })
}
