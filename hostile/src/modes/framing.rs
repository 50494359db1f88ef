//! Modes about the encoding of a response.

use super::{Mode, Stage::Call, mode};
use crate::{action::Action, received::ReceivedMessage};
use std::time::Duration;

pub(super) const MODES: &[Mode] = &[
    mode("crlf", Call, "ends its lines as Windows does", |received, _| {
        vec![Action::raw(format!("{}\r\n", received.echo()))]
    }),
    mode("bom", Call, "puts a byte order mark before the message", |received, _| {
        vec![Action::send(format!("\u{feff}{}", received.echo()))]
    }),
    mode("split_utf8", Call, "sends half a character, and the rest later", |received, _| {
        let text = received.echo().replace(r#""type":"text""#, r#""type":"text","é":"ü""#);
        let at = text.find('ü').map_or(0, |at| at + 1);
        let (head, tail) = text.as_bytes().split_at(at);
        vec![Action::raw(head), Action::wait(50), Action::Raw([tail, b"\n"].concat())]
    }),
    mode("byte_at_a_time", Call, "sends one byte at a time", |received, _| {
        vec![Action::Drip(format!("{}\n", received.echo()).into(), Duration::from_micros(100))]
    }),
    mode("blank_lines", Call, "sends empty lines around the message", |received, _| {
        vec![Action::raw("\n\n  \n\r\n"), Action::send(received.echo()), Action::raw("\n\n")]
    }),
    mode("junk_lines", Call, "writes megabytes of chatter to stdout before it answers", |received, _| {
        vec![
            Action::Endless(b"chatter, chatter, chatter\n".into(), received.options.size / 26 * 26),
            Action::send(received.echo()),
        ]
    }),
    mode("id_float", Call, "returns the id as a fraction, `1.0`", |received, _| {
        vec![Action::send(with_id(received, &format!("{}.0", received.id())))]
    }),
    mode("huge_number", Call, "has a number that fits into nothing, 1e99999", |received, _| {
        let odd = r#""structuredContent":{"n":1e99999},"content":["#;
        vec![Action::send(received.echo().replace(r#""content":["#, odd))]
    }),
    mode("no_newline_1g", Call, "sends a line without an end", |received, _| {
        vec![Action::Endless(b"x".into(), received.options.size)]
    }),
    mode("oversize_response", Call, "sends an answer over the limit", |received, _| vec![long(received)]),
    mode("oversize_1g", Call, "sends an answer that does not end", |received, _| vec![long(received)]),
    mode(
        "oversize_id_last",
        Call,
        "sends an answer over the limit that names its request last",
        |received, _| {
            let tail = format!(r#""}}]}},"jsonrpc":"2.0","id":{}}}"#, received.id());
            let head = br#"{"result":{"content":[{"type":"text","text":""#.to_vec();
            vec![Action::Long { head, size: received.options.size, tail: tail.into() }]
        },
    ),
    mode("invalid_utf8", Call, "sends bytes that are no text", |received, _| {
        let text = received.echo();
        vec![Action::Send(
            text.replace(received.nonce(), "\u{1}")
                .bytes()
                .map(|it| if it == 1 { 0xff } else { it })
                .collect(),
        )]
    }),
    mode("lone_surrogate", Call, "sends half of a surrogate pair as an escape", |received, _| {
        vec![Action::send(received.echo().replace(received.nonce(), r"\ud800"))]
    }),
    mode("deep_nesting", Call, "nests ten thousand lists in each other", |received, _| {
        let deep = format!(r#""structuredContent":{}{},"content":["#, "[".repeat(10_000), "]".repeat(10_000));
        vec![Action::send(received.echo().replace(r#""content":["#, &deep))]
    }),
    mode("trailing_garbage", Call, "writes more behind the message, on the same line", |received, _| {
        vec![Action::send(format!("{} and then some", received.echo()))]
    }),
    mode("nul_bytes", Call, "sends zero bytes inside a string", |received, _| {
        vec![Action::send(received.echo().replace(received.nonce(), "\0\0"))]
    }),
    mode("pretty_printed", Call, "spreads the message over many lines", |received, _| {
        let value: serde_json::Value = serde_json::from_str(&received.echo()).unwrap_or_default();
        vec![Action::send(format!("{value:#}"))]
    }),
    mode("batch_array", Call, "sends the answer in a batch", |received, _| {
        vec![Action::send(format!("[{}]", received.echo()))]
    }),
    mode(
        "batch_2025_03_26",
        Call,
        "sends the answer in a batch, in the one version that has them",
        |received, _| vec![Action::send(format!("[{}]", received.echo()))],
    ),
    mode("dup_keys", Call, "has two results in one answer", |received, _| {
        vec![Action::send(received.echo().replacen(
            r#""result":"#,
            r#""result":{"content":[]},"result":"#,
            1,
        ))]
    }),
    mode("dup_ids", Call, "has two ids in one answer", |received, _| {
        vec![Action::send(received.echo().replacen(r#""id":"#, r#""id":999,"id":"#, 1))]
    }),
    mode("case_variant_keys", Call, "writes `Result` for `result`", |received, _| {
        vec![Action::send(received.echo().replacen(r#""result":"#, r#""Result":"#, 1))]
    }),
    mode("missing_jsonrpc", Call, "leaves `jsonrpc` out", |received, _| {
        vec![Action::send(received.echo().replacen(r#""jsonrpc":"2.0","#, "", 1))]
    }),
    mode("both_result_error", Call, "answers with a result and an error", |received, _| {
        let error = r#""error":{"code":-1,"message":"no"},"result":"#;
        vec![Action::send(received.echo().replacen(r#""result":"#, error, 1))]
    }),
    mode("neither", Call, "answers with neither a result nor an error", |received, _| {
        vec![Action::send(format!(r#"{{"jsonrpc":"2.0","id":{}}}"#, received.id()))]
    }),
    mode("result_null", Call, "answers with the result `null`", |received, _| {
        vec![Action::send(format!(r#"{{"jsonrpc":"2.0","id":{},"result":null}}"#, received.id()))]
    }),
    mode("result_scalar", Call, "answers with the result `42`", |received, _| {
        vec![Action::send(format!(r#"{{"jsonrpc":"2.0","id":{},"result":42}}"#, received.id()))]
    }),
    mode("result_array", Call, "answers with a list for a result", |received, _| {
        vec![Action::send(format!(r#"{{"jsonrpc":"2.0","id":{},"result":[]}}"#, received.id()))]
    }),
    mode("half_line_exit", Call, "ends in the middle of its answer", |received, _| {
        let text = received.echo();
        vec![Action::raw(&text.as_bytes()[..text.len() / 2]), Action::wait(20), Action::Exit(0)]
    }),
];

/// Encodes the response with a different id.
fn with_id(received: &ReceivedMessage, id: &str) -> String {
    received.echo().replacen(&format!(r#""id":{}"#, received.id()), &format!(r#""id":{id}"#), 1)
}

/// Builds a response of the configured size.
pub(super) fn long(received: &ReceivedMessage) -> Action {
    let id = received.id();
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    Action::Long { head: head.into(), size: received.options.size, tail: br#""}]}}"#.to_vec() }
}
