//! Reads and writes the JSON-RPC envelope; payloads stay raw JSON.
//!
//! Reading is one pass over the frame. This module also recognizes frames that are not messages, because only the
//! bytes tell: blank lines, log output on stdout, and damaged messages.

pub use crate::json::DEPTH_LIMIT;
use crate::{
    Raw, id_scan,
    json::{
        Members,
        scan::{Trust, scan_object},
        surrogates,
    },
};
use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt, io::Write};

/// Maximum number of messages in a batch.
const BATCH_LIMIT: usize = 1_000;

/// Generous size of a request beside its method and params, in bytes.
const OVERHEAD: usize = 80;

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Request.
    Request {
        /// Id chosen by the sender: any JSON, echoed unchanged.
        id: Raw,
        /// JSON-RPC method.
        method: String,
        /// JSON-RPC parameters.
        params: Option<Raw>,
    },
    /// Notification.
    Notification {
        /// JSON-RPC method.
        method: String,
        /// JSON-RPC parameters.
        params: Option<Raw>,
    },
    /// Response to one of our requests.
    Answer {
        /// Request id; `None` if it cannot be one of ours.
        id: Option<u64>,
        /// Result, or the peer's error.
        outcome: Result<Raw, RpcError>,
    },
}

/// JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// JSON-RPC error code.
    pub code: i64,
    /// Error message.
    pub message: String,
    /// Additional data.
    pub data: Option<Raw>,
}

/// Classification of one frame.
#[derive(Debug, PartialEq)]
pub enum ParsedFrame {
    /// One message.
    Message(Message),
    /// JSON array of messages, each read separately.
    Batch(Vec<ParsedFrame>),
    /// Blank line, or text that is not a message.
    Noise,
    /// Message that cannot be understood.
    Malformed {
        /// Id of the request that it responds to, if it can be found.
        id: Option<u64>,
        /// Description of the problem.
        why: Cow<'static, str>,
    },
}

/// Top-level members of a JSON-RPC message, as written. `null` counts as absent.
#[derive(Default)]
struct Envelope<'a> {
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
}

/// Members of an envelope as the JSON library decodes them.
#[derive(Deserialize)]
struct DecodedEnvelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Members of a JSON-RPC error.
#[derive(Deserialize)]
struct ErrorBody<'a> {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// Reads one frame. A lone surrogate, which could not be decoded, becomes U+FFFD.
///
/// `jsonrpc` is not required: several servers omit it, and the other members identify a message.
pub fn read(frame: &Bytes) -> ParsedFrame {
    if frame.first() == Some(&b'{')
        && let Ok(text) = std::str::from_utf8(frame)
        && let Some(envelope) = Envelope::scan(text)
    {
        return classify(frame, &envelope);
    }
    match surrogates::replace_lone(frame) {
        None => read_decodable(frame),
        Some(repaired) => read_decodable(&repaired),
    }
}

fn read_decodable(frame: &Bytes) -> ParsedFrame {
    let text = trimmed(frame);
    let sliced;
    let frame = if text.len() == frame.len() {
        frame
    } else {
        sliced = frame.slice_ref(text);
        &sliced
    };
    match frame.first() {
        Some(b'{') => read_object(frame),
        Some(b'[') => read_batch(frame),
        _ => ParsedFrame::Noise,
    }
}

/// Appends `{"jsonrpc":"2.0","id":…,"method":…,"params":…}`.
pub fn write_request(out: &mut BytesMut, id: u64, method: &str, params: Option<&Raw>) {
    out.reserve(OVERHEAD + method.len() + params.map_or(0, |params| params.as_bytes().len()));
    let _ = write!(out.writer(), r#"{{"jsonrpc":"2.0","id":{id},"method":"#);
    write_method_and_params(out, method, params);
}

/// Appends `{"jsonrpc":"2.0","method":…,"params":…}`.
pub fn write_notification(out: &mut BytesMut, method: &str, params: Option<&Raw>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    write_method_and_params(out, method, params);
}

/// Appends what precedes the result in the response to a request from the peer, and returns what follows it.
pub fn write_around_result(out: &mut BytesMut, id: &Raw) -> &'static [u8] {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":"#);
    b"}"
}

