//! Parses arbitrary bytes as a frame.
//!
//! A parsed message survives a round trip, fits on one line, and keeps its id. The typed decoders accept any
//! payload or report what is wrong with it.

#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use wharf_mcp::envelope::{self, Message, ParsedFrame};
use wharf_mcp::model::{
    Block, CallResult, Contents, Item, Prompt, PromptMessage, PromptResult, Read, ReadResult, Resource,
    Template, Tool,
};
use wharf_mcp::{Outbound, Raw, Routing, RpcError};

/// Id of our own request.
const OURS: u64 = 57;

fuzz_target!(|input: &[u8]| {
    let mut messages = Vec::new();
    collect(envelope::read(&Bytes::copy_from_slice(input)), &mut messages);
    for message in messages {
        let frame = encode(&message);
        assert_eq!(
            envelope::read(&frame),
            ParsedFrame::Message(forwarded(message.clone())),
            "read from {frame:?}"
        );
        match &message {
            Message::Request { id, params, .. } => {
                check_echo(id);
                params.iter().for_each(check_payload);
            }
            Message::Notification { params, .. } => params.iter().for_each(check_payload),
            Message::Answer { outcome: Ok(result), .. } => check_payload(result),
            Message::Answer { outcome: Err(error), .. } => error.data.iter().for_each(check_payload),
        }
        check_line(message);
    }
});

fn collect(reading: ParsedFrame, messages: &mut Vec<Message>) {
    match reading {
        ParsedFrame::Message(message) => messages.push(message),
        ParsedFrame::Batch(readings) => readings.into_iter().for_each(|reading| collect(reading, messages)),
        ParsedFrame::Noise | ParsedFrame::Malformed { .. } => {}
    }
}

fn encode(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    match message {
        Message::Request { method, params, .. } => {
            envelope::write_request(&mut out, OURS, method, params.as_ref());
        }
        Message::Notification { method, params } => {
            envelope::write_notification(&mut out, method, params.as_ref());
        }
        Message::Answer { id, outcome } => envelope::write_answer(&mut out, &number(*id), outcome),
    }
    out.freeze()
}

/// Returns the message as forwarded: a request gets an id of ours.
fn forwarded(message: Message) -> Message {
    match message {
        Message::Request { method, params, .. } => {
            Message::Request { id: number(Some(OURS)), method, params }
        }
        other => other,
    }
}

fn number(id: Option<u64>) -> Raw {
    Raw::of(&id).expect("a number is JSON")
}

/// Checks that a message is written as one line, even if it was read from several.
fn check_line(message: Message) {
    let routing = Routing::default();
    let outbound = match message {
        Message::Request { method, params, .. } => {
            Outbound::Request { id: OURS, method: method.into(), params, routing }
        }
        Message::Notification { method, params } => {
            Outbound::Notification { method: method.into(), params, routing }
        }
        Message::Answer { id, outcome } => Outbound::Answer { id: number(id), outcome, routing },
    };
    let mut line = BytesMut::new();
    outbound.write(&mut line);
    assert!(!line.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "a message is two lines: {line:?}");
    let reading = envelope::read(&line.freeze());
    assert!(matches!(reading, ParsedFrame::Message(_)), "a line became {reading:?}");
}

fn check_echo(id: &Raw) {
    for outcome in [Ok(Raw::empty_object()), Err(RpcError::method_not_found("x"))] {
        let mut out = BytesMut::new();
        envelope::write_answer(&mut out, id, &outcome);
        let answer = Raw::parse(out).expect("an answer is JSON");
        assert_eq!(answer.member("id").as_ref(), Some(id), "another id went back");
    }
}

/// Runs every decoder on the payload, its members and their elements.
fn check_payload(payload: &Raw) {
    assert_eq!(&CallResult::read(payload).raw, payload, "the result is not kept");
    PromptResult::read(payload);
    ReadResult::read(payload);
    check_item(payload);
    for (_, value) in payload.members().0 {
        let member = Raw::parse(value.get().to_owned()).expect("a member is JSON");
        check_item(&member);
        member.decode_or_default::<Vec<Raw>>().iter().for_each(check_item);
    }
}

fn check_item(raw: &Raw) {
    if let Some(tool) = valid::<Tool>(raw) {
        assert_eq!(&tool.raw, raw, "the tool is not kept");
        let headers = tool.header_params(Some(raw));
        assert!(headers.is_empty() || tool.header_flaw().is_none(), "a flawed tool has headers");
    }
    valid::<Block>(raw);
    valid::<Contents>(raw);
    valid::<Prompt>(raw);
    valid::<PromptMessage>(raw);
    valid::<Resource>(raw);
    valid::<Template>(raw);
}

fn valid<T: Read>(raw: &Raw) -> Option<T> {
    Item::read(raw).valid()
}
