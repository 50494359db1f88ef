//! The server in the container: MCP on lines of text, with nothing but the standard library, because it is compiled by
//! itself and is all that the image holds. It knows one tool, which tells what it finds in its environment.

use std::io::{self, BufRead, Write};

fn main() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some(id) = after(&line, "\"id\":") else { continue };
        let id = id.split([',', '}']).next().unwrap_or_default();
        let answer = answer(&line);
        writeln!(stdout, r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#)?;
        stdout.flush()?;
    }
    Ok(())
}

fn answer(line: &str) -> String {
    let method = after(line, "\"method\":\"").and_then(|it| it.split('"').next());
    match method.unwrap_or_default() {
        "initialize" => r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"container","version":"1"}}"#.to_owned(),
        "tools/list" => r#""result":{"tools":[{"name":"key","description":"The key it was given","inputSchema":{"type":"object"}}]}"#.to_owned(),
        "tools/call" => {
            let key = std::env::var("API_KEY").unwrap_or_else(|_| "none".to_owned());
            let process = std::process::id();
            format!(r#""result":{{"content":[{{"type":"text","text":"process {process} has the key {key}"}}]}}"#)
        }
        "ping" => r#""result":{}"#.to_owned(),
        other => format!(r#""error":{{"code":-32601,"message":"there is no {other}"}}"#),
    }
}

/// What follows the first of these words. Good enough for a client that writes compact JSON.
fn after<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    line.split_once(words).map(|(_, rest)| rest)
}
