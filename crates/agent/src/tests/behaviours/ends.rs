//! How a stream ends, and what is sent in place of an answer.

use super::{Behaviour, EVENTS};
use crate::dialect::Dialect;
use scripted_model::{Finish::*, Step, call, chat_delta, chat_end, sse, text};
use serde_json::{Value, json};

const RETRIED: &str = "takes shown text back and asks again, up to 3 times; makes no call";

pub(super) fn all() -> Vec<Behaviour> {
    [cuts(), no_answers(), errors(), sizes()].into_iter().flatten().collect()
}

fn cuts() -> Vec<Behaviour> {
    let row = |name, reaction| Behaviour::new("end", name, reaction);
    let every = &Dialect::ALL;
    let unfinished = [text("a"), call("x", "f", r#"{"a":"b"}"#)];
    let finished = [text("a"), Step::End(Stop)];
    let done = chat_delta(json!({ "content": "a" })) + &chat_end("stop");
    vec![
        row("`[DONE]` is missing", "reads the answer: its finish reason is the end").sends(
            Dialect::Chat,
            done,
            r#""a" Stop"#,
        ),
        row("`[DONE]` comes without a finish reason", RETRIED).changes(
            &EVENTS,
            &unfinished,
            |_, it| it + "data: [DONE]\n\n",
            "Cut",
        ),
        row("`[DONE]` is all there is", RETRIED).changes(
            &EVENTS,
            &[],
            |_, _| "data: [DONE]\n\n".into(),
            "Cut",
        ),
        row("the stream ends after text", RETRIED).says(every, &[text("a")], "Cut"),
        row("the stream ends after a whole call", RETRIED).says(every, &unfinished, "Cut"),
        row("the stream ends inside a call", RETRIED).changes(
            every,
            &unfinished,
            |_, it| it[..it.len() - 20].to_owned(),
            "Cut",
        ),
        row("the stream ends inside its first event", RETRIED).changes(
            every,
            &unfinished,
            |_, it| it[..12].to_owned(),
            "Cut",
        ),
        row("the stream is empty", RETRIED).changes(every, &[], |_, _| String::new(), "Cut"),
        row("an event is cut after the end of the answer", "reads the answer").changes(
            every,
            &finished,
            |_, it| it + "data: {\"cho",
            r#""a" Stop"#,
        ),
    ]
}

fn no_answers() -> Vec<Behaviour> {
    let row = |name| Behaviour::new("end", name, RETRIED);
    let every = &Dialect::ALL;
    let body = "{\n  \"id\": \"x\",\n  \"choices\": []\n}";
    vec![
        row("the list of choices is empty").sends(Dialect::Chat, sse(json!({ "choices": [] })), "Cut"),
        row("an answer has neither text nor calls").says(every, &[Step::End(Stop)], "Empty"),
        row("an answer is only thinking").says(every, &[Step::Think("Hm.".into()), Step::End(Stop)], "Empty"),
        row("a page of HTML is sent with status 200").changes(
            every,
            &[],
            |_, _| "<html>Sign in</html>".into(),
            r#"NotEvents("<html>Sign in</html>")"#,
        ),
        row("one JSON document is sent in place of a stream").changes(
            &EVENTS,
            &[],
            |_, _| body.into(),
            r#"NotEvents("{   \"id\": \"x\",   \"choices\": [] }")"#,
        ),
    ]
}

fn errors() -> Vec<Behaviour> {
    let row = |name, reaction| Behaviour::new("error", name, reaction);
    let event = |event: Value| render_start() + &sse(event);
    let later = "waits and asks again; the circuit breaker does not count it";
    let counted = "asks again; the circuit breaker counts it";
    let blocked = sse(json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } }));
    let refused = "keeps the text and ends the run as `refused`";
    vec![
        row("a rate limit is an event of the stream", later)
            .sends(Dialect::Chat, event(json!({ "error": { "message": "x", "code": 429 } })), "RateLimited")
            .sends(
                Dialect::Responses,
                sse(json!({ "type": "error", "code": "rate_limit_exceeded", "message": "x" })),
                "RateLimited",
            )
            .sends(
                Dialect::Gemini,
                sse(json!({ "error": { "code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED" } })),
                "RateLimited",
            ),
        row("an error is an event of the stream", counted)
            .sends(Dialect::Chat, event(json!({ "error": { "message": "x", "code": "502" } })), "Server")
            .sends(
                Dialect::Responses,
                sse(json!({ "type": "response.failed",
                    "response": { "error": { "code": "server_error", "message": "x" } } })),
                "Server",
            )
            .sends(
                Dialect::Anthropic,
                sse(json!({ "type": "error", "error": { "type": "api_error", "message": "x" } })),
                "Server",
            )
            .sends(
                Dialect::Gemini,
                sse(json!({ "error": { "code": 503, "message": "x", "status": "UNAVAILABLE" } })),
                "Server",
            )
            .sends(Dialect::Ollama, "{\"error\":\"model runner stopped\"}\n", "Server"),
        row("an overload is an event of the stream", counted).sends(
            Dialect::Anthropic,
            sse(json!({ "type": "error", "error": { "type": "overloaded_error", "message": "x" } })),
            "Overloaded",
        ),
        row("a finish reason is `error`", counted).sends(
            Dialect::Chat,
            chat_delta(json!({ "content": "a" })) + &chat_end("error"),
            "Server",
        ),
        row("the model refuses", refused)
            .says(&[Dialect::Anthropic], &[text("No"), Step::End(Refused)], r#""No" Refused"#)
            .sends(
                Dialect::Chat,
                chat_delta(json!({ "refusal": "No" })) + &chat_end("stop"),
                r#""No" Refused"#,
            ),
        row("the prompt is blocked", refused).sends(Dialect::Gemini, blocked, "Filtered"),
    ]
}

/// Text before an error.
fn render_start() -> String {
    chat_delta(json!({ "content": "a" }))
}

fn sizes() -> Vec<Behaviour> {
    let row = |name, reaction| Behaviour::new("size", name, reaction);
    let every = &Dialect::ALL;
    let ended = "ends the run with `model_protocol_error`, in bounded memory";
    let prefix = |dialect| if dialect == Dialect::Ollama { "{\"x\":\"" } else { "data: {\"x\":\"" };
    let garbled = every.iter().fold(row("bytes are not UTF-8", RETRIED), |it, dialect| {
        it.sends(*dialect, [prefix(*dialect).as_bytes(), b"\xff\"}\n\n"].concat(), "Garbled")
    });
    vec![
        row("an event does not end", ended).changes(
            every,
            &[],
            |dialect, _| prefix(dialect).to_owned() + &"x".repeat(9 << 20),
            r#"TooMuch { what: "bytes in one event", limit: 8388608 }"#,
        ),
        garbled,
        row("an event is not JSON", RETRIED).changes(
            every,
            &[text("a")],
            |dialect, it| it + prefix(dialect) + "}\n\n",
            "Garbled",
        ),
    ]
}
