//! WebSocket, framed by hand: one message per text frame.

use super::{Server, Tasks, http};
use crate::{
    action::Action,
    performer::{Framing, Output, Performer, SharedConnection, frame_head},
    received::ReceivedMessage,
};
use std::{io, sync::Arc};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;

pub(super) async fn run(server: Arc<Server>, line: Arc<SharedConnection>, host: String) -> io::Result<()> {
    let mut buffer = Vec::new();
    let Some(request) = http::read(&line, &mut buffer).await? else { return Ok(()) };
    let no_message = ReceivedMessage::nothing(&server.options, &host);
    let startup_actions = server.startup_actions(&no_message);
    if !startup_actions.is_empty() {
        return server.perform(&mut new_performer(&line), startup_actions, &no_message).await;
    }
    upgrade(&line, &request).await?;
    let mut tasks = Tasks::new();
    loop {
        let (kind, payload) = frame(&line, &mut buffer).await?;
        match kind {
            TEXT => {
                let Some(received) = ReceivedMessage::read(&server.options, &host, &payload) else {
                    continue;
                };
                let (server, mut performer) = (server.clone(), new_performer(&line));
                let actions = server.decide(&received);
                if actions.iter().any(|action| matches!(action, Action::Freeze)) {
                    server.perform(&mut performer, actions, &received).await?;
                } else {
                    tasks.start(async move { server.perform(&mut performer, actions, &received).await });
                }
            }
            PING => line.write(&[frame_head(0x8a, payload.len() as u64), payload].concat()).await?,
            CLOSE => {
                line.write(&[frame_head(0x88, payload.len() as u64), payload].concat()).await?;
                return line.close_output();
            }
            _ => {}
        }
    }
}

fn new_performer(line: &Arc<SharedConnection>) -> Performer {
    Performer { out: Output::SharedConnection(line.clone()), framing: Framing::Frames, post: None }
}

async fn upgrade(line: &SharedConnection, request: &http::Request) -> io::Result<()> {
    // The key is the only header value here that is case-sensitive.
    let key = request.original("sec-websocket-key").unwrap_or_default();
    let asked_for = http::header(&request.head, "sec-websocket-protocol");
    let protocol = asked_for.map(|it| format!("sec-websocket-protocol: {it}\r\n")).unwrap_or_default();
    let accept = derive_accept_key(key.as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n{protocol}\
         sec-websocket-accept: {accept}\r\n\r\n"
    );
    line.write(head.as_bytes()).await
}

/// Reads one client frame, which is masked and, from our clients, never fragmented.
async fn frame(line: &SharedConnection, buffer: &mut Vec<u8>) -> io::Result<(u8, Vec<u8>)> {
    line.fill_to(buffer, 2).await?;
    let (length, at) = match buffer[1] & 0x7f {
        126 => {
            line.fill_to(buffer, 4).await?;
            (usize::from(u16::from_be_bytes([buffer[2], buffer[3]])), 4)
        }
        127 => {
            line.fill_to(buffer, 10).await?;
            let bytes: [u8; 8] = buffer[2..10].try_into().unwrap_or_default();
            (u64::from_be_bytes(bytes) as usize, 10)
        }
        length => (usize::from(length), 2),
    };
    line.fill_to(buffer, at + 4 + length).await?;
    let mask = [buffer[at], buffer[at + 1], buffer[at + 2], buffer[at + 3]];
    let payload = &buffer[at + 4..at + 4 + length];
    let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    let kind = buffer[0] & 0x0f;
    buffer.drain(..at + 4 + length);
    Ok((kind, payload))
}
