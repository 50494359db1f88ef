//! Modes about matching responses to requests, and about messages between them.

use super::{
    Mode,
    Stage::{Call, Cancel, Notify},
    mode,
};
use crate::{asked::text, deed::Deed};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const MODES: &[Mode] = &[
    mode("unknown_id", Call, "answers a request that nobody made", |_, _| {
        vec![Deed::say(answer(&json!(987_654), "astray")), Deed::Hang]
    }),
    mode("duplicate_response", Call, "answers twice", |asked, _| {
        vec![Deed::say(asked.echo()), Deed::say(asked.echo())]
    }),
    mode("id_as_string", Call, "returns the id as a string", |asked, _| {
        let result = json!({ "jsonrpc": "2.0", "id": asked.id().to_string(), "result": text(asked.nonce()) });
        vec![Deed::say(result.to_string())]
    }),
    mode("presend_ids", Call, "answers requests before they are made", |asked, _| {
        let id = asked.id().as_u64().unwrap_or_default();
        let forged = (1..=5).map(|next| Deed::say(answer(&json!(id + next), "forged")));
        forged.chain([Deed::say(asked.echo())]).collect()
    }),
    mode("null_id_error", Call, "answers with an error for nobody", |_, _| {
        let error = json!({ "code": -32700, "message": "parse error" });
        vec![Deed::say(json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string()), Deed::Hang]
    }),
    mode("late_after_timeout", Call, "answers when nobody waits any more", |asked, _| {
        vec![Deed::Wait(asked.orders.delay), Deed::say(asked.echo()), Deed::Hang]
    }),
    mode("silent", Call, "never answers", |_, _| vec![Deed::Hang]),
    mode(
        "reply_after_cancel",
        Cancel,
        "answers a request once it hears that nobody waits for it",
        |asked, _| vec![Deed::say(answer(&asked.message["params"]["requestId"], "too late"))],
    ),
    mode("progress_forever", Call, "reports progress and never comes to an end", |asked, _| {
        let token = asked.message["params"]["_meta"]["progressToken"].clone();
        let progress = json!({ "progressToken": token, "progress": 1, "total": 100 });
        let note = notification("notifications/progress", progress);
        vec![Deed::Repeat(Box::new(Deed::say(note)), 10_000, Duration::from_millis(50)), Deed::Hang]
    }),
    mode("stops_reading", Call, "reads nothing more, and says nothing", |_, _| vec![Deed::Freeze]),
    mode("notif_flood_then_reply", Call, "says thousands of things before it answers", |asked, _| {
        let note = notification("notifications/message", json!({ "level": "info", "data": "x".repeat(64) }));
        vec![
            Deed::Repeat(Box::new(Deed::say(note)), asked.orders.size, Duration::ZERO),
            Deed::say(asked.echo()),
        ]
    }),
    mode("server_request_flood", Call, "asks thousands of things before it answers", |asked, _| {
        let params = json!({ "messages": [], "maxTokens": 1 });
        let ask =
            json!({ "jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": params });
        let flood = Deed::Repeat(Box::new(Deed::say(ask.to_string())), asked.orders.size, Duration::ZERO);
        vec![flood, Deed::say(asked.echo())]
    }),
    mode("unknown_notifications", Call, "says things that no protocol knows", |asked, _| {
        let note = notification("notifications/weather", json!({ "rain": true }));
        vec![Deed::say(note), Deed::say(asked.echo())]
    }),
    mode("method_number", Call, "says something whose method is a number", |asked, _| {
        vec![Deed::say(r#"{"jsonrpc":"2.0","method":5}"#), Deed::say(asked.echo())]
    }),
    mode("list_changed_storm", Notify, "says ten thousand times that its tools have changed", |asked, _| {
        let note = notification("notifications/tools/list_changed", json!({}));
        vec![Deed::Repeat(Box::new(Deed::say(note)), asked.orders.size, Duration::ZERO)]
    }),
];

fn answer(id: &Value, said: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": text(said) }).to_string()
}

pub(super) fn notification(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}
