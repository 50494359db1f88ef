//! Encodes the head of a request and parses the head of a response. Does no I/O.
//!
//! A call looks at a few headers of its response only, so the map of all headers is built when it is asked for.

use super::{
    headers,
    plain_body::{BodyFraming, BodyHeaders},
    plain_connection::invalid,
};
use crate::{Outbound, events::is_event_stream_type};
use ::http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING},
};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::{io, sync::OnceLock};

/// Maximum number of headers of a response.
const MAX_HEADERS: usize = 100;

/// Size up to which a body is copied behind its head, so that both are one piece of memory.
const MAX_COPIED_BODY: usize = 16 << 10;

/// Generous size of a head, in bytes.
const HEAD_BYTES: usize = 512;

/// A request as it is written.
#[derive(Debug)]
pub(super) struct EncodedRequest {
    pub(super) head: BytesMut,
    /// The body, unless it is part of `head`.
    pub(super) body: Bytes,
}

/// The part of a request's head that is the same for every message to one URL.
#[derive(Debug)]
pub(super) struct RequestHead {
    /// Request line and `Host`.
    start: Vec<u8>,
    /// `start` with all configured headers, unless a message may have to replace one of them.
    whole: Option<Vec<u8>>,
}

/// Status and headers of a response.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    pub(super) framing: BodyFraming,
    /// Whether the server keeps the connection open after the response.
    pub(super) keeps_open: bool,
    pub(super) is_event_stream: bool,
    /// Whether the body has a `Content-Encoding`.
    pub(super) is_encoded: bool,
    text: Bytes,
    headers: OnceLock<HeaderMap>,
}

impl RequestHead {
    pub(super) fn new(path: &str, host: &HeaderValue, configured: &HeaderMap) -> RequestHead {
        let mut start = format!("POST {path} HTTP/1.1\r\nhost: ").into_bytes();
        start.extend_from_slice(host.as_bytes());
        let is_replaced = |name: &HeaderName| {
            [ACCEPT, CONTENT_TYPE, HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].contains(name)
                || ["mcp-", "trace"].iter().any(|it| name.as_str().starts_with(it))
        };
        let whole = (!configured.keys().any(is_replaced)).then(|| {
            let mut whole = start.clone();
            let json = [(&CONTENT_TYPE, &headers::JSON), (&ACCEPT, &headers::ACCEPT_BOTH)];
            for (name, value) in configured.iter().chain(json) {
                write_header(&mut whole, name.as_str(), value.as_bytes());
            }
            whole
        });
        RequestHead { start, whole }
    }

    /// Encodes a request with these headers.
    pub(super) fn with_headers(&self, headers: &HeaderMap, body: &Bytes) -> EncodedRequest {
        EncodedRequest::new(&self.start, body, |head| {
            let own = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING];
            for (name, value) in headers.iter().filter(|(name, _)| !own.contains(name)) {
                write_header(head, name.as_str(), value.as_bytes());
            }
        })
    }

    /// Encodes a message with the configured headers, without a map of headers. Returns `None` if that needs one.
    pub(super) fn with_message(
        &self,
        message: &Outbound,
        session: Option<&HeaderValue>,
        body: &Bytes,
    ) -> Option<EncodedRequest> {
        let whole = self.whole.as_ref().filter(|_| !headers::has_trace(message))?;
        Some(EncodedRequest::new(whole, body, |head| {
            session.into_iter().for_each(|it| write_header(head, headers::SESSION.as_str(), it.as_bytes()));
            headers::each_routing(message, |name, value| write_header(head, name, value.as_bytes()));
        }))
    }
}

impl EncodedRequest {
    fn new(start: &[u8], body: &Bytes, write_headers: impl FnOnce(&mut BytesMut)) -> EncodedRequest {
        let is_copied = body.len() <= MAX_COPIED_BODY;
        let mut head = BytesMut::with_capacity(HEAD_BYTES + if is_copied { body.len() } else { 0 });
        head.extend_from_slice(start);
        write_headers(&mut head);
        write_header(&mut head, CONTENT_LENGTH.as_str(), body.len().to_string().as_bytes());
        head.extend_from_slice(b"\r\n\r\n");
        if is_copied {
            head.extend_from_slice(body);
        }
        EncodedRequest { head, body: if is_copied { Bytes::new() } else { body.clone() } }
    }
}

/// Writes the line break after the line before, and a header.
fn write_header(out: &mut impl BufMut, name: &str, value: &[u8]) {
    [b"\r\n", name.as_bytes(), b": ", value].into_iter().for_each(|part| out.put_slice(part));
}

