//! Reads an HTTP/1 request or response with a `Content-Length`. Both ends are ours, so it does not need more.

use std::io::{self, BufRead};

/// A request or a response.
#[derive(Debug, Default)]
pub(super) struct HttpMessage {
    /// The first line and the headers.
    lines: Vec<String>,
    pub(super) body: String,
}

impl HttpMessage {
    /// Reads the next message. Returns `None` at the end of the stream.
    pub(super) fn read(reader: &mut impl BufRead) -> io::Result<Option<HttpMessage>> {
        let mut message = HttpMessage::default();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            match line.trim_end() {
                "" => break,
                line => message.lines.push(line.to_owned()),
            }
        }
        let length = message.header("content-length").map_or(Ok(0), str::parse).map_err(io::Error::other)?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        message.body = String::from_utf8(body).map_err(io::Error::other)?;
        Ok(Some(message))
    }

    /// Returns the method of a request, or the version of a response.
    pub(super) fn first_word(&self) -> &str {
        self.lines.first().and_then(|line| line.split(' ').next()).unwrap_or_default()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let headers = self.lines.iter().skip(1).filter_map(|line| line.split_once(':'));
        headers.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_one_after_the_other() -> io::Result<()> {
        let mut text = "POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\n\r\n".as_bytes();
        let first = HttpMessage::read(&mut text)?.unwrap_or_default();
        assert_eq!((first.first_word(), first.body.as_str()), ("POST", "{}"));
        assert_eq!(HttpMessage::read(&mut text)?.unwrap_or_default().first_word(), "GET");
        assert!(HttpMessage::read(&mut text)?.is_none());
        Ok(())
    }
}
