//! Default API keys and endpoints of the model providers.

use url::Url;
use wharf_config::{Model, Provider};

/// Returns the environment variables that may hold the API key if the agent file has no `api_key`. Empty if the
/// provider needs no key.
pub fn key_variables(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::OpenAi => &["OPENAI_API_KEY"],
        Provider::AzureOpenAi => &["AZURE_OPENAI_API_KEY"],
        Provider::Anthropic => &["ANTHROPIC_API_KEY"],
        Provider::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        Provider::Ollama => &[],
    }
}

/// Returns the first of the [`key_variables`].
pub fn key_variable(provider: Provider) -> Option<&'static str> {
    key_variables(provider).first().copied()
}

/// Returns whether the usual variable may provide the key of this model. The key goes to the provider's own host only;
/// Azure has a host for each customer.
pub fn uses_key_variable(model: &Model) -> bool {
    model.provider == Provider::AzureOpenAi || is_own_host(model)
}

/// Returns whether a model is at its provider's own host, named by `endpoint` or not.
pub(crate) fn is_own_host(model: &Model) -> bool {
    let Some(endpoint) = &model.endpoint else { return true };
    let own = default_endpoint(model.provider).and_then(|it| Url::parse(it).ok());
    own.is_some_and(|own| own.origin() == endpoint.url.origin())
}

/// Returns advice for a provider that refuses the key: which provider it is, and the variable or setting with the key.
pub(crate) fn key_hint(model: &Model) -> String {
    let provider = model.provider.as_str();
    let place = match &model.api_key {
        Some(key) if key.is_secret() => {
            let shown = key.shown();
            shown.strip_prefix("${").and_then(|it| it.strip_suffix('}')).unwrap_or(shown).to_owned()
        }
        Some(_) => "'model.api_key'".to_owned(),
        None => {
            let variable = key_variable(model.provider).filter(|_| uses_key_variable(model));
            let set = variable.map_or_else(String::new, |it| format!("{it} or "));
            return format!("'{provider}' asks for a key: set {set}'model.api_key'");
        }
    };
    format!("check the key of '{provider}' in {place}, and whether it may use this model")
}

/// Returns the endpoint to use if the agent file has no `endpoint`, or `None` if every customer has their own.
pub fn default_endpoint(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::OpenAi => Some("https://api.openai.com/v1/"),
        Provider::Anthropic => Some("https://api.anthropic.com/v1/"),
        Provider::Gemini => Some("https://generativelanguage.googleapis.com/v1beta/"),
        Provider::Ollama => Some("http://localhost:11434/"),
        Provider::AzureOpenAi => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_config::{MaskedString, ModelEndpoint};

    #[test]
    fn a_provider_without_a_key_is_local() {
        for word in Provider::KEYWORDS {
            let provider = Provider::parse(word).expect("a provider");
            let local = default_endpoint(provider).is_some_and(|it| it.starts_with("http://localhost"));
            assert_eq!(key_variable(provider).is_none(), local, "{word}");
        }
    }

    #[test]
    fn the_usual_variable_is_for_the_providers_own_host() {
        let rows = [
            (Provider::OpenAi, None, true),
            (Provider::OpenAi, Some("https://api.openai.com/v1"), true),
            (Provider::OpenAi, Some("https://API.openai.com:443/v2/"), true),
            (Provider::OpenAi, Some("http://api.openai.com/v1"), false),
            (Provider::OpenAi, Some("https://api.openai.com:8443/v1"), false),
            (Provider::OpenAi, Some("https://api.openai.com.evil.example/v1"), false),
            (Provider::OpenAi, Some("https://openrouter.ai/api/v1"), false),
            (Provider::Gemini, Some("https://generativelanguage.googleapis.com/v1"), true),
            (Provider::Anthropic, Some("https://api.openai.com/v1"), false),
            (Provider::AzureOpenAi, Some("https://name.openai.azure.com/"), true),
        ];
        for (provider, endpoint, expected) in rows {
            let mut model = Model::new(provider, MaskedString::plain("m"));
            model.endpoint = endpoint.map(|it| ModelEndpoint {
                url: Url::parse(it).expect("a URL"),
                shown: MaskedString::plain(it),
            });
            assert_eq!(uses_key_variable(&model), expected, "{provider:?} at {endpoint:?}");
        }
    }
}