impl ResponseHead {
    /// Takes the head of the final response from the bytes that were read; `None` if it is incomplete.
    pub(super) fn take(buffer: &mut BytesMut) -> io::Result<Option<ResponseHead>> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut response = httparse::Response::new(&mut headers);
            let parsed = response.parse(buffer).map_err(|it| invalid(it.to_string()))?;
            let httparse::Status::Complete(length) = parsed else { return Ok(None) };
            let status = response.code.and_then(|it| StatusCode::from_u16(it).ok());
            let status = status.ok_or_else(|| invalid("the status is invalid"))?;
            if status == StatusCode::SWITCHING_PROTOCOLS {
                return Err(invalid("the server switched to another protocol"));
            }
            if status.is_informational() {
                buffer.advance(length);
                continue;
            }
            let facts = HeadFacts::of(response.headers);
            let framing = facts.body.framing(status)?;
            let is_kept = response.version == Some(1) && !facts.closes;
            let keeps_open = is_kept && framing != BodyFraming::UntilClosed;
            let HeadFacts { is_event_stream, is_encoded, .. } = facts;
            let (text, headers) = (buffer.split_to(length).freeze(), OnceLock::new());
            return Ok(Some(ResponseHead {
                status,
                framing,
                keeps_open,
                is_event_stream,
                is_encoded,
                text,
                headers,
            }));
        }
    }

    /// All headers.
    pub(super) fn headers(&self) -> &HeaderMap {
        self.headers.get_or_init(|| {
            let mut parsed = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut response = httparse::Response::new(&mut parsed);
            // The head was parsed before, so this cannot fail.
            let _ = response.parse(&self.text);
            let pairs = response.headers.iter().filter_map(|it| {
                let name = HeaderName::from_bytes(it.name.as_bytes()).ok()?;
                Some((name, HeaderValue::from_bytes(it.value).ok()?))
            });
            let mut headers = HeaderMap::new();
            pairs.for_each(|(name, value)| _ = headers.append(name, value));
            headers
        })
    }
}

/// The headers that every response is read by.
#[derive(Default)]
struct HeadFacts<'a> {
    body: BodyHeaders<'a>,
    is_event_stream: bool,
    is_encoded: bool,
    closes: bool,
}

impl<'a> HeadFacts<'a> {
    fn of(headers: &[httparse::Header<'a>]) -> HeadFacts<'a> {
        let mut facts = HeadFacts::default();
        for header in headers {
            let is = |name: &HeaderName| header.name.eq_ignore_ascii_case(name.as_str());
            if is(&CONTENT_LENGTH) {
                facts.body.add_length(header.value);
            } else if is(&TRANSFER_ENCODING) {
                facts.body.transfer_encoding = Some(header.value);
            } else if is(&CONTENT_TYPE) {
                facts.is_event_stream = is_event_stream_type(header.value);
            } else if is(&CONTENT_ENCODING) {
                facts.is_encoded |= header.value != b"identity";
            } else if is(&CONNECTION) {
                let mut options = header.value.split(|it| *it == b',').map(<[u8]>::trim_ascii);
                facts.closes |= options.any(|it| it.eq_ignore_ascii_case(b"close"));
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str) -> io::Result<Option<ResponseHead>> {
        ResponseHead::take(&mut BytesMut::from(text))
    }

    #[test]
    fn facts_of_a_head_are_those_of_its_headers() {
        let text = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\nX: a\r\nx: b\r\n\
                    Content-Encoding: gzip\r\nConnection: x, Close\r\nTransfer-Encoding: chunked\r\n\r\nrest";
        for cut in 0..text.len() - "rest".len() {
            assert!(take(&text[..cut]).expect("valid so far").is_none(), "{cut}");
        }
        let head = take(text).expect("valid").expect("complete");
        assert!(head.is_event_stream && head.is_encoded && !head.keeps_open);
        assert!(matches!(head.framing, BodyFraming::Chunked(_)));
        assert_eq!(head.headers().get_all("x").iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn connections_are_kept_unless_the_server_closes_them() {
        for (text, keeps_open) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\n\r\n", false),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", true),
        ] {
            assert_eq!(take(text).expect("valid").expect("complete").keeps_open, keeps_open, "{text}");
        }
    }

    #[test]
    fn other_protocols_are_refused() {
        for text in ["\x16\x03\x01", "SSH-2.0-x\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 101 Up\r\n\r\n"] {
            assert_eq!(take(text).expect_err("invalid").kind(), io::ErrorKind::InvalidData, "{text}");
        }
    }

    #[test]
    fn a_message_has_the_same_headers_with_and_without_a_map() {
        let configured =
            HeaderMap::from_iter([(HeaderName::from_static("x-key"), HeaderValue::from_static("1"))]);
        let head = RequestHead::new("/mcp?a=b", &HeaderValue::from_static("localhost:1"), &configured);
        let session = HeaderValue::from_static("one");
        let routing = crate::Routing {
            version: Some("2026-07-28".into()),
            modern: true,
            name: Some("tööl".to_owned()),
            params: vec![("Region".to_owned(), "eu".to_owned())],
        };
        let message = Outbound::Request { id: 1, method: "tools/call".into(), params: None, routing };
        let body = Bytes::from_static(b"{}");
        let lines = |request: EncodedRequest| {
            let text = String::from_utf8(request.head.to_vec()).expect("text");
            let mut lines: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let written =
            lines(head.with_message(&message, Some(&session), &body).expect("no header is replaced"));
        let map = headers::of(&message, &configured, Some(session));
        assert_eq!(written, lines(head.with_headers(&map, &body)));
        assert!(written.contains(&"POST /mcp?a=b HTTP/1.1".to_owned()), "{written:?}");
        assert!(written.contains(&"content-length: 2".to_owned()), "{written:?}");
    }

    #[test]
    fn configured_headers_that_a_message_replaces_need_a_map() {
        let configured = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/plain"))]);
        let head = RequestHead::new("/", &HeaderValue::from_static("localhost"), &configured);
        let message = Outbound::Abandon { id: 1 };
        assert!(head.with_message(&message, None, &Bytes::new()).is_none());
    }
}