/// Appends the response to a request from the peer.
pub fn write_answer(out: &mut BytesMut, id: &Raw, outcome: &Result<Raw, RpcError>) {
    match outcome {
        Ok(result) => {
            let end = write_around_result(out, id);
            out.extend_from_slice(result.as_bytes());
            out.extend_from_slice(end);
        }
        Err(error) => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(br#","error":"#);
            error.write(out);
            out.extend_from_slice(b"}");
        }
    }
}

impl RpcError {
    /// The method does not exist or is not supported.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params are invalid.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The message is not a valid request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The text is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// Internal error.
    pub const INTERNAL: i64 = -32603;
    /// 2026-07-28: a header contradicts the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// 2026-07-28: the request needs a capability that the client did not declare.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// 2026-07-28: the protocol version is not supported.
    pub const UNSUPPORTED_VERSION: i64 = -32022;

    /// Creates an error from a code and a message.
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// Creates the error for an unsupported method.
    pub fn method_not_found(method: &str) -> RpcError {
        RpcError::new(RpcError::METHOD_NOT_FOUND, format!("method not found: {method}"))
    }

    /// Reads an error object.
    pub fn read(raw: &Raw) -> Option<RpcError> {
        let ErrorBody { code, message, data } = raw.decode().ok()?;
        Some(RpcError { code, message, data: data.and_then(|it| Raw::parse(it.get().to_owned()).ok()) })
    }

    /// Returns the error object.
    pub fn to_raw(&self) -> Raw {
        let mut out = BytesMut::new();
        self.write(&mut out);
        Raw::spliced(out)
    }

    fn write(&self, out: &mut BytesMut) {
        let _ = write!(out.writer(), r#"{{"code":{},"message":"#, self.code);
        write_string(out, &self.message);
        if let Some(data) = &self.data {
            out.extend_from_slice(br#","data":"#);
            out.extend_from_slice(data.as_bytes());
        }
        out.extend_from_slice(b"}");
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

fn write_method_and_params(out: &mut BytesMut, method: &str, params: Option<&Raw>) {
    write_string(out, method);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params.as_bytes());
    }
    out.extend_from_slice(b"}");
}

fn write_string(out: &mut BytesMut, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out.writer(), text);
}

/// Strips a byte order mark and surrounding whitespace.
fn trimmed(frame: &[u8]) -> &[u8] {
    let text = frame.trim_ascii();
    text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).trim_ascii()
}

fn read_object(frame: &Bytes) -> ParsedFrame {
    if id_scan::deeper_than(frame, DEPTH_LIMIT) {
        return malformed(frame, format!("a message is nested deeper than {DEPTH_LIMIT} levels"));
    }
    read_shallow_object(frame)
}

fn read_shallow_object(frame: &Bytes) -> ParsedFrame {
    // Checking the whole text once is cheaper than having the JSON library check each string of it.
    let envelope = match std::str::from_utf8(frame) {
        Ok(text) => serde_json::from_str::<DecodedEnvelope<'_>>(text),
        Err(_) => serde_json::from_slice(frame),
    };
    match envelope {
        Ok(envelope) => classify(frame, &Envelope::of(&envelope)),
        Err(error) => classify_unreadable(frame, &error),
    }
}

