//! Splits the body of a response into events, whatever its chunks are.
//!
//! Four dialects use server-sent events and one uses lines of JSON. An event, a line or a comment without end never
//! uses more memory than the limit. This crate must not know MCP's transports, so it does not use their parser.

use crate::model::trouble::Trouble;

/// Maximum length of the beginning of a response that an error shows, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

/// Field names of server-sent events, with the colon that ends them.
const SSE_FIELDS: &[&[u8]] = &[b"data:", b"event:", b"id:", b"retry:"];

/// How a response is split into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    ServerSentEvents,
    /// One JSON value per line.
    JsonLines,
}

/// Incremental splitter of a response body.
#[derive(Debug)]
pub(crate) struct FrameReader {
    framing: Framing,
    limit: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    /// First bytes of the response, for an error message.
    beginning: Vec<u8>,
    /// Whether the first line has been checked.
    has_started: bool,
    is_foreign: bool,
}

impl FrameReader {
    pub(crate) fn new(framing: Framing, limit: usize) -> FrameReader {
        FrameReader {
            framing,
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            beginning: Vec::new(),
            has_started: false,
            is_foreign: false,
        }
    }

    /// Reads from the front of `chunk` and returns the next complete event, or `None` if the chunk is used up.
    pub(crate) fn next_event(&mut self, chunk: &mut &[u8]) -> Result<Option<String>, Trouble> {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_cr) && chunk[0] == b'\n' {
                self.take(chunk, 1);
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', chunk);
            let length = end.unwrap_or(chunk.len());
            if self.line.len() + self.data.len() + length > self.limit {
                return Err(Trouble::TooMuch { what: "bytes in one event", limit: self.limit });
            }
            let part = self.take(chunk, length);
            self.line.extend_from_slice(part);
            if end.is_none() {
                break;
            }
            self.after_cr = self.take(chunk, 1) == b"\r";
            if let Some(event) = self.end_line()? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Returns the event that the end of the response leaves without its final line break, if there is one.
    pub(crate) fn finish(&mut self) -> Result<Option<String>, Trouble> {
        let is_cut_field = !self.has_started && SSE_FIELDS.iter().any(|field| field.starts_with(&self.line));
        if is_cut_field && self.framing == Framing::ServerSentEvents {
            return Ok(None);
        }
        if !self.line.is_empty()
            && let Some(event) = self.end_line()?
        {
            return Ok(Some(event));
        }
        if self.is_foreign {
            return Err(self.not_events());
        }
        self.dispatch()
    }

    /// Returns the error for a response that is not in this framing, with its beginning.
    pub(crate) fn not_events(&self) -> Trouble {
        let text = String::from_utf8_lossy(&self.beginning);
        Trouble::NotEvents(text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect())
    }

    fn take<'a>(&mut self, chunk: &mut &'a [u8], length: usize) -> &'a [u8] {
        let (part, rest) = chunk.split_at(length);
        *chunk = rest;
        let room = MAX_SHOWN_BYTES - self.beginning.len();
        self.beginning.extend_from_slice(&part[..length.min(room)]);
        part
    }

    fn end_line(&mut self) -> Result<Option<String>, Trouble> {
        if self.is_foreign {
            self.line.clear();
            // The error shows the same beginning however the response was split.
            let is_enough = self.beginning.len() == MAX_SHOWN_BYTES;
            return if is_enough { Err(self.not_events()) } else { Ok(None) };
        }
        let line = std::mem::take(&mut self.line);
        let line =
            if self.has_started { &line[..] } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line) };
        if !self.has_started && !line.is_empty() {
            self.has_started = true;
            self.is_foreign = !self.is_first_line(line);
        }
        match self.framing {
            _ if self.is_foreign => Ok(None),
            Framing::JsonLines => {
                self.data.extend_from_slice(line.trim_ascii());
                self.has_data = !self.data.is_empty();
                self.dispatch()
            }
            Framing::ServerSentEvents if line.is_empty() => self.dispatch(),
            Framing::ServerSentEvents => {
                self.set_field(line);
                Ok(None)
            }
        }
    }

    fn is_first_line(&self, line: &[u8]) -> bool {
        match self.framing {
            Framing::JsonLines => line.trim_ascii().starts_with(b"{"),
            Framing::ServerSentEvents => {
                let is_field = |field: &&[u8]| line.starts_with(field) || *line == field[..field.len() - 1];
                line[0] == b':' || SSE_FIELDS.iter().any(is_field)
            }
        }
    }

    /// Keeps a line of data. The other fields say nothing that the data does not say.
    fn set_field(&mut self, line: &[u8]) {
        let Some(value) = line.strip_prefix(b"data") else { return };
        let Some(value) = value.strip_prefix(b":").or(value.is_empty().then_some(value)) else { return };
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
    }

    fn dispatch(&mut self) -> Result<Option<String>, Trouble> {
        if !std::mem::take(&mut self.has_data) {
            return Ok(None);
        }
        let data = std::mem::take(&mut self.data);
        String::from_utf8(data).map(Some).map_err(|_| Trouble::garbled("an event is not valid UTF-8"))
    }
}
