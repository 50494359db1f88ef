//! Harmless modes with more work than usual: many tools, slow tools, tools with many notifications. The matrix has
//! no rows for them.

use super::{
    Mode,
    Stage::{Call, List},
    flow::notification,
    mode,
};
use crate::{
    action::Action,
    received::{ReceivedMessage, text, tool},
};
use serde_json::{Value, json};

/// Number of tools in `many_tools`, and number of tools per page.
const TOOL_COUNT: usize = 250;
const PAGE_SIZE: usize = 40;

pub(super) const MODES: &[Mode] = &[
    mode("many_tools", List, "has 250 tools on seven pages, many of them with odd names", |received, _| {
        let from = received.message["params"]["cursor"].as_str().and_then(|it| it.parse().ok()).unwrap_or(0);
        let tools: Vec<Value> =
            (from..TOOL_COUNT.min(from + PAGE_SIZE)).map(|number| tool(&name(number))).collect();
        let mut page = json!({ "tools": tools });
        if from + PAGE_SIZE < TOOL_COUNT {
            page["nextCursor"] = json!((from + PAGE_SIZE).to_string());
        }
        vec![Action::send(received.result(page))]
    }),
    mode("any_tool", Call, "says which tool was called, and with what", |received, _| {
        let called = received.message["params"]["name"].as_str().unwrap_or_default();
        execute_and_respond(received, [], &format!("{called} {}", received.nonce()))
    }),
    mode("slow_echo", Call, "answers after a while", |received, _| {
        execute_and_respond(received, [Action::Wait(received.options.delay)], received.nonce())
    }),
    mode("talkative", Call, "reports, logs and complains on stderr before it answers", |received, _| {
        let token = &received.message["params"]["_meta"]["progressToken"];
        let progress =
            notification("notifications/progress", json!({ "progressToken": token, "progress": 1 }));
        let log = notification("notifications/message", json!({ "level": "warning", "data": "careful" }));
        let words = b"a line on stderr\n";
        let talk = Action::Stderr(words.to_vec(), words.len() as u64);
        execute_and_respond(received, [Action::send(progress), Action::send(log), talk], received.nonce())
    }),
];

/// Records and executes a call, performs `between`, and then responds.
fn execute_and_respond(
    received: &ReceivedMessage,
    between: impl IntoIterator<Item = Action>,
    said: &str,
) -> Vec<Action> {
    let before = [Action::Note("recv"), Action::Note("exec")];
    let after = [Action::Note("resp"), Action::send(received.result(text(said)))];
    before.into_iter().chain(between).chain(after).collect()
}

/// Returns a tool name that is plain, unusual, long, or equal to another name after normalization.
fn name(number: usize) -> String {
    match number % 5 {
        0 => format!("plain_{number}"),
        1 => format!("group/item {}", number / 5),
        2 => format!("group.item-{}", number / 5),
        3 => format!("{}_{number}", "long".repeat(30)),
        _ => format!("\u{fc}nic\u{f6}de \u{2603} {number}"),
    }
}
