//! Reads the head of a request, strictly, to prevent request smuggling.
//!
//! If a head is ambiguous, a proxy and this server may disagree about where a body ends and the next request begins.
//! So every line has to end in CR LF, and a head may state the body's length at most once, with either
//! `Content-Length` or `Transfer-Encoding: chunked`.

use bytes::{Buf, Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version,
    header::{CONNECTION, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING},
};
use memchr::memchr;
use std::mem::MaybeUninit;

/// Maximum size of a head, in bytes.
const MAX_HEAD_BYTES: usize = 256 << 10;

/// Maximum size of a request target, in bytes: the limit of [`Uri`].
const MAX_TARGET_BYTES: usize = (u16::MAX - 1) as usize;

/// Maximum number of headers.
const MAX_HEADERS: usize = 100;

/// Maximum number of digits of `Content-Length`.
const MAX_LENGTH_DIGITS: usize = 20;

/// A request without its body.
#[derive(Clone, Debug)]
pub(super) struct RequestHead {
    pub(super) request: Request<()>,
    pub(super) body: BodyLength,
    /// Whether the client wants to send another request on the connection.
    pub(super) keeps_open: bool,
    /// Whether the client waits for permission to send the body.
    pub(super) expects_continue: bool,
}

/// The length of a body as the head states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Known(u64),
    Chunked,
}

/// The reason why a head is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RejectedHead {
    Malformed,
    TooLarge,
    TargetTooLong,
}

/// Finds the end of a head in bytes that arrive in pieces, and checks the line endings.
#[derive(Debug, Default)]
pub(super) struct HeadReader {
    /// Number of bytes that were searched for line endings.
    searched: usize,
    /// Offset of the current line.
    line: usize,
}

impl RejectedHead {
    pub(super) fn status(self) -> StatusCode {
        match self {
            RejectedHead::Malformed => StatusCode::BAD_REQUEST,
            RejectedHead::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            RejectedHead::TargetTooLong => StatusCode::URI_TOO_LONG,
        }
    }

    /// The text of the response.
    pub(super) fn message(self) -> &'static str {
        match self {
            RejectedHead::Malformed => "the request is not valid HTTP/1.1\n",
            RejectedHead::TooLarge => "the head of the request is too large\n",
            RejectedHead::TargetTooLong => "the request target is too long\n",
        }
    }
}

impl HeadReader {
    /// Returns whether no part of the next head was searched.
    pub(super) fn is_at_start(&self) -> bool {
        self.searched == 0
    }

    /// Takes the next head from `unread`, or returns `None` if it is not complete. The request shares the memory that
    /// `store` returns for its bytes.
    pub(super) fn take(
        &mut self,
        unread: &mut BytesMut,
        store: impl FnOnce(Bytes) -> Bytes,
    ) -> Result<Option<RequestHead>, RejectedHead> {
        while let Some(found) = memchr(b'\n', &unread[self.searched..]) {
            let end = self.searched + found;
            if end >= MAX_HEAD_BYTES {
                return Err(RejectedHead::TooLarge);
            }
            let line = unread[self.line..end].strip_suffix(b"\r").ok_or(RejectedHead::Malformed)?;
            let is_empty = line.is_empty();
            (self.searched, self.line) = (end + 1, end + 1);
            if is_empty && end == 1 {
                // Empty lines before a request are allowed.
                unread.advance(2);
                *self = HeadReader::default();
            } else if is_empty {
                *self = HeadReader::default();
                return RequestHead::parse(&store(unread.split_to(end + 1).freeze())).map(Some);
            }
        }
        self.searched = unread.len();
        match unread.len() > MAX_HEAD_BYTES {
            true => Err(RejectedHead::TooLarge),
            false => Ok(None),
        }
    }
}

impl RequestHead {
    fn parse(head: &Bytes) -> Result<RequestHead, RejectedHead> {
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut []);
        match parsed.parse_with_uninit_headers(head, &mut headers) {
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(RejectedHead::TooLarge),
            Ok(httparse::Status::Partial) | Err(_) => return Err(RejectedHead::Malformed),
        }
        let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
            return Err(RejectedHead::Malformed);
        };
        if target.len() > MAX_TARGET_BYTES {
            return Err(RejectedHead::TargetTooLong);
        }
        let version = if version == 0 { Version::HTTP_10 } else { Version::HTTP_11 };
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(malformed)?;
        *request.uri_mut() = Uri::from_maybe_shared(head.slice_ref(target.as_bytes())).map_err(malformed)?;
        *request.version_mut() = version;
        *request.headers_mut() = header_map(head, parsed.headers)?;
        let headers = request.headers();
        let body = body_length(headers, version)?;
        let keeps_open = match version {
            Version::HTTP_10 => has_option(headers, "keep-alive"),
            _ => !has_option(headers, "close"),
        };
        let expects_continue =
            headers.get(EXPECT).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        Ok(RequestHead {
            request,
            body,
            keeps_open,
            expects_continue: expects_continue && version == Version::HTTP_11,
        })
    }
}

/// Builds the map of headers. The values share the memory of the head.
fn header_map(head: &Bytes, parsed: &[httparse::Header<'_>]) -> Result<HeaderMap, RejectedHead> {
    let mut headers = HeaderMap::with_capacity(parsed.len());
    for header in parsed {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(malformed)?;
        let value = HeaderValue::from_maybe_shared(head.slice_ref(header.value)).map_err(malformed)?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn body_length(headers: &HeaderMap, version: Version) -> Result<BodyLength, RejectedHead> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    match (lengths.next(), encodings.next(), lengths.next(), encodings.next()) {
        (None, None, ..) => Ok(BodyLength::Known(0)),
        (Some(length), None, None, _) => {
            decimal(length.as_bytes()).map(BodyLength::Known).ok_or(RejectedHead::Malformed)
        }
        (None, Some(encoding), _, None)
            if version == Version::HTTP_11 && encoding.as_bytes().eq_ignore_ascii_case(b"chunked") =>
        {
            Ok(BodyLength::Chunked)
        }
        _ => Err(RejectedHead::Malformed),
    }
}

/// Parses a number that consists of digits only; a sign is invalid.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    let is_number =
        !text.is_empty() && text.len() <= MAX_LENGTH_DIGITS && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

/// Returns whether `Connection` has this option.
pub(super) fn has_option(headers: &HeaderMap, option: &str) -> bool {
    let mut options = headers.get_all(CONNECTION).iter().flat_map(|it| it.as_bytes().split(|it| *it == b','));
    options.any(|it| it.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
}

fn malformed<E>(_: E) -> RejectedHead {
    RejectedHead::Malformed
}
