//! Modes that are specific to WebSocket.

use super::{
    Mode,
    Stage::{Call, Spawn},
    mode,
};
use crate::{action::Action, performer::frame_head, received::ReceivedMessage};
use std::time::Duration;

pub(super) const MODES: &[Mode] = &[
    mode("ws_no_upgrade", Spawn, "answers with a page instead of a socket", |_, _| {
        vec![
            Action::raw("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"),
            Action::wait(20),
        ]
    }),
    mode("ws_bad_accept", Spawn, "proves with the wrong key that it knows the protocol", |_, _| {
        let head = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                    sec-websocket-protocol: mcp\r\nsec-websocket-accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n";
        vec![Action::raw(head), Action::wait(20)]
    }),
    mode("ws_upgrade_1g", Spawn, "sends headers without end instead of a socket", |received, _| {
        let head = "HTTP/1.1 101 Switching Protocols\r\n";
        vec![Action::raw(head), Action::Endless(b"x-more: and more\r\n".into(), received.options.size)]
    }),
    mode("ws_oversize", Call, "sends a frame over the limit", |received, _| {
        vec![
            Action::Raw(frame_head(0x81, received.options.size)),
            Action::Endless(b"x".into(), received.options.size),
        ]
    }),
    mode("ws_length_lie", Call, "announces a frame of eight exabytes", |_, _| {
        vec![Action::Raw(frame_head(0x81, u64::MAX >> 1)), Action::Hang]
    }),
    mode("ws_frag_flood", Call, "sends a message in fragments without end", |received, _| {
        let fragment = [frame_head(0x00, 1_000), vec![b'x'; 1_000]].concat();
        let first = [frame_head(0x01, 1), b"{".to_vec()].concat();
        vec![Action::Raw(first), Action::Endless(fragment, received.options.size)]
    }),
    mode("ws_frag_answer", Call, "sends its answer in fragments", |received, _| {
        let text = received.echo();
        let (head, tail) = text.as_bytes().split_at(text.len() / 2);
        let first = [frame_head(0x01, head.len() as u64), head.to_vec()].concat();
        let last = [frame_head(0x80, tail.len() as u64), tail.to_vec()].concat();
        vec![Action::Raw(first), Action::wait(20), Action::Raw(last)]
    }),
    mode("ws_bad_utf8", Call, "sends a text frame that is no text", |_, _| {
        vec![Action::Raw([frame_head(0x81, 3), vec![b'{', 0xff, b'}']].concat()), Action::Hang]
    }),
    mode("ws_masked", Call, "masks its frames, which only clients may", |received, _| {
        let text = received.echo();
        let mut head = frame_head(0x81, text.len() as u64);
        head[1] |= 0x80;
        vec![Action::Raw([head, vec![0; 4], text.into_bytes()].concat()), Action::Hang]
    }),
    mode("ws_reserved_bits", Call, "sets bits that mean nothing", |received, _| {
        let text = received.echo();
        vec![Action::Raw([frame_head(0xf1, text.len() as u64), text.into_bytes()].concat()), Action::Hang]
    }),
    mode("ws_unknown_opcode", Call, "sends a kind of frame that there is not", |_, _| {
        vec![Action::Raw(frame_head(0x83, 0)), Action::Hang]
    }),
    mode("ws_ping_flood", Call, "pings ten thousand times before it answers", |received, _| {
        let ping = Action::raw([frame_head(0x89, 4), b"ping".to_vec()].concat());
        vec![Action::Repeat(Box::new(ping), 10_000, Duration::ZERO), Action::send(received.echo())]
    }),
    mode("ws_close_1011", Call, "closes the socket with an error of its own", |_, _| {
        let reason = b"\x03\xf3it broke";
        vec![Action::Raw([frame_head(0x88, reason.len() as u64), reason.to_vec()].concat()), Action::Hang]
    }),
    mode("ws_eof", Call, "closes the connection without a word", |_, _| vec![Action::Close]),
    mode("ws_binary_json", Call, "sends its answer as bytes", |received, _| vec![binary(received)]),
];

fn binary(received: &ReceivedMessage) -> Action {
    let text = received.echo();
    Action::Raw([frame_head(0x82, text.len() as u64), text.into_bytes()].concat())
}
