//! Builds the URL and the headers of a request to a model.

use crate::{dialect::Dialect, provider::default_endpoint};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use url::Url;
use wharf_config::{Model, Provider};

/// Version of Anthropic's API, if `api_version` names none.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Returns the URL of a request, or `None` if the provider needs an `endpoint` and there is none.
pub(super) fn request_url(model: &Model, dialect: Dialect) -> Option<Url> {
    let mut url = match &model.endpoint {
        Some(endpoint) => endpoint.url.clone(),
        None => Url::parse(default_endpoint(model.provider)?).ok()?,
    };
    let name = model.name.expose();
    let version = model.api_version.as_ref().map(|it| it.expose());
    let is_azure = model.provider == Provider::AzureOpenAi;
    let is_deployment = is_azure && dialect == Dialect::Chat && version.is_some();
    let gemini_method = format!("{name}:streamGenerateContent");
    let path: &[&str] = match dialect {
        Dialect::Chat if is_deployment => &["openai", "deployments", name, "chat", "completions"],
        Dialect::Chat if is_azure => &["openai", "v1", "chat", "completions"],
        Dialect::Chat => &["chat", "completions"],
        Dialect::Responses if is_azure => &["openai", "v1", "responses"],
        Dialect::Responses => &["responses"],
        Dialect::Anthropic => &["messages"],
        Dialect::Gemini => &["models", &gemini_method],
        Dialect::Ollama => &["api", "chat"],
    };
    url.path_segments_mut().ok()?.pop_if_empty().extend(path);
    if dialect == Dialect::Gemini {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    if let Some(version) = version.filter(|_| is_azure) {
        url.query_pairs_mut().append_pair("api-version", version);
    }
    Some(url)
}

/// Returns the headers of a request, or the name of one that cannot be sent.
pub(super) fn request_headers(model: &Model, key: Option<&str>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/x-ndjson"));
    for (name, value) in &model.headers {
        insert(&mut headers, name, value.expose())?;
    }
    if model.provider == Provider::Anthropic {
        let version = model.api_version.as_ref().map_or(ANTHROPIC_VERSION, |it| it.expose());
        insert(&mut headers, "anthropic-version", version)?;
    }
    if let Some(key) = key {
        let name = model.provider.key_header();
        let value = if name == "authorization" { format!("Bearer {key}") } else { key.to_owned() };
        insert(&mut headers, name, &value)?;
    }
    Ok(headers)
}

fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let refused = || format!("the header '{name}' cannot be sent");
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
    let mut value = HeaderValue::from_str(value).map_err(|_| refused())?;
    value.set_sensitive(true);
    headers.insert(key, value);
    Ok(())
}
