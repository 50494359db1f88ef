//! Settings of one model: its name, options and limits.

pub mod trouble;

use crate::provider::is_own_host;
use serde_json::{Map, Value};
use wharf_config::{Model, Provider, ReasoningEffort};

/// Maximum size of one event of an answer, in bytes.
pub const MAX_EVENT_BYTES: usize = 8 << 20;
/// Maximum size of the stream of one answer, in bytes.
pub const MAX_STREAM_BYTES: usize = 64 << 20;
/// Maximum number of tool calls in one answer.
pub const MAX_ANSWER_CALLS: usize = 64;
/// Maximum number of text, reasoning and call parts in one answer.
pub const MAX_ANSWER_PARTS: usize = 4096;

/// Limits for reading one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Maximum size of one event, in bytes.
    pub event_bytes: usize,
    /// Maximum size of the stream, in bytes.
    pub stream_bytes: usize,
    /// Maximum number of tool calls.
    pub calls: usize,
    /// Maximum number of parts.
    pub parts: usize,
}

impl Default for AnswerLimits {
    fn default() -> AnswerLimits {
        AnswerLimits {
            event_bytes: MAX_EVENT_BYTES,
            stream_bytes: MAX_STREAM_BYTES,
            calls: MAX_ANSWER_CALLS,
            parts: MAX_ANSWER_PARTS,
        }
    }
}

/// Name and options of a model, as a request needs them. Only options that are set are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOptions {
    /// Provider that serves the model.
    pub provider: Provider,
    /// Name of the model, as the provider spells it.
    pub name: String,
    /// Whether `endpoint` names another host than the provider's own, so that another vendor's server may speak the
    /// provider's dialect.
    pub has_other_host: bool,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling threshold.
    pub top_p: Option<f64>,
    /// Maximum length of an answer, in tokens.
    pub max_tokens: Option<u64>,
    /// How much the model reasons before it answers.
    pub reasoning: Option<ReasoningEffort>,
    /// Context window, in tokens.
    pub context_window: u64,
    /// Whether the model accepts images.
    pub images: bool,
    /// Keys to add to every request. They never replace a key that the dialect writes.
    pub extra: Map<String, Value>,
}

impl ModelOptions {
    /// Creates options with only the provider, the name and the provider's defaults.
    pub fn new(provider: Provider, name: impl Into<String>) -> ModelOptions {
        let (context_window, images) = match provider {
            Provider::OpenAi | Provider::AzureOpenAi => (128_000, true),
            Provider::Anthropic => (200_000, true),
            Provider::Gemini => (1_000_000, true),
            Provider::Ollama => (16_384, false),
        };
        ModelOptions {
            provider,
            name: name.into(),
            has_other_host: false,
            temperature: None,
            top_p: None,
            max_tokens: None,
            reasoning: None,
            context_window,
            images,
            extra: Map::new(),
        }
    }

    /// Returns the options of a configured model, with the provider's defaults where the file says nothing.
    pub fn of(model: &Model) -> ModelOptions {
        let usual = ModelOptions::new(model.provider, model.name.expose());
        let has_endpoint = model.endpoint.is_some();
        let extra = model.extra.as_ref().and_then(|it| it.expose().as_object()).cloned();
        ModelOptions {
            has_other_host: !is_own_host(model),
            temperature: model.temperature,
            top_p: model.top_p,
            max_tokens: model.max_tokens,
            reasoning: model.reasoning,
            context_window: model.context_window.unwrap_or(usual.context_window),
            // A compatible server may have any model, and many refuse images.
            images: model
                .images
                .unwrap_or(usual.images && !(has_endpoint && model.provider == Provider::OpenAi)),
            extra: extra.unwrap_or_default(),
            ..usual
        }
    }

    /// Returns the provider and the model as one word. Native data of an answer goes back to the same ones only.
    pub fn native_key(&self) -> String {
        format!("{}/{}", self.provider.as_str(), self.name)
    }

    /// Returns whether the server is OpenAI's own or Azure's, which know parameters that compatible servers refuse.
    pub(crate) fn is_openai_service(&self) -> bool {
        self.provider == Provider::AzureOpenAi || self.provider == Provider::OpenAi && !self.has_other_host
    }
}

/// Changes of a request to the options of a model. Options that are not set stay as they are configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelChanges {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling threshold.
    pub top_p: Option<f64>,
    /// Maximum length of an answer, in tokens. A configured limit that is lower stays.
    pub max_tokens: Option<u64>,
    /// Seed of the sampling.
    pub seed: Option<i64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Whether text that was reported is never taken back: a question that fails after it is not asked again.
    pub keeps_deltas: bool,
}

/// Returns the word for an effort level, or `None` if reasoning is off.
pub(crate) fn effort_level(effort: ReasoningEffort) -> Option<&'static str> {
    match effort {
        ReasoningEffort::Off => None,
        other => Some(other.as_str()),
    }
}

/// Returns the number of reasoning tokens for providers that want a budget instead of a level.
pub(crate) fn effort_budget(effort: ReasoningEffort) -> u64 {
    match effort {
        ReasoningEffort::Off => 0,
        ReasoningEffort::Low => 2048,
        ReasoningEffort::Medium => 8192,
        ReasoningEffort::High => 16_384,
    }
}
