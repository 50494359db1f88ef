//! WebSocket, framed by hand: one message per text frame.

use super::{Server, Tasks, http};
use crate::{
    asked::Asked,
    deed::Deed,
    mouth::{Framing, Line, Mouth, Out, frame_head},
};
use std::{io, sync::Arc};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;

pub(super) async fn run(server: Arc<Server>, line: Arc<Line>, host: String) -> io::Result<()> {
    let mut buffer = Vec::new();
    let Some(request) = http::read(&line, &mut buffer).await? else { return Ok(()) };
    let nobody = Asked::nothing(&server.orders, &host);
    let greeting = server.greeting(&nobody);
    if !greeting.is_empty() {
        return server.perform(&mut speak(&line), greeting, &nobody).await;
    }
    upgrade(&line, &request).await?;
    let mut tasks = Tasks::new();
    loop {
        let (kind, payload) = frame(&line, &mut buffer).await?;
        match kind {
            TEXT => {
                let Some(asked) = Asked::read(&server.orders, &host, &payload) else { continue };
                let (server, mut mouth) = (server.clone(), speak(&line));
                let deeds = server.decide(&asked);
                if deeds.iter().any(|deed| matches!(deed, Deed::Freeze)) {
                    server.perform(&mut mouth, deeds, &asked).await?;
                } else {
                    tasks.start(async move { server.perform(&mut mouth, deeds, &asked).await });
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

fn speak(line: &Arc<Line>) -> Mouth {
    Mouth { out: Out::Line(line.clone()), framing: Framing::Frames, post: None }
}

async fn upgrade(line: &Line, request: &http::Request) -> io::Result<()> {
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
async fn frame(line: &Line, buffer: &mut Vec<u8>) -> io::Result<(u8, Vec<u8>)> {
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
