//! Reads the providers' error objects, in a response with an error status or in an event of a stream.

use serde_json::Value;
use std::time::Duration;

/// Maximum length of a provider's message, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// Words of the providers for a prompt that exceeds the context window, in lower case.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "exceeds the context window",
    "available context size",
    "prompt is too long",
    "exceed context limit",
    "input token count",
    "exceeds the context length",
    "exceeded max context length",
    "request_too_large",
];

/// Words that precede the size of the context window in those messages.
const BEFORE_WINDOW: &[&str] = &[
    "maximum context length is ",
    "tokens allowed (",
    "tokens > ",
    "> ",
    "available context size (",
    "\"n_ctx\":",
];

/// Error that a provider reported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.describe())]
pub struct ProviderError {
    /// Meaning of the error for the caller.
    pub kind: ProviderErrorKind,
    /// HTTP status of the response, or the status that the event names.
    pub status: Option<u16>,
    /// The provider's message, shortened and without control characters.
    pub message: String,
    /// Time after which the provider allows another request, if it said so.
    pub retry_after: Option<Duration>,
    /// Advice for this provider and its key, if there is any.
    pub hint: Option<String>,
}

/// Meaning of a provider's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// The provider limits the rate of requests (429).
    RateLimited,
    /// The provider has no capacity (529).
    Overloaded,
    /// The provider failed (5xx).
    Server,
    /// The provider timed out (408, 504).
    Timeout,
    /// The prompt exceeds the context window, whose size the provider may have named.
    TooLong {
        /// Size of the context window, in tokens.
        window: Option<u64>,
    },
    /// The provider refuses one tool of the request.
    ToolRefused {
        /// Position of the tool in the request, from 0.
        index: usize,
    },
    /// The key is missing, wrong, or not allowed to use the model (401, 403).
    Unauthorized,
    /// The model or the address does not exist (404).
    NotFound,
    /// The provider refuses the request for another reason.
    BadRequest,
}

impl ProviderErrorKind {
    pub(super) fn is_retryable(&self) -> bool {
        use ProviderErrorKind::*;
        matches!(self, RateLimited | Overloaded | Server | Timeout)
    }

    pub(super) fn is_breaker_failure(&self) -> bool {
        use ProviderErrorKind::*;
        matches!(self, Overloaded | Server | Timeout)
    }

    pub(super) fn error_type(&self) -> &'static str {
        match self {
            ProviderErrorKind::RateLimited | ProviderErrorKind::Overloaded => "rate_limited",
            ProviderErrorKind::Timeout => "timeout",
            ProviderErrorKind::TooLong { .. } => "context_full",
            _ => "model_api_error",
        }
    }
}

impl ProviderError {
    /// Reads the body of a response with an error status. A body that is not JSON becomes the message.
    pub fn from_response(status: u16, body: &[u8]) -> ProviderError {
        let value = serde_json::from_slice(body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
        ProviderError::read(Some(status), &value)
    }

    /// Reads an error object that a stream contains.
    pub(crate) fn from_event(value: &Value) -> ProviderError {
        ProviderError::read(None, value)
    }

    fn read(status: Option<u16>, value: &Value) -> ProviderError {
        // Gemini wraps errors of a stream in an array.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").filter(|it| !it.is_null()).unwrap_or(value);
        let status = status.or_else(|| status_of(error));
        let message =
            error.as_str().or_else(|| error["message"].as_str()).or_else(|| error["detail"].as_str());
        let message = message.map_or_else(|| error.to_string(), str::to_owned);
        let words = ["type", "code", "status", "param"].map(|key| error[key].as_str().unwrap_or_default());
        let kind = classify(status, &words, &message, error);
        ProviderError { kind, status, message: shorten(&message), retry_after: None, hint: None }
    }

    /// Creates the error for a request that is not made, because the provider asked to wait.
    pub(crate) fn hold_off(retry_after: Duration) -> ProviderError {
        ProviderError {
            kind: ProviderErrorKind::RateLimited,
            status: Some(429),
            message: "the rate limit of an earlier request still holds".to_owned(),
            retry_after: Some(retry_after),
            hint: None,
        }
    }

    /// Sets the time after which the provider allows another request.
    #[must_use]
    pub(crate) fn with_retry_after(self, retry_after: Option<Duration>) -> ProviderError {
        ProviderError { retry_after, ..self }
    }

    fn describe(&self) -> String {
        let wait = self.retry_after.map_or_else(String::new, |it| {
            format!("; the server asked to retry after {} s", it.as_secs_f64().ceil())
        });
        match self.status {
            Some(status) => format!("the provider answered {status}: {}{wait}", self.message),
            None => format!("the provider reported an error: {}{wait}", self.message),
        }
    }
}

fn status_of(error: &Value) -> Option<u16> {
    let number = error["code"].as_u64().or_else(|| error["code"].as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

fn classify(status: Option<u16>, words: &[&str], message: &str, error: &Value) -> ProviderErrorKind {
    let all = format!("{} {message}", words.join(" ")).to_lowercase();
    if status == Some(413) || TOO_LONG.iter().any(|known| all.contains(known)) {
        let window = error["n_ctx"].as_u64().or_else(|| number_after(&all, BEFORE_WINDOW));
        return ProviderErrorKind::TooLong { window };
    }
    let refused = number_after(&all, &["function_declarations[", "tools.", "tools["]);
    if let (None | Some(400 | 422), Some(index)) = (status, refused) {
        return ProviderErrorKind::ToolRefused { index: usize::try_from(index).unwrap_or(usize::MAX) };
    }
    match status {
        Some(401 | 403) => ProviderErrorKind::Unauthorized,
        Some(404) => ProviderErrorKind::NotFound,
        Some(408 | 504) => ProviderErrorKind::Timeout,
        Some(429) => ProviderErrorKind::RateLimited,
        Some(529) => ProviderErrorKind::Overloaded,
        Some(500..) => ProviderErrorKind::Server,
        Some(_) => ProviderErrorKind::BadRequest,
        None => classify_words(&words.join(" ").to_lowercase()),
    }
}

/// Classifies an error event, which has no status. An unknown event means that the provider failed, because it had
/// accepted the request.
fn classify_words(words: &str) -> ProviderErrorKind {
    let has = |known: &[&str]| known.iter().any(|word| words.contains(word));
    if has(&["rate_limit", "resource_exhausted", "quota"]) {
        ProviderErrorKind::RateLimited
    } else if has(&["overloaded"]) {
        ProviderErrorKind::Overloaded
    } else if has(&["timeout", "deadline_exceeded"]) {
        ProviderErrorKind::Timeout
    } else if has(&["authentication", "permission", "invalid_api_key"]) {
        ProviderErrorKind::Unauthorized
    } else if has(&["not_found"]) {
        ProviderErrorKind::NotFound
    } else if has(&["invalid_request", "invalid_argument", "invalid_prompt"]) {
        ProviderErrorKind::BadRequest
    } else {
        ProviderErrorKind::Server
    }
}

/// Returns the number after the first of `prefixes` that precedes one.
fn number_after(text: &str, prefixes: &[&str]) -> Option<u64> {
    prefixes.iter().find_map(|prefix| {
        let rest = &text[text.find(prefix)? + prefix.len()..];
        let digits = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    })
}

/// Returns the beginning of a foreign text without control characters.
fn shorten(text: &str) -> String {
    let clean = text.chars().map(|it| if it.is_control() { ' ' } else { it });
    clean.take(MAX_MESSAGE_CHARS).collect()
}
