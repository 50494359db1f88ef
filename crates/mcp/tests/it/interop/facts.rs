//! Expected lists and results of both servers, as JSON, and the state that they keep at run time.

use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::broadcast;

/// Number of progress notifications that the tool `steps` sends.
pub(crate) const STEPS: u32 = 100;

/// Tools with constant results.
const PLAIN: [&str; 4] = ["text", "structured", "failing", "big"];

/// Tools with behaviour: send progress, ask the user, never finish, count cancelled calls, announce a change.
const BUSY: [&str; 5] = ["steps", "ask", "slow", "cancelled", "change"];

pub(crate) fn capabilities() -> Value {
    json!({ "tools": { "listChanged": true }, "prompts": {}, "resources": {} })
}

pub(crate) fn tools() -> Value {
    let tool = |name: &&str| json!({ "name": name, "description": "shows something", "inputSchema": { "type": "object" } });
    json!({ "tools": PLAIN.iter().chain(&BUSY).map(tool).collect::<Vec<_>>() })
}

pub(crate) fn prompts() -> Value {
    json!({ "prompts": [{ "name": "greet", "arguments": [{ "name": "whom", "required": true }] }] })
}

pub(crate) fn prompt(whom: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": format!("hello, {whom}") } }] })
}

pub(crate) fn resources() -> Value {
    json!({ "resources": [{ "uri": "mem://one", "name": "one", "mimeType": "text/plain" }] })
}

pub(crate) fn contents(uri: &str) -> Value {
    json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": "eins\nzwei" }] })
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Returns the result of a plain tool; `None` for other tools.
pub(crate) fn result(tool: &str) -> Option<Value> {
    Some(match tool {
        "text" => text("déjà vu\n\u{2028}\"quoted\""),
        "structured" => json!({
            "content": [{ "type": "text", "text": "{\"sum\":3}" }],
            "structuredContent": { "sum": 3, "parts": [1, 2], "big": 9_007_199_254_740_993_u64 },
        }),
        "failing" => json!({ "content": [{ "type": "text", "text": "no such city" }], "isError": true }),
        "big" => text(&"x".repeat(1 << 20)),
        _ => return None,
    })
}

/// Returns every plain tool with its result.
pub(crate) fn results() -> impl Iterator<Item = (&'static str, Value)> {
    PLAIN.into_iter().filter_map(|tool| Some((tool, result(tool)?)))
}

/// Returns the params of the `elicitation/create` request that the server sends.
pub(crate) fn question() -> Value {
    json!({
        "mode": "form",
        "message": "who are you?",
        "requestedSchema": {
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        },
    })
}

/// Returns the params of the `sampling/createMessage` request that the server sends.
pub(crate) fn prompt_for_model() -> Value {
    json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": "the capital of France?" } }],
        "maxTokens": 10,
    })
}

/// Returns the user's answer to the elicitation.
pub(crate) fn user_says() -> Value {
    json!({ "action": "accept", "content": { "name": "Ferris" } })
}

/// Returns the model's answer to the sampling request.
pub(crate) fn model_says() -> Value {
    json!({ "model": "parrot", "role": "assistant", "content": { "type": "text", "text": "Paris" } })
}

/// Returns the result of `ask` after both answers.
pub(crate) fn ask_result(user: &Value, model: &Value) -> Value {
    text(&format!("{} says {}", user["content"]["name"], model["content"]["text"]))
}

/// Panics unless `got` contains everything in `expected`; it may contain more.
pub(crate) fn assert_holds(got: &Value, expected: &Value, what: &str) {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => {
            for (name, value) in expected {
                assert_holds(got.get(name).unwrap_or(&Value::Null), value, &format!("{what}.{name}"));
            }
        }
        (Value::Array(got), Value::Array(expected)) => {
            assert_eq!(got.len(), expected.len(), "{what}");
            for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
                assert_holds(got, expected, &format!("{what}[{at}]"));
            }
        }
        (got, expected) => assert!(got == expected, "{what}: {got:.100} is not {expected:.100}"),
    }
}

/// State that a server shares across requests and sessions.
#[derive(Clone, Debug)]
pub(crate) struct World {
    cancelled: Arc<AtomicUsize>,
    pub(crate) changes: broadcast::Sender<()>,
}

impl World {
    pub(crate) fn new() -> World {
        World { cancelled: Arc::default(), changes: broadcast::channel(16).0 }
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns a guard that counts a cancelled call when dropped.
    pub(crate) fn count_cancelled(&self) -> impl Drop + Send + use<> {
        struct Count(Arc<AtomicUsize>);
        impl Drop for Count {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        Count(self.cancelled.clone())
    }

    pub(crate) fn change(&self) {
        // Having no listeners is fine.
        let _ = self.changes.send(());
    }
}
