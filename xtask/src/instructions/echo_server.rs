//! A minimal MCP server over HTTP. It answers with as little as possible, and runs until the task ends.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use super::http_message::HttpMessage;

const INITIALIZED: &str = r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;
const TOOLS: &str = r#""result":{"tools":[{"name":"echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}"#;
const UNKNOWN: &str = r#""error":{"code":-32601,"message":"method not found"}"#;

/// The text that a call sends and receives.
pub(super) const TEXT: &str =
    "a text of one hundred bytes, which is about as long as the arguments of a real tool call usually are";

pub(super) struct EchoServer {
    port: u16,
}

impl EchoServer {
    pub(super) fn start() -> io::Result<EchoServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A gateway that disconnects is not an error.
                thread::spawn(move || _ = serve(stream));
            }
        });
        Ok(EchoServer { port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = HttpMessage::read(&mut reader)? {
        let response = match answer(&request.body) {
            _ if request.first_word() != "POST" => {
                "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned()
            }
            None => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Some(answer) => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            ),
        };
        stream.write_all(response.as_bytes())?;
    }
    Ok(())
}

/// Answers a message of our own client, whose form is known. A notification has no answer.
fn answer(message: &str) -> Option<String> {
    let id: String = message.split_once(r#""id":"#)?.1.chars().take_while(char::is_ascii_digit).collect();
    let method = message.split_once(r#""method":""#)?.1.split('"').next()?;
    let outcome = match method {
        "initialize" => INITIALIZED.to_owned(),
        "tools/list" => TOOLS.to_owned(),
        "tools/call" => {
            format!(r#""result":{{"content":[{{"type":"text","text":"{TEXT}"}}],"isError":false}}"#)
        }
        _ => UNKNOWN.to_owned(),
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#))
}
