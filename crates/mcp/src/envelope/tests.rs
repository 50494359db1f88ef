//! Tests how frames are classified, one line each.

use super::*;
use proptest::prelude::*;

fn describe(reading: ParsedFrame) -> String {
    let payload = |payload: Option<Raw>| payload.map_or_else(String::new, |raw| format!(" {raw:?}"));
    match reading {
        ParsedFrame::Message(Message::Request { id, method, params }) => {
            format!("request {id:?} {method}{}", payload(params))
        }
        ParsedFrame::Message(Message::Notification { method, params }) => {
            format!("notification {method}{}", payload(params))
        }
        ParsedFrame::Message(Message::Answer { id, outcome: Ok(result) }) => {
            format!("result {id:?} {result:?}")
        }
        ParsedFrame::Message(Message::Answer { id, outcome: Err(error) }) => {
            format!("error {id:?} {error}{}", payload(error.data.clone()))
        }
        ParsedFrame::Batch(items) => items.into_iter().map(describe).collect::<Vec<_>>().join("; "),
        ParsedFrame::Noise => "noise".into(),
        ParsedFrame::Malformed { id, why } => format!("malformed {id:?}: {why}"),
    }
}

#[test]
fn frames_are_classified() {
    for (frame, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1e99999}}"#, r#"result Some(1) {"a":1e99999}"#),
        (r#"{"id":1,"result":{}}"#, "result Some(1) {}"),
        (r#"{"id":1,"result":["\ud800"]}"#, r#"result Some(1) ["\ufffd"]"#),
        (r#"{"id":"\ud800","method":"a\udc00"}"#, "request \"\\ufffd\" a\u{fffd}"),
        ("\u{feff}{\"id\":1,\"result\":{}}\r", "result Some(1) {}"),
        (r#"{"id":"1","result":7}"#, "result Some(1) 7"),
        (r#"{"id":1.0,"result":[]}"#, "result Some(1) []"),
        (r#"{"id":"other","result":[]}"#, "result None []"),
        (r#"{"id":"a-1","method":"ping"}"#, r#"request "a-1" ping"#),
        (r#"{"id":1,"method":"a\/b","params":{"x":1}}"#, r#"request 1 a/b {"x":1}"#),
        (r#"{"method":"n","params":null}"#, "notification n"),
        (r#"{"id":2,"error":{"code":-32601,"message":"no","data":[1]}}"#, "error Some(2) no (-32601) [1]"),
        (r#"{"id":null,"error":{"code":-32700}}"#, "error None  (-32700)"),
        (
            r#"{"id":2,"error":{"code":"x","message":"no"}}"#,
            "malformed Some(2): `error` is not a JSON-RPC error",
        ),
        (
            r#"{"id":2,"result":1,"error":{"code":1}}"#,
            "malformed Some(2): an answer has both `result` and `error`",
        ),
        (r#"{"id":2}"#, "malformed Some(2): an answer has neither `result` nor `error`"),
        (r#"{"id":2,"result":null}"#, "malformed Some(2): an answer has neither `result` nor `error`"),
        (r#"{"id":1,"id":1,"result":{}}"#, "malformed Some(1): a message has two ids"),
        (r#"{"id":9,"id":1,"result":{}}"#, "malformed None: a message has two ids"),
        (r#"{"level":"info","msg":"up"}"#, "noise"),
        ("", "noise"),
        ("listening on 3000", "noise"),
        ("[info] listening", "noise"),
        ("{ port: 3000 }", "noise"),
        ("{", "malformed None: a message is truncated, or contains newlines"),
        (r#"[{"id":1,"result":1},{"method":"n"},5]"#, "result Some(1) 1; notification n"),
    ] {
        assert_eq!(describe(read(&Bytes::from(frame.to_owned()))), expected, "{frame}");
    }
}

#[test]
fn malformed_messages_keep_their_request_id() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":9,"result":{}{}}}"#, "[".repeat(400), "]".repeat(400));
    for frame in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":\"\xff\"}"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}} trailing",
        b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":\"\0\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":9,\"id\":9,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"a\":",
        deep.as_bytes(),
    ] {
        let reading = read(&Bytes::copy_from_slice(frame));
        assert!(matches!(reading, ParsedFrame::Malformed { id: Some(9), .. }), "{reading:?}");
    }
}

#[test]
fn written_messages_are_read_back() {
    let params = Raw::from(serde_json::json!({ "a": "line\nbreak" }));
    let mut out = BytesMut::new();
    write_request(&mut out, 7, "tools/call", Some(&params));
    assert_eq!(describe(read(&out.split().freeze())), r#"request 7 tools/call {"a":"line\nbreak"}"#);
    write_notification(&mut out, "odd \"name\"", None);
    assert_eq!(describe(read(&out.split().freeze())), r#"notification odd "name""#);
    write_answer(&mut out, &Raw::from(serde_json::json!(3)), &Err(RpcError::new(-1, "no")));
    assert_eq!(describe(read(&out.split().freeze())), "error Some(3) no (-1)");
}

proptest! {
    #[test]
    fn no_frame_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes.into());
    }

    #[test]
    fn no_cut_message_panics(cut in 0_usize..80, flip in 0_usize..80) {
        let mut frame = br#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"a\"b"}]}}"#.to_vec();
        let flip = flip % frame.len();
        frame[flip] ^= 0x15;
        frame.truncate(cut);
        let _ = read(&frame.into());
    }
}