impl<'a> Envelope<'a> {
    /// Reads most messages without the JSON library. Returns `None` for the others, among them all that are wrong.
    fn scan(text: &'a str) -> Option<Envelope<'a>> {
        let mut envelope = Envelope::default();
        let mut is_usual = true;
        scan_object(text.as_bytes(), Trust::Unchecked, |name, value| {
            let member = match name {
                b"id" => &mut envelope.id,
                b"method" => &mut envelope.method,
                b"params" => &mut envelope.params,
                b"result" => &mut envelope.result,
                b"error" => &mut envelope.error,
                _ => return,
            };
            let start = value.as_ptr() as usize - text.as_ptr() as usize;
            // A repeated name is an error, which the library reports.
            is_usual &= member.is_none() && value != b"null";
            *member = text.get(start..start + value.len());
        })?;
        is_usual.then_some(envelope)
    }

    fn of(decoded: &DecodedEnvelope<'a>) -> Envelope<'a> {
        let DecodedEnvelope { id, method, params, result, error } = decoded;
        let [id, method, params, result, error] =
            [id, method, params, result, error].map(|it| it.map(RawValue::get));
        Envelope { id, method, params, result, error }
    }
}

fn read_batch(frame: &Bytes) -> ParsedFrame {
    match serde_json::from_slice::<Vec<&RawValue>>(frame) {
        Ok(items) if items.len() > BATCH_LIMIT => {
            ParsedFrame::Malformed { id: None, why: "a batch is too large".into() }
        }
        Ok(items) => ParsedFrame::Batch(
            items
                .into_iter()
                .filter(|item| item.get().starts_with('{'))
                .map(|item| read_object(&Raw::within(frame, item).into_bytes()))
                .collect(),
        ),
        // `[info] listening` is a log line.
        Err(error) if looks_like_message(frame) => classify_unreadable(frame, &error),
        Err(_) => ParsedFrame::Noise,
    }
}

fn classify(frame: &Bytes, envelope: &Envelope<'_>) -> ParsedFrame {
    let raw = |value: &str| Raw::slice_of(frame, value);
    let Envelope { id, method, params, result, error } = *envelope;
    if let Some(method) = method {
        let Some(method) = decode_string(method) else {
            return malformed(frame, "`method` is not a string");
        };
        let params = params.map(raw);
        return ParsedFrame::Message(match id {
            Some(id) => Message::Request { id: raw(id), method, params },
            None => Message::Notification { method, params },
        });
    }
    let id = id.and_then(|id| id_scan::number(id.as_bytes()));
    let outcome = match (result, error) {
        (Some(result), None) => Ok(raw(result)),
        (None, Some(error)) => match read_error(frame, error) {
            Some(error) => Err(error),
            None => return ParsedFrame::Malformed { id, why: "`error` is not a JSON-RPC error".into() },
        },
        (Some(_), Some(_)) => {
            return ParsedFrame::Malformed { id, why: "an answer has both `result` and `error`".into() };
        }
        (None, None) if id.is_some() => {
            return ParsedFrame::Malformed { id, why: "an answer has neither `result` nor `error`".into() };
        }
        // A structured log line, for example.
        (None, None) => return ParsedFrame::Noise,
    };
    ParsedFrame::Message(Message::Answer { id, outcome })
}

/// Decodes a JSON string.
fn decode_string(text: &str) -> Option<String> {
    let quoted = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    match quoted.filter(|it| !it.contains('\\')) {
        Some(plain) => Some(plain.to_owned()),
        None => serde_json::from_str(text).ok(),
    }
}

fn read_error(frame: &Bytes, error: &str) -> Option<RpcError> {
    let ErrorBody { code, message, data } = serde_json::from_str(error).ok()?;
    Some(RpcError { code, message, data: data.map(|data| Raw::within(frame, data)) })
}

fn classify_unreadable(frame: &Bytes, error: &serde_json::Error) -> ParsedFrame {
    if error.is_data() && error.to_string().starts_with("duplicate field `id`") {
        return ParsedFrame::Malformed { id: unambiguous_id(frame), why: "a message has two ids".into() };
    }
    if error.is_eof() && id_scan::request_id(frame).is_none() {
        return malformed(frame, "a message is truncated, or contains newlines");
    }
    if looks_like_message(frame) || id_scan::request_id(frame).is_some() {
        return malformed(frame, format!("a message is not valid JSON: {error}"));
    }
    ParsedFrame::Noise
}

/// Returns the id of a message with several `id` members if all are equal; otherwise the intended one is unknown.
fn unambiguous_id(frame: &[u8]) -> Option<u64> {
    let Members(members) = serde_json::from_slice(frame).ok()?;
    let mut ids = members.iter().filter(|(name, _)| name == "id").map(|(_, id)| id.get());
    let first = ids.next()?;
    ids.all(|id| id == first).then(|| id_scan::number(first.as_bytes()))?
}

fn looks_like_message(frame: &[u8]) -> bool {
    memchr::memmem::find(frame, b"\"jsonrpc\"").is_some()
}

fn malformed(frame: &[u8], why: impl Into<Cow<'static, str>>) -> ParsedFrame {
    ParsedFrame::Malformed { id: id_scan::request_id(frame), why: why.into() }
}

#[cfg(test)]
mod tests;
