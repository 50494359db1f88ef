//! The model of an agent file.

use crate::{keywords::keywords, masked_string::MaskedString, server_config::ServerConfig};
use std::{fmt, time::Duration};
use url::Url;

/// Model settings of an agent.
#[derive(Clone, PartialEq)]
pub struct Model {
    /// Provider that serves the model.
    pub provider: Provider,
    /// Name of the model, as the provider spells it.
    pub name: MaskedString,
    /// Which of OpenAI's two APIs to use, if not the default.
    pub api: Option<ModelApi>,
    /// How much the model reasons before it answers.
    pub reasoning: Option<ReasoningEffort>,
    /// Sampling temperature, 0 to 2.
    pub temperature: Option<f64>,
    /// Maximum length of an answer, in tokens.
    pub max_tokens: Option<u64>,
    /// Nucleus sampling threshold, 0 to 1.
    pub top_p: Option<f64>,
    /// Context window in tokens, if it differs from the provider's default.
    pub context_window: Option<u64>,
    /// Whether the model accepts images, if that differs from the provider's default.
    pub images: Option<bool>,
    /// Base URL of the provider's API, if it differs from the default.
    pub endpoint: Option<ModelEndpoint>,
    /// API key.
    pub api_key: Option<MaskedString>,
    /// Version of the provider's API.
    pub api_version: Option<MaskedString>,
    /// Time until the first byte of an answer.
    pub timeout: Duration,
    /// Time between two reads of an answer.
    pub idle_timeout: Duration,
    /// Additional headers of every request.
    pub headers: Vec<(String, MaskedString)>,
    /// Additional keys of every request.
    pub extra: Option<ServerConfig>,
}

/// Base URL of a provider's API.
#[derive(Clone, PartialEq)]
pub struct ModelEndpoint {
    /// The URL.
    pub url: Url,
    /// The URL in the form that may be shown.
    pub shown: MaskedString,
}

/// Provider of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// `openai`
    OpenAi,
    /// `azure_openai`
    AzureOpenAi,
    /// `anthropic`
    Anthropic,
    /// `ollama`
    Ollama,
    /// `gemini`
    Gemini,
}

/// OpenAI's API to use (`model.api`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelApi {
    /// `responses`
    Responses,
    /// `chat`
    Chat,
}

/// How much a model reasons before it answers (`model.reasoning`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningEffort {
    /// `off`
    Off,
    /// `low`
    Low,
    /// `medium`
    Medium,
    /// `high`
    High,
}

impl Model {
    /// Default of `model.timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(120);
    /// Default of `model.idle_timeout`.
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

    /// Creates a model with the provider's defaults.
    pub fn new(provider: Provider, name: MaskedString) -> Model {
        Model {
            provider,
            name,
            api: None,
            reasoning: None,
            temperature: None,
            max_tokens: None,
            top_p: None,
            context_window: None,
            images: None,
            endpoint: None,
            api_key: None,
            api_version: None,
            timeout: Model::TIMEOUT,
            idle_timeout: Model::IDLE_TIMEOUT,
            headers: Vec::new(),
            extra: None,
        }
    }
}

impl Provider {
    /// Returns the name of the header that carries the API key, in lower case.
    pub fn key_header(self) -> &'static str {
        match self {
            Provider::OpenAi | Provider::Ollama => "authorization",
            Provider::AzureOpenAi => "api-key",
            Provider::Anthropic => "x-api-key",
            Provider::Gemini => "x-goog-api-key",
        }
    }
}

// Values of headers are often secrets, so only the names are printed.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Model")
            .field("provider", &self.provider)
            .field("name", &self.name)
            .field("endpoint", &self.endpoint)
            .field("api_key", &self.api_key)
            .field("headers", &headers)
            .field("extra", &self.extra)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown.fmt(f)
    }
}

keywords!(Provider { OpenAi = "openai", AzureOpenAi = "azure_openai", Anthropic = "anthropic", Ollama = "ollama", Gemini = "gemini" });
keywords!(ModelApi { Responses = "responses", Chat = "chat" });
keywords!(ReasoningEffort { Off = "off", Low = "low", Medium = "medium", High = "high" });
