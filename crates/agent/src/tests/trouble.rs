//! Errors of providers, as a status with a body and as an event of a stream.

use super::{check, script::sse};
use crate::{
    dialect::Dialect,
    model::trouble::{ProviderError, ProviderErrorKind::*, Trouble},
};
use serde_json::{Value, json};

#[test]
fn a_prompt_that_is_too_long_is_found_in_the_words_of_each_provider() {
    let openai = json!({ "error": { "code": "context_length_exceeded", "type": "invalid_request_error",
        "message": "This model's maximum context length is 8192 tokens. However, you requested 9000." } });
    let responses = json!({ "error": { "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model." } });
    let anthropic = json!({ "type": "error", "error": { "type": "invalid_request_error",
        "message": "prompt is too long: 210000 tokens > 200000 maximum" } });
    let anthropic_sum = json!({ "type": "error", "error": { "type": "invalid_request_error",
        "message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000" } });
    let gemini = json!({ "error": { "code": 400, "status": "INVALID_ARGUMENT",
        "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)." } });
    let llama = json!({ "error": { "code": 400, "type": "exceed_context_size_error", "n_ctx": 4096,
        "message": "the request exceeds the available context size" } });
    let ollama = json!({ "error": "prompt too long; exceeded max context length by 17 tokens" });
    let rows: [(&Value, Option<u64>); 7] = [
        (&openai, Some(8192)),
        (&responses, None),
        (&anthropic, Some(200_000)),
        (&anthropic_sum, Some(200_000)),
        (&gemini, Some(1_048_576)),
        (&llama, Some(4096)),
        (&ollama, None),
    ];
    for (body, window) in rows {
        let error = ProviderError::from_response(400, body.to_string().as_bytes());
        assert_eq!(error.kind, TooLong { window }, "{body}");
    }
    assert_eq!(ProviderError::from_response(413, b"").kind, TooLong { window: None });
}

#[test]
fn a_refused_tool_is_found_by_its_position() {
    for message in [
        "tools.2.custom.input_schema: JSON schema is invalid",
        "Invalid schema for function 'x': tools[2].function.parameters",
        "* GenerateContentRequest.tools[0].function_declarations[2].parameters: missing field.",
    ] {
        let body = json!({ "error": { "message": message } }).to_string();
        assert_eq!(
            ProviderError::from_response(400, body.as_bytes()).kind,
            ToolRefused { index: 2 },
            "{message}"
        );
    }
    let param =
        json!({ "error": { "message": "Invalid schema", "param": "tools[3].parameters" } }).to_string();
    assert_eq!(ProviderError::from_response(400, param.as_bytes()).kind, ToolRefused { index: 3 });
    assert_eq!(ProviderError::from_response(500, param.as_bytes()).kind, Server);
}

#[test]
fn a_status_decides_retry_breaker_and_type() {
    let rows = [
        (400, BadRequest, false, false, "model_api_error"),
        (401, Unauthorized, false, false, "model_api_error"),
        (403, Unauthorized, false, false, "model_api_error"),
        (404, NotFound, false, false, "model_api_error"),
        (408, Timeout, true, true, "timeout"),
        (413, TooLong { window: None }, false, false, "context_full"),
        (429, RateLimited, true, false, "rate_limited"),
        (500, Server, true, true, "model_api_error"),
        (503, Server, true, true, "model_api_error"),
        (529, Overloaded, true, true, "rate_limited"),
    ];
    for (status, kind, is_retryable, is_failure, error_type) in rows {
        let error = ProviderError::from_response(status, b"<html>sorry\x1b[31m</html>");
        assert_eq!(error.kind, kind, "{status}");
        assert_eq!(error.message, "<html>sorry [31m</html>");
        let trouble = Trouble::from(error);
        assert_eq!(
            (trouble.is_retryable(), trouble.is_breaker_failure()),
            (is_retryable, is_failure),
            "{status}"
        );
        assert_eq!(trouble.error_type(), error_type, "{status}");
    }
    for trouble in
        [Trouble::Cut, Trouble::Empty, Trouble::NotEvents("x".into()), Trouble::Garbled("x".into())]
    {
        assert!(trouble.is_retryable() && trouble.is_breaker_failure(), "{trouble}");
        assert_eq!(trouble.error_type(), "model_protocol_error");
    }
    let too_much = Trouble::TooMuch { what: "tool calls", limit: 64 };
    assert!(!too_much.is_retryable() && too_much.is_breaker_failure());
}

#[test]
fn an_error_event_ends_the_answer() {
    let rows: Vec<(Dialect, Value, &str)> = vec![
        (Dialect::Chat, json!({ "error": { "message": "slow down", "code": 429 } }), "RateLimited"),
        (
            Dialect::Chat,
            json!({ "error": { "message": "slow down", "type": "rate_limit_exceeded" } }),
            "RateLimited",
        ),
        (Dialect::Chat, json!({ "error": { "message": "oops", "code": "502" } }), "Server"),
        (Dialect::Chat, json!({ "error": "oops" }), "Server"),
        (
            Dialect::Anthropic,
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
            "Overloaded",
        ),
        (
            Dialect::Anthropic,
            json!({ "type": "error", "error": { "type": "api_error", "message": "x" } }),
            "Server",
        ),
        (
            Dialect::Responses,
            json!({ "type": "error", "code": "rate_limit_exceeded", "message": "x" }),
            "RateLimited",
        ),
        (
            Dialect::Responses,
            json!({ "type": "error", "error": { "type": "server_error", "message": "x" } }),
            "Server",
        ),
        (
            Dialect::Responses,
            json!({ "type": "response.failed", "response": { "error": { "code": "server_error", "message": "x" } } }),
            "Server",
        ),
        (
            Dialect::Gemini,
            json!({ "error": { "code": 503, "message": "x", "status": "UNAVAILABLE" } }),
            "Server",
        ),
        (
            Dialect::Gemini,
            json!({ "error": { "code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED" } }),
            "RateLimited",
        ),
    ];
    for (dialect, event, expected) in rows {
        check(dialect, "error event", sse(event), expected);
    }
    check(Dialect::Ollama, "error line", "{\"error\":\"model runner stopped\"}\n", "Server");
    check(Dialect::Ollama, "error without line break", "{\"error\":\"model runner stopped\"}", "Server");
}

#[test]
fn a_message_is_shortened() {
    let body = json!({ "error": { "message": "x".repeat(100_000) } }).to_string();
    let error = ProviderError::from_response(500, body.as_bytes());
    assert_eq!(error.message.len(), 500);
    assert!(error.to_string().starts_with("the provider answered 500: xxx"));
}
