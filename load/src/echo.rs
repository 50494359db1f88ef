//! The server behind the gateways. It responds with as little work as possible, so that the measurement shows the
//! cost of the gateway. It has the tools `echo` and `payload`; further tools only make the list longer.

use crate::{command_line::CommandLine, post};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{convert::Infallible, fmt::Write as _};
use tokio::io::{AsyncReadExt, AsyncWriteExt, stdin, stdout};

/// Maximum size of a `payload` result, in bytes.
const MAX_PAYLOAD: usize = 16 << 20;

/// Initial buffer size, in bytes.
const CHUNK: usize = 64 << 10;

/// A message, decoded only as far as necessary.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: &'a str,
    #[serde(borrow, default)]
    arguments: Arguments<'a>,
}

#[derive(Default, Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    bytes: Option<usize>,
}

pub(crate) async fn serve(command_line: &CommandLine) -> Result<(), String> {
    let tools: &'static str = tools(command_line.number("tools", 2)).leak();
    match command_line.mode() {
        "stdio" => over_stdio(tools).await.map_err(|it| it.to_string()),
        "http" => {
            let listener = post::listen(command_line).await?;
            post::serve(listener, move |request| over_http(request, tools)).await
        }
        _ => Err("usage: `load echo stdio` or `load echo http`".to_owned()),
    }
}

/// Serves over stdin and stdout. Responds to all lines of one read with one write.
async fn over_stdio(tools: &str) -> std::io::Result<()> {
    let (mut from, mut to) = (stdin(), stdout());
    let (mut read, mut out) = (BytesMut::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
    loop {
        if from.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
        while let Some(end) = memchr::memchr(b'\n', &read) {
            let line = read.split_to(end + 1);
            if answer(&line, tools, &mut out) {
                out.push(b'\n');
            }
        }
        to.write_all(&out).await?;
        to.flush().await?;
        out.clear();
        read.reserve(CHUNK);
    }
}

async fn over_http(
    request: Request<Incoming>,
    tools: &'static str,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(|it| it.to_bytes()).unwrap_or_default();
    let mut out = Vec::with_capacity(256);
    let status = if answer(&body, tools, &mut out) { 200 } else { 202 };
    Ok(post::json(status, out.into()))
}

/// Appends the response to a message. Returns false if the message needs none.
fn answer(line: &[u8], tools: &str, out: &mut Vec<u8>) -> bool {
    let Ok(Message { id: Some(id), method, params }) = serde_json::from_slice(line) else { return false };
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.get().as_bytes());
    match method.unwrap_or_default() {
        "initialize" => result(out, INITIALIZED),
        "ping" => result(out, "{}"),
        "tools/list" => result(out, tools),
        "tools/call" => write_call_result(out, params),
        _ => out.extend_from_slice(br#","error":{"code":-32601,"message":"method not found"}"#),
    }
    out.push(b'}');
    true
}

const INITIALIZED: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;

fn result(out: &mut Vec<u8>, result: &str) {
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(result.as_bytes());
}

fn write_call_result(out: &mut Vec<u8>, params: Option<&RawValue>) {
    let call: Option<Call<'_>> = params.and_then(|it| serde_json::from_str(it.get()).ok());
    out.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
    match call {
        Some(Call { name: "payload", arguments }) => {
            out.push(b'"');
            out.resize(out.len() + arguments.bytes.unwrap_or(0).min(MAX_PAYLOAD), b'x');
            out.push(b'"');
        }
        Some(Call { arguments: Arguments { text: Some(text), .. }, .. }) => {
            out.extend_from_slice(text.get().as_bytes());
        }
        _ => out.extend_from_slice(b"\"\""),
    }
    out.extend_from_slice(br#"}],"isError":false}"#);
}

/// Builds a list of `count` tools. Only the first two do anything.
fn tools(count: usize) -> String {
    let mut list = String::from(
        r#"{"tools":[{"name":"echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"payload","description":"So many bytes.","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer","minimum":0}},"required":["bytes"]}}"#,
    );
    for number in 2..count {
        // Definitions are about as long as those of real servers.
        let _ = write!(
            list,
            r#",{{"name":"tool_{number}","description":"Looks through the files below a folder for a pattern, and says for each place where it is found the file, the line and what stands around it.","inputSchema":{{"type":"object","properties":{{"folder":{{"type":"string","description":"The folder that is looked through, with everything below it"}},"pattern":{{"type":"string","description":"What is looked for, as a regular expression"}},"most":{{"type":"integer","minimum":1,"maximum":1000,"default":100,"description":"How many places are told at most"}},"hidden":{{"type":"boolean","default":false,"description":"Whether hidden files are looked at too"}}}},"required":["folder","pattern"]}}}}"#
        );
    }
    list.push_str("]}");
    list
}
