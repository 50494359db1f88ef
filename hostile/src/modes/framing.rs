//! Modes about the encoding of a response.

use super::{Mode, Stage::Call, mode};
use crate::{asked::Asked, deed::Deed};
use std::time::Duration;

pub(super) const MODES: &[Mode] = &[
    mode("crlf", Call, "ends its lines as Windows does", |asked, _| {
        vec![Deed::raw(format!("{}\r\n", asked.echo()))]
    }),
    mode("bom", Call, "puts a byte order mark before the message", |asked, _| {
        vec![Deed::say(format!("\u{feff}{}", asked.echo()))]
    }),
    mode("split_utf8", Call, "sends half a character, and the rest later", |asked, _| {
        let text = asked.echo().replace(r#""type":"text""#, r#""type":"text","é":"ü""#);
        let at = text.find('ü').map_or(0, |at| at + 1);
        let (head, tail) = text.as_bytes().split_at(at);
        vec![Deed::raw(head), Deed::wait(50), Deed::Raw([tail, b"\n"].concat())]
    }),
    mode("byte_at_a_time", Call, "sends one byte at a time", |asked, _| {
        vec![Deed::Drip(format!("{}\n", asked.echo()).into(), Duration::from_micros(100))]
    }),
    mode("blank_lines", Call, "sends empty lines around the message", |asked, _| {
        vec![Deed::raw("\n\n  \n\r\n"), Deed::say(asked.echo()), Deed::raw("\n\n")]
    }),
    mode("junk_lines", Call, "writes megabytes of chatter to stdout before it answers", |asked, _| {
        vec![
            Deed::Endless(b"chatter, chatter, chatter\n".into(), asked.orders.size / 26 * 26),
            Deed::say(asked.echo()),
        ]
    }),
    mode("id_float", Call, "returns the id as a fraction, `1.0`", |asked, _| {
        vec![Deed::say(with_id(asked, &format!("{}.0", asked.id())))]
    }),
    mode("huge_number", Call, "has a number that fits into nothing, 1e99999", |asked, _| {
        let odd = r#""structuredContent":{"n":1e99999},"content":["#;
        vec![Deed::say(asked.echo().replace(r#""content":["#, odd))]
    }),
    mode("no_newline_1g", Call, "sends a line without an end", |asked, _| {
        vec![Deed::Endless(b"x".into(), asked.orders.size)]
    }),
    mode("oversize_response", Call, "sends an answer over the limit", |asked, _| vec![long(asked)]),
    mode("oversize_1g", Call, "sends an answer that does not end", |asked, _| vec![long(asked)]),
    mode(
        "oversize_id_last",
        Call,
        "sends an answer over the limit that names its request last",
        |asked, _| {
            let tail = format!(r#""}}]}},"jsonrpc":"2.0","id":{}}}"#, asked.id());
            let head = br#"{"result":{"content":[{"type":"text","text":""#.to_vec();
            vec![Deed::Long { head, size: asked.orders.size, tail: tail.into() }]
        },
    ),
    mode("invalid_utf8", Call, "sends bytes that are no text", |asked, _| {
        let text = asked.echo();
        vec![Deed::Say(
            text.replace(asked.nonce(), "\u{1}").bytes().map(|it| if it == 1 { 0xff } else { it }).collect(),
        )]
    }),
    mode("lone_surrogate", Call, "sends half of a surrogate pair as an escape", |asked, _| {
        vec![Deed::say(asked.echo().replace(asked.nonce(), r"\ud800"))]
    }),
    mode("deep_nesting", Call, "nests ten thousand lists in each other", |asked, _| {
        let deep = format!(r#""structuredContent":{}{},"content":["#, "[".repeat(10_000), "]".repeat(10_000));
        vec![Deed::say(asked.echo().replace(r#""content":["#, &deep))]
    }),
    mode("trailing_garbage", Call, "writes more behind the message, on the same line", |asked, _| {
        vec![Deed::say(format!("{} and then some", asked.echo()))]
    }),
    mode("nul_bytes", Call, "sends zero bytes inside a string", |asked, _| {
        vec![Deed::say(asked.echo().replace(asked.nonce(), "\0\0"))]
    }),
    mode("pretty_printed", Call, "spreads the message over many lines", |asked, _| {
        let value: serde_json::Value = serde_json::from_str(&asked.echo()).unwrap_or_default();
        vec![Deed::say(format!("{value:#}"))]
    }),
    mode("batch_array", Call, "sends the answer in a batch", |asked, _| {
        vec![Deed::say(format!("[{}]", asked.echo()))]
    }),
    mode(
        "batch_2025_03_26",
        Call,
        "sends the answer in a batch, in the one version that has them",
        |asked, _| vec![Deed::say(format!("[{}]", asked.echo()))],
    ),
    mode("dup_keys", Call, "has two results in one answer", |asked, _| {
        vec![Deed::say(asked.echo().replacen(r#""result":"#, r#""result":{"content":[]},"result":"#, 1))]
    }),
    mode("dup_ids", Call, "has two ids in one answer", |asked, _| {
        vec![Deed::say(asked.echo().replacen(r#""id":"#, r#""id":999,"id":"#, 1))]
    }),
    mode("case_variant_keys", Call, "writes `Result` for `result`", |asked, _| {
        vec![Deed::say(asked.echo().replacen(r#""result":"#, r#""Result":"#, 1))]
    }),
    mode("missing_jsonrpc", Call, "leaves `jsonrpc` out", |asked, _| {
        vec![Deed::say(asked.echo().replacen(r#""jsonrpc":"2.0","#, "", 1))]
    }),
    mode("both_result_error", Call, "answers with a result and an error", |asked, _| {
        let error = r#""error":{"code":-1,"message":"no"},"result":"#;
        vec![Deed::say(asked.echo().replacen(r#""result":"#, error, 1))]
    }),
    mode("neither", Call, "answers with neither a result nor an error", |asked, _| {
        vec![Deed::say(format!(r#"{{"jsonrpc":"2.0","id":{}}}"#, asked.id()))]
    }),
    mode("result_null", Call, "answers with the result `null`", |asked, _| {
        vec![Deed::say(format!(r#"{{"jsonrpc":"2.0","id":{},"result":null}}"#, asked.id()))]
    }),
    mode("result_scalar", Call, "answers with the result `42`", |asked, _| {
        vec![Deed::say(format!(r#"{{"jsonrpc":"2.0","id":{},"result":42}}"#, asked.id()))]
    }),
    mode("result_array", Call, "answers with a list for a result", |asked, _| {
        vec![Deed::say(format!(r#"{{"jsonrpc":"2.0","id":{},"result":[]}}"#, asked.id()))]
    }),
    mode("half_line_exit", Call, "ends in the middle of its answer", |asked, _| {
        let text = asked.echo();
        vec![Deed::raw(&text.as_bytes()[..text.len() / 2]), Deed::wait(20), Deed::Exit(0)]
    }),
];

/// Encodes the response with a different id.
fn with_id(asked: &Asked, id: &str) -> String {
    asked.echo().replacen(&format!(r#""id":{}"#, asked.id()), &format!(r#""id":{id}"#), 1)
}

/// Builds a response of the configured size.
pub(super) fn long(asked: &Asked) -> Deed {
    let id = asked.id();
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    Deed::Long { head: head.into(), size: asked.orders.size, tail: br#""}]}}"#.to_vec() }
}
