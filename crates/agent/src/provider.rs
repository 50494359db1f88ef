//! Default API keys and endpoints of the model providers.

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
    model.endpoint.is_none() || model.provider == Provider::AzureOpenAi
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

    #[test]
    fn a_provider_without_a_key_is_local() {
        for word in Provider::KEYWORDS {
            let provider = Provider::parse(word).expect("a provider");
            let local = default_endpoint(provider).is_some_and(|it| it.starts_with("http://localhost"));
            assert_eq!(key_variable(provider).is_none(), local, "{word}");
        }
    }
}
