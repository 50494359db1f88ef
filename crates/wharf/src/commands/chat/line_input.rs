//! Reads messages from standard input if it is not a terminal: one per line.

use std::io::{self, BufRead, Read};
use tokio::task;

/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: u64 = 64 * 1024;

/// Reads the next line that is not empty. `None` at the end of input.
pub(super) async fn next_message() -> io::Result<Option<String>> {
    task::spawn_blocking(read_message).await.unwrap_or(Ok(None))
}

fn read_message() -> io::Result<Option<String>> {
    let mut input = io::stdin().lock();
    loop {
        let mut line = String::new();
        let count = input.by_ref().take(MAX_MESSAGE_BYTES + 1).read_line(&mut line)?;
        if count == 0 {
            return Ok(None);
        }
        if count as u64 > MAX_MESSAGE_BYTES {
            return Err(io::Error::other("a line is longer than 64 KiB"));
        }
        let line = clean(&line);
        if !line.is_empty() {
            return Ok(Some(line));
        }
    }
}

/// Removes control characters except for newline and tab, and the space around the text.
pub(super) fn clean(text: &str) -> String {
    let kept: String = text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t')).collect();
    kept.trim().to_owned()
}
