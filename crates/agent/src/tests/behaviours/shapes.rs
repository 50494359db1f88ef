//! How a whole answer is sent: bytes, lines, events, thinking and usage.

use super::{Behaviour, EVENTS};
use crate::dialect::Dialect;
use scripted_model::{Finish::*, Step, call, text};
use serde_json::json;

const READ: &str = "reads the answer";

pub(super) fn all() -> Vec<Behaviour> {
    let row = |name| Behaviour::new("shape", name, READ);
    let every = &Dialect::ALL;
    let steps = [text("a"), call("x", "f", "{}"), Step::End(Stop)];
    let read = r#""a" x:f({}) Stop"#;
    let thought = [Step::Think("Hm.".into()), text("Yes."), Step::End(Stop)];
    vec![
        row("characters are split between chunks").says(
            every,
            &[text("grüß "), text("🦀"), Step::End(Stop)],
            r#""grüß 🦀" Stop"#,
        ),
        row("lines end with CRLF").changes(every, &steps, |_, it| it.replace('\n', "\r\n"), read),
        row("lines end with CR").changes(&EVENTS, &steps, |_, it| it.replace('\n', "\r"), read),
        row("the stream begins with a byte-order mark").changes(
            every,
            &steps,
            |_, it| format!("\u{feff}{it}"),
            read,
        ),
        row("the stream begins with empty lines").changes(every, &steps, |_, it| format!("\n\n{it}"), read),
        row("comments keep the connection alive").changes(
            &EVENTS,
            &steps,
            |_, it| format!(": PROCESSING\n\n{}", it.replace("data: ", ": ping\ndata: ")),
            read,
        ),
        row("`data:` has no space after it").changes(
            &EVENTS,
            &steps,
            |_, it| it.replace("data: ", "data:"),
            read,
        ),
        row("events have ids and retry times").changes(
            &EVENTS,
            &steps,
            |_, it| it.replace("data: ", "id: 7\nretry: 10\ndata: "),
            read,
        ),
        row("events are empty").changes(
            &EVENTS,
            &steps,
            |_, it| format!("data:\n\ndata\n\nevent: ping\n\n{it}"),
            read,
        ),
        unknown_events(&steps, read),
        row("the last line break is missing").changes(every, &steps, |_, it| it.trim_end().to_owned(), read),
        row("thinking comes before the text").says(every, &thought, r#"<Hm.> "Yes." Stop"#),
        row("usage comes before the text").says(
            every,
            &[Step::Usage, text("a"), Step::End(Stop)],
            r#""a" Stop"#,
        ),
        row("usage comes after the end").says(
            every,
            &[text("a"), Step::End(Stop), Step::Usage],
            r#""a" Stop"#,
        ),
    ]
}

/// Events of types that did not exist when this was written.
fn unknown_events(steps: &[Step], expected: &str) -> Behaviour {
    let row = Behaviour::new("shape", "events have types and members of later versions", READ);
    row.changes(
        &Dialect::ALL,
        steps,
        |dialect, it| match dialect {
            Dialect::Ollama => {
                format!("{}\n{it}", json!({ "model": "m", "done": false, "later": { "x": 1 } }))
            }
            Dialect::Responses => {
                format!("data: {}\n\n{it}", json!({ "type": "response.later", "delta": { "x": 1 } }))
            }
            Dialect::Anthropic => {
                format!("data: {}\n\n{it}", json!({ "type": "later", "index": 99, "delta": { "x": 1 } }))
            }
            _ => format!("data: {}\n\n{it}", json!({ "later": { "x": 1 } })),
        },
        expected,
    )
}
