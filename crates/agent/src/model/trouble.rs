//! Errors of a question to a model, and how the caller reacts to each: retry, breaker and reported type.

mod provider_error;

pub use provider_error::{ProviderError, ProviderErrorKind};

use std::{fmt::Display, time::Duration};

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
    /// The server cannot be reached.
    #[error("the model's server cannot be reached: {0}")]
    Connect(String),
    /// No byte of the answer arrived in time.
    #[error("no answer began within {} s", .0.as_secs_f64())]
    NoFirstByte(Duration),
    /// The answer began, but nothing more arrived in time.
    #[error("the answer stopped for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The circuit breaker of the model is open.
    #[error("the circuit breaker for the model is open; next try in {} s", .retry_after.as_secs_f64().ceil())]
    Unavailable {
        /// Time until the next try.
        retry_after: Duration,
    },
    /// The recording that answers in place of the provider has no such question.
    #[error("{0}")]
    NotRecorded(String),
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
            Trouble::Connect(_) | Trouble::NoFirstByte(_) | Trouble::Silent(_) => true,
            Trouble::TooMuch { .. } | Trouble::Unavailable { .. } | Trouble::NotRecorded(_) => false,
            Trouble::Provider(error) => error.kind.is_retryable(),
        }
    }

    /// Returns whether the model's circuit breaker counts this as a failure.
    pub fn is_breaker_failure(&self) -> bool {
        match self {
            Trouble::Provider(error) => error.kind.is_breaker_failure(),
            Trouble::Unavailable { .. } | Trouble::NotRecorded(_) => false,
            _ => true,
        }
    }

    /// Returns the `error_type` that clients receive.
    pub fn error_type(&self) -> &'static str {
        match self {
            Trouble::Provider(error) => error.kind.error_type(),
            Trouble::Connect(_) => "model_api_error",
            Trouble::NoFirstByte(_) | Trouble::Silent(_) => "timeout",
            Trouble::Unavailable { .. } => "model_unavailable",
            Trouble::NotRecorded(_) => "not_recorded",
            _ => "model_protocol_error",
        }
    }

    /// Returns whether the provider limits the rate of requests.
    pub fn is_rate_limit(&self) -> bool {
        matches!(self, Trouble::Provider(ProviderError { kind: ProviderErrorKind::RateLimited, .. }))
    }

    /// Returns the time after which the provider or the breaker allows another request, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Trouble::Provider(error) => error.retry_after,
            Trouble::Unavailable { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    /// Returns advice, if there is any.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Trouble::Connect(_) => "check 'model.endpoint', and that the server runs",
            Trouble::NoFirstByte(_) => "raise 'model.timeout' if the model needs longer to begin",
            Trouble::Silent(_) => "raise 'model.idle_timeout' if the model pauses longer",
            Trouble::NotRecorded(_) => "record again with --record",
            Trouble::NotEvents(_) => "check 'model.endpoint'; it may be the address of a web page",
            Trouble::Provider(ProviderError { hint: Some(hint), .. }) => hint,
            Trouble::Provider(error) => match error.kind {
                ProviderErrorKind::Unauthorized => "check the key and whether it may use this model",
                ProviderErrorKind::NotFound => "check 'model.name' and 'model.endpoint'",
                _ => return None,
            },
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
