//! Modes about matching responses to requests, and about messages between them.

use super::{
    Mode,
    Stage::{Call, Cancel, Notify},
    mode,
};
use crate::{action::Action, received::text};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const MODES: &[Mode] = &[
    mode("unknown_id", Call, "answers with an unknown id", |_, _| {
        vec![Action::send(answer(&json!(987_654), "astray")), Action::Hang]
    }),
    mode("duplicate_response", Call, "answers twice", |received, _| {
        vec![Action::send(received.echo()), Action::send(received.echo())]
    }),
    mode("id_as_string", Call, "returns the id as a string", |received, _| {
        let result =
            json!({ "jsonrpc": "2.0", "id": received.id().to_string(), "result": text(received.nonce()) });
        vec![Action::send(result.to_string())]
    }),
    mode("presend_ids", Call, "answers requests before they are made", |received, _| {
        let id = received.id().as_u64().unwrap_or_default();
        let forged = (1..=5).map(|next| Action::send(answer(&json!(id + next), "forged")));
        forged.chain([Action::send(received.echo())]).collect()
    }),
    mode("null_id_error", Call, "answers with an error without an id", |_, _| {
        let error = json!({ "code": -32700, "message": "parse error" });
        vec![Action::send(json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string()), Action::Hang]
    }),
    mode("late_after_timeout", Call, "answers after the timeout", |received, _| {
        vec![Action::Wait(received.options.delay), Action::send(received.echo()), Action::Hang]
    }),
    mode("silent", Call, "never answers", |_, _| vec![Action::Hang]),
    mode("reply_after_cancel", Cancel, "answers a request after it was cancelled", |received, _| {
        vec![Action::send(answer(&received.message["params"]["requestId"], "too late"))]
    }),
    mode("progress_forever", Call, "reports progress and never comes to an end", |received, _| {
        let token = received.message["params"]["_meta"]["progressToken"].clone();
        let progress = json!({ "progressToken": token, "progress": 1, "total": 100 });
        let note = notification("notifications/progress", progress);
        vec![Action::Repeat(Box::new(Action::send(note)), 10_000, Duration::from_millis(50)), Action::Hang]
    }),
    mode("stops_reading", Call, "reads nothing more, and says nothing", |_, _| vec![Action::Freeze]),
    mode("notif_flood_then_reply", Call, "says thousands of things before it answers", |received, _| {
        let note = notification("notifications/message", json!({ "level": "info", "data": "x".repeat(64) }));
        vec![
            Action::Repeat(Box::new(Action::send(note)), received.options.size, Duration::ZERO),
            Action::send(received.echo()),
        ]
    }),
    mode("server_request_flood", Call, "asks thousands of things before it answers", |received, _| {
        let params = json!({ "messages": [], "maxTokens": 1 });
        let ask =
            json!({ "jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": params });
        let flood =
            Action::Repeat(Box::new(Action::send(ask.to_string())), received.options.size, Duration::ZERO);
        vec![flood, Action::send(received.echo())]
    }),
    mode("unknown_notifications", Call, "says things that no protocol knows", |received, _| {
        let note = notification("notifications/weather", json!({ "rain": true }));
        vec![Action::send(note), Action::send(received.echo())]
    }),
    mode("method_number", Call, "says something whose method is a number", |received, _| {
        vec![Action::send(r#"{"jsonrpc":"2.0","method":5}"#), Action::send(received.echo())]
    }),
    mode(
        "list_changed_storm",
        Notify,
        "says ten thousand times that its tools have changed",
        |received, _| {
            let note = notification("notifications/tools/list_changed", json!({}));
            vec![Action::Repeat(Box::new(Action::send(note)), received.options.size, Duration::ZERO)]
        },
    ),
];

fn answer(id: &Value, said: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": text(said) }).to_string()
}

pub(super) fn notification(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}
