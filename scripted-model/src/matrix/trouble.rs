//! Errors of a provider, as a status and as an event, and answers that it withholds.

use super::{
    BAD_REQUEST, CONTEXT_FULL, FINISHED, LIMIT, MatrixRow, NO_ACCESS, OVERLOADED, RATE_LIMITED, REFUSED,
    SERVER, SILENT, SSE, TEXT, TOOL_REFUSED, UNREACHABLE,
    edit::{done, ended},
    row,
};
use crate::{Finish, Reply, Step, Wire, render, sse, text};
use serde_json::{Value, json};

pub(super) const ROWS: &[MatrixRow] = &[
    row("trouble", "too long", too_long, "TooLong", "context", CONTEXT_FULL),
    row("trouble", "connection refused", |_| Vec::new(), "Connect", FAILED, UNREACHABLE),
    row("trouble", "400", |_| vec![error(400)], "BadRequest", "", BAD_REQUEST),
    row("trouble", "401", |_| vec![error(401)], "Unauthorized", "", NO_ACCESS),
    row("trouble", "403", |_| vec![error(403)], "Unauthorized", "", NO_ACCESS),
    row("trouble", "404", |_| vec![error(404)], "NotFound", "", NO_ACCESS),
    row("trouble", "408", |_| vec![error(408)], "Timeout", "error:timeout*3", SILENT),
    row("trouble", "413", |_| vec![error(413)], "TooLong", "context", CONTEXT_FULL),
    row(
        "trouble",
        "a tool refused once",
        refused_once,
        "ToolRefused",
        "context response_delta usage",
        FINISHED,
    ),
    row(
        "trouble",
        "tools refused always",
        |_| vec![tool_refused()],
        "ToolRefused",
        "context*5",
        TOOL_REFUSED,
    ),
    row("trouble", "429 with Retry-After", |_| vec![soon(429)], "RateLimited", LIMITED, RATE_LIMITED),
    row("trouble", "429 without Retry-After", |_| vec![error(429)], "RateLimited", LIMITED, RATE_LIMITED),
    row("trouble", "429 with a long Retry-After", |_| vec![later()], "RateLimited", "", RATE_LIMITED),
    row("trouble", "429 once", |it| vec![soon(429), done(it)], "RateLimited", LIMITED_ONCE, FINISHED),
    row("trouble", "500 once", |it| vec![soon(500), done(it)], "Server", FAILED_ONCE, FINISHED),
    row("trouble", "500 always", |_| vec![soon(500)], "Server", FAILED, SERVER),
    row("trouble", "529 storm", |_| vec![soon(529)], "Overloaded", LIMITED, OVERLOADED),
    row("trouble", "error event", |it| vec![event(it, "server_error")], "Server", FAILED, SERVER),
    row("trouble", "error event after text", event_after_text, "Server", FAILED_TEXT, SERVER),
    row(
        "trouble",
        "rate limit event",
        |it| vec![event(it, "rate_limit_error")],
        "RateLimited",
        LIMITED,
        RATE_LIMITED,
    )
    .only(SSE),
    row(
        "trouble",
        "overload event",
        |it| vec![event(it, "overloaded_error")],
        "Overloaded",
        LIMITED,
        OVERLOADED,
    )
    .only(SSE),
    row("trouble", "filter", |it| withheld(it, Finish::Filtered), "Filtered", TEXT, REFUSED).only(FILTERING),
    row("trouble", "refusal", refusal, "Refused", TEXT, REFUSED).only(REFUSING),
    row("trouble", "blocked prompt", blocked, "Filtered", "usage", REFUSED).only(FILTERING),
    row("trouble", "length", |it| withheld(it, Finish::Length), "Length", TEXT, LIMIT),
];

const LIMITED: &str = "error:rate_limited*3";
const LIMITED_ONCE: &str = "error:rate_limited response_delta usage";
const FAILED: &str = "error:model_api_error*3";
const FAILED_ONCE: &str = "error:model_api_error response_delta usage";
const FAILED_TEXT: &str = "(response_delta reset error:model_api_error)*3 response_delta reset";

/// Wire formats with a word for a filter.
const FILTERING: &[Wire] = &[Wire::Responses, Wire::Chat, Wire::Gemini];
/// Wire formats with a word for a refusal.
const REFUSING: &[Wire] = &[Wire::Responses, Wire::Chat, Wire::Anthropic];

fn error(status: u16) -> Reply {
    Reply::error(status, &json!({ "error": { "message": "no" } }))
}

fn soon(status: u16) -> Reply {
    error(status).header("retry-after-ms", "1")
}

fn later() -> Reply {
    error(429).header("retry-after", "61")
}

fn tool_refused() -> Reply {
    Reply::error(400, &json!({ "error": { "message": "tools.0: no" } }))
}

fn refused_once(wire: Wire) -> Vec<Reply> {
    vec![tool_refused(), done(wire)]
}

/// A prompt that is too long, in the words of each provider.
fn too_long(wire: Wire) -> Vec<Reply> {
    let error = match wire {
        Wire::Responses => json!({ "code": "context_length_exceeded",
            "message": "Your input exceeds the context window of this model." }),
        Wire::Chat => json!({ "code": "context_length_exceeded", "type": "invalid_request_error",
            "message": "This model's maximum context length is 8 tokens. However, you requested 9." }),
        Wire::Anthropic => json!({ "type": "invalid_request_error",
            "message": "prompt is too long: 9 tokens > 8 maximum" }),
        Wire::Gemini => json!({ "code": 400, "status": "INVALID_ARGUMENT",
            "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)." }),
        Wire::Ollama => Value::from("prompt too long; exceeded max context length by 17 tokens"),
    };
    vec![Reply::error(400, &json!({ "error": error }))]
}

fn event(wire: Wire, kind: &str) -> Reply {
    let error = json!({ "message": "x", "type": kind });
    Reply::stream(match wire {
        Wire::Anthropic | Wire::Responses => sse(json!({ "type": "error", "error": error })),
        Wire::Chat | Wire::Gemini => sse(json!({ "error": error })),
        Wire::Ollama => "{\"error\":\"stopped\"}\n".to_owned(),
    })
}

fn event_after_text(wire: Wire) -> Vec<Reply> {
    let event = event(wire, "server_error");
    let begun = Reply::stream(render(wire, &[text("lost")]));
    vec![Reply { actions: [begun.actions, event.actions].concat(), ..begun }]
}

fn withheld(wire: Wire, finish: Finish) -> Vec<Reply> {
    vec![Reply::stream(ended(wire, &[text("Half")], finish))]
}

fn refusal(wire: Wire) -> Vec<Reply> {
    if wire != Wire::Responses {
        return withheld(wire, Finish::Refused);
    }
    let refused = sse(json!({ "type": "response.refusal.delta", "delta": "I cannot." }));
    vec![Reply::stream(refused + &render(wire, &[Step::End(Finish::Stop)]))]
}

fn blocked(wire: Wire) -> Vec<Reply> {
    let feedback = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } });
    vec![match wire {
        Wire::Gemini => Reply::stream(sse(feedback) + &render(wire, &[Step::Usage])),
        _ => Reply::stream(ended(wire, &[], Finish::Filtered)),
    }]
}
