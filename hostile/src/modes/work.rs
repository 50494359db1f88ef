//! Harmless modes with more work than usual: many tools, slow tools, tools with many notifications. The matrix has
//! no rows for them.

use super::{
    Mode,
    Stage::{Call, List},
    flow::notification,
    mode,
};
use crate::{
    asked::{Asked, text, tool},
    deed::Deed,
};
use serde_json::{Value, json};

/// Number of tools in `many_tools`, and number of tools per page.
const MANY: usize = 250;
const PAGE: usize = 40;

pub(super) const MODES: &[Mode] = &[
    mode("many_tools", List, "has 250 tools on seven pages, many of them with odd names", |asked, _| {
        let from = asked.message["params"]["cursor"].as_str().and_then(|it| it.parse().ok()).unwrap_or(0);
        let tools: Vec<Value> = (from..MANY.min(from + PAGE)).map(|number| tool(&name(number))).collect();
        let mut page = json!({ "tools": tools });
        if from + PAGE < MANY {
            page["nextCursor"] = json!((from + PAGE).to_string());
        }
        vec![Deed::say(asked.result(page))]
    }),
    mode("any_tool", Call, "says which tool was called, and with what", |asked, _| {
        let called = asked.message["params"]["name"].as_str().unwrap_or_default();
        done(asked, [], &format!("{called} {}", asked.nonce()))
    }),
    mode("slow_echo", Call, "answers after a while", |asked, _| {
        done(asked, [Deed::Wait(asked.orders.delay)], asked.nonce())
    }),
    mode("talkative", Call, "reports, logs and complains on stderr before it answers", |asked, _| {
        let token = &asked.message["params"]["_meta"]["progressToken"];
        let progress =
            notification("notifications/progress", json!({ "progressToken": token, "progress": 1 }));
        let log = notification("notifications/message", json!({ "level": "warning", "data": "careful" }));
        let words = b"a line on stderr\n";
        let talk = Deed::Talk(words.to_vec(), words.len() as u64);
        done(asked, [Deed::say(progress), Deed::say(log), talk], asked.nonce())
    }),
];

/// Records and executes a call, performs `between`, and then responds.
fn done(asked: &Asked, between: impl IntoIterator<Item = Deed>, said: &str) -> Vec<Deed> {
    let before = [Deed::Note("recv"), Deed::Note("exec")];
    let after = [Deed::Note("resp"), Deed::say(asked.result(text(said)))];
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
