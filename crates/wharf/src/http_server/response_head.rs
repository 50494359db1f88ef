//! Writes the head of a response.

use super::request_head::has_option;
use bytes::{BufMut, BytesMut};
use http::{
    HeaderValue, Response, StatusCode, Version,
    header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING},
};
use std::{
    cell::RefCell,
    io::Write,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Generous size of a head, in bytes.
const HEAD_BYTES: usize = 512;

/// How the end of a response's body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseFraming {
    /// The response has no body, whatever its headers say.
    Nothing,
    Length(u64),
    Chunks,
    /// The body ends with the connection.
    UntilClose,
}

/// The request that a response belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredRequest {
    pub(super) version: Version,
    pub(super) is_head: bool,
}

impl ResponseFraming {
    /// Chooses the framing of a response with a body of this length, if it is known.
    pub(super) fn of(status: StatusCode, length: Option<u64>, request: AnsweredRequest) -> ResponseFraming {
        let has_body = !request.is_head
            && !status.is_informational()
            && ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        match length {
            _ if !has_body => ResponseFraming::Nothing,
            Some(length) => ResponseFraming::Length(length),
            None if request.version == Version::HTTP_10 => ResponseFraming::UntilClose,
            None => ResponseFraming::Chunks,
        }
    }
}

/// Writes status line and headers. `length` is the length of the body, if it is known.
pub(super) fn write_head<B>(
    response: &Response<B>,
    framing: ResponseFraming,
    length: Option<u64>,
    request: AnsweredRequest,
    keeps_open: bool,
) -> BytesMut {
    let mut head = BytesMut::with_capacity(HEAD_BYTES);
    let status = response.status();
    head.put_slice(if request.version == Version::HTTP_10 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    head.put_slice(status.as_str().as_bytes());
    head.put_u8(b' ');
    head.put_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    head.put_slice(b"\r\n");
    let headers = response.headers();
    for (name, value) in headers {
        if name != CONTENT_LENGTH && name != TRANSFER_ENCODING {
            put_header(&mut head, name.as_str(), value);
        }
    }
    match (framing, length) {
        (ResponseFraming::Chunks, _) => head.put_slice(b"transfer-encoding: chunked\r\n"),
        (ResponseFraming::Length(length), _) => put_length(&mut head, length),
        // The length that a GET would have.
        (ResponseFraming::Nothing, Some(length)) if request.is_head => put_length(&mut head, length),
        _ => {}
    }
    match keeps_open {
        false if !has_option(headers, "close") => head.put_slice(b"connection: close\r\n"),
        true if request.version == Version::HTTP_10 => head.put_slice(b"connection: keep-alive\r\n"),
        _ => {}
    }
    if !headers.contains_key(DATE) {
        put_date(&mut head);
    }
    head.put_slice(b"\r\n");
    head
}

fn put_header(head: &mut BytesMut, name: &str, value: &HeaderValue) {
    head.put_slice(name.as_bytes());
    head.put_slice(b": ");
    head.put_slice(value.as_bytes());
    head.put_slice(b"\r\n");
}

fn put_length(head: &mut BytesMut, length: u64) {
    // Writing to memory cannot fail.
    let _ = write!(head.writer(), "content-length: {length}\r\n");
}

/// Writes the size of a chunk.
pub(super) fn put_chunk_size(out: &mut BytesMut, size: usize) {
    let _ = write!(out.writer(), "{size:X}\r\n");
}

/// The `Date` header of one second.
struct CachedDate {
    second: u64,
    line: Vec<u8>,
}

thread_local! {
    static DATE_LINE: RefCell<CachedDate> = const { RefCell::new(CachedDate { second: 0, line: Vec::new() }) };
}

fn put_date(head: &mut BytesMut) {
    let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    DATE_LINE.with_borrow_mut(|cached| {
        if cached.second != second || cached.line.is_empty() {
            let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
            *cached = CachedDate { second, line: format!("date: {date}\r\n").into_bytes() };
        }
        head.put_slice(&cached.line);
    });
}

/// Returns whether the response closes the connection itself.
pub(super) fn closes<B>(response: &Response<B>) -> bool {
    response.headers().contains_key(CONNECTION) && has_option(response.headers(), "close")
}
