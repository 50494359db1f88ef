//! Errors of a question to a model, and how the caller reacts to each: retry, breaker and reported type.

mod provider_error;

pub use provider_error::{ProviderError, ProviderErrorKind};

use std::fmt::Display;

/// Error of one question to a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The stream ended before the answer did.
    #[error("the stream ended before the answer was complete")]
    Cut,
    /// The answer is complete but has neither text nor tool calls.
    #[error("the model returned an empty answer")]
    Empty,
    /// The response is a success but not an event stream. Contains its beginning.
    #[error("the response is not an event stream; it begins with `{0}`")]
    NotEvents(String),
    /// An event cannot be decoded.
    #[error("the answer cannot be decoded: {0}")]
    Garbled(String),
    /// The answer exceeds a limit.
    #[error("the answer exceeds the limit of {limit} {what}")]
    TooMuch {
        /// Unit of the limit.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The provider reported an error, as a status or as an event.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl Trouble {
    pub(crate) fn garbled(why: impl Display) -> Trouble {
        Trouble::Garbled(why.to_string())
    }

    /// Returns whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Trouble::Cut | Trouble::Empty | Trouble::NotEvents(_) | Trouble::Garbled(_) => true,
            Trouble::TooMuch { .. } => false,
            Trouble::Provider(error) => error.kind.is_retryable(),
        }
    }

    /// Returns whether the model's circuit breaker counts this as a failure.
    pub fn is_breaker_failure(&self) -> bool {
        match self {
            Trouble::Provider(error) => error.kind.is_breaker_failure(),
            _ => true,
        }
    }

    /// Returns the `error_type` that clients receive.
    pub fn error_type(&self) -> &'static str {
        match self {
            Trouble::Provider(error) => error.kind.error_type(),
            _ => "model_protocol_error",
        }
    }
}
