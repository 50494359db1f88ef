//! Wire formats of the model providers.
//!
//! A dialect is two pure functions: [`Dialect::write`] returns the body of a request, and [`EventReader::read`] turns
//! one event of the response into [`Delta`]s. [`crate::answer::AnswerReader`] puts these together.

mod anthropic;
mod body;
mod chat;
mod delta;
mod gemini;
mod ollama;
mod responses;
mod tools;

pub use crate::framing::Framing;
pub use delta::{CallFragment, Delta, FinishReason, NativeKind, Usage};

use crate::{
    model::{
        ModelOptions,
        trouble::{ProviderError, Trouble},
    },
    tool_list::{ToolList, ToolSpec},
    view::View,
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use wharf_config::{Model, ModelApi, Provider};

/// Wire format of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's responses.
    Responses,
    /// OpenAI's chat completions, which most other servers speak.
    Chat,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini,
    /// Ollama's own chat.
    Ollama,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Dialect; 5] =
        [Dialect::Responses, Dialect::Chat, Dialect::Anthropic, Dialect::Gemini, Dialect::Ollama];

    /// Returns the dialect of a configured model.
    pub fn of(model: &Model) -> Dialect {
        match model.api {
            Some(ModelApi::Responses) => Dialect::Responses,
            Some(ModelApi::Chat) => Dialect::Chat,
            None => Dialect::choose(model.provider, model.endpoint.is_some(), model.api_version.is_some()),
        }
    }

    /// Returns the name of the dialect.
    pub fn as_str(self) -> &'static str {
        match self {
            Dialect::Responses => "responses",
            Dialect::Chat => "chat",
            Dialect::Anthropic => "anthropic",
            Dialect::Gemini => "gemini",
            Dialect::Ollama => "ollama",
        }
    }

    /// Returns the dialect of a provider. With an `endpoint`, OpenAI's provider means a compatible server; with an
    /// `api_version`, Azure means a deployment. Both speak chat completions.
    pub fn choose(provider: Provider, has_endpoint: bool, has_api_version: bool) -> Dialect {
        match provider {
            Provider::OpenAi if has_endpoint => Dialect::Chat,
            Provider::AzureOpenAi if has_api_version => Dialect::Chat,
            Provider::OpenAi | Provider::AzureOpenAi => Dialect::Responses,
            Provider::Anthropic => Dialect::Anthropic,
            Provider::Gemini => Dialect::Gemini,
            Provider::Ollama => Dialect::Ollama,
        }
    }

    /// Writes the list of tools for requests, in the given order.
    pub fn write_tools(self, tools: &[ToolSpec]) -> ToolList {
        tools::write_tools(self, tools)
    }

    /// Writes the body of a request. The view's tools must be written for the same dialect.
    pub fn write(self, view: &View<'_>, model: &ModelOptions) -> Bytes {
        match self {
            Dialect::Responses => responses::write(view, model),
            Dialect::Chat => chat::write(view, model),
            Dialect::Anthropic => anthropic::write(view, model),
            Dialect::Gemini => gemini::write(view, model),
            Dialect::Ollama => ollama::write(view, model),
        }
    }

    /// Returns how a response is split into events.
    pub fn framing(self) -> Framing {
        match self {
            Dialect::Ollama => Framing::JsonLines,
            _ => Framing::ServerSentEvents,
        }
    }

    /// Returns a reader for the events of one response.
    pub fn reader(self) -> EventReader {
        match self {
            Dialect::Responses => EventReader::Responses(Default::default()),
            Dialect::Chat => EventReader::Chat(Default::default()),
            Dialect::Anthropic => EventReader::Anthropic(Default::default()),
            Dialect::Gemini => EventReader::Gemini(Default::default()),
            Dialect::Ollama => EventReader::Ollama(Default::default()),
        }
    }
}

/// Reader for the events of one response.
#[derive(Debug)]
#[expect(private_interfaces, reason = "the readers are details of their dialects")]
pub enum EventReader {
    /// Reads OpenAI's responses.
    Responses(responses::ResponsesReader),
    /// Reads OpenAI's chat completions.
    Chat(chat::ChatReader),
    /// Reads Anthropic's messages.
    Anthropic(anthropic::AnthropicReader),
    /// Reads Gemini's content.
    Gemini(gemini::GeminiReader),
    /// Reads Ollama's chat.
    Ollama(ollama::OllamaReader),
}

impl EventReader {
    /// Reads one event.
    pub fn read(&mut self, event: &str) -> Result<Vec<Delta>, Trouble> {
        // Gateways add OpenAI's end mark to other dialects too. It does not mean that the answer is complete.
        if event.trim() == "[DONE]" {
            if let EventReader::Chat(reader) = self {
                reader.is_closed = true;
            }
            return Ok(Vec::new());
        }
        match self {
            EventReader::Responses(reader) => reader.read(event),
            EventReader::Chat(reader) => reader.read(event),
            EventReader::Anthropic(reader) => reader.read(event),
            EventReader::Gemini(reader) => reader.read(event),
            EventReader::Ollama(reader) => reader.read(event),
        }
    }

    /// Returns whether the response said that the answer is complete. Its usage may still follow.
    pub fn is_over(&self) -> bool {
        match self {
            EventReader::Responses(reader) => reader.is_over,
            EventReader::Chat(reader) => reader.is_over,
            EventReader::Anthropic(reader) => reader.is_over,
            EventReader::Gemini(reader) => reader.is_over,
            EventReader::Ollama(reader) => reader.is_over,
        }
    }

    /// Returns whether nothing that may follow belongs to the answer.
    pub fn is_closed(&self) -> bool {
        match self {
            EventReader::Chat(reader) => reader.is_closed,
            EventReader::Gemini(_) => false,
            _ => self.is_over(),
        }
    }
}

fn decode<'a, T: Deserialize<'a>>(event: &'a str) -> Result<T, Trouble> {
    serde_json::from_str(event).map_err(Trouble::garbled)
}

fn reported_error(error: &Value) -> Trouble {
    Trouble::Provider(ProviderError::from_event(error))
}

/// Adds a text delta unless it is empty.
fn push_text(out: &mut Vec<Delta>, text: Option<String>, delta: fn(String) -> Delta) {
    out.extend(text.filter(|it| !it.is_empty()).map(delta));
}
