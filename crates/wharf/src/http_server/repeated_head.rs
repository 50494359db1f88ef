//! Recognizes a head that repeats the last one of its connection.
//!
//! Most clients send the same head with each request, but for the length of the body. To compare it costs a sixth of
//! reading it. What a handler has found out about a head can be kept with it.

use super::{
    ConnectionHandle,
    request_head::{BodyLength, HeadReader, RejectedHead, RequestHead, decimal},
};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderValue, header::CONTENT_LENGTH};

/// Maximum size of a head that is kept, in bytes.
const MAX_KEPT_BYTES: usize = 4 << 10;

/// Maximum number of digits that are compared. A longer number is left to the reader.
const MAX_DIGITS: usize = 19;

/// After this many heads in a row that differ, none is kept any more.
const MAX_DIFFERENT: u8 = 8;

/// Reads the heads of one connection and keeps the last one.
#[derive(Debug, Default)]
pub(super) struct RepeatingReader {
    reader: HeadReader,
    kept: Option<Box<KeptHead>>,
    /// Number of heads that differed from the one before, since one was the same.
    different: u8,
}

#[derive(Debug)]
struct KeptHead {
    head: RequestHead,
    /// The bytes of the head before the number in `Content-Length`, or all of them.
    before: Bytes,
    /// The number in `Content-Length` and the bytes after it.
    length: Option<(Bytes, Bytes)>,
}

impl RepeatingReader {
    /// Takes the next head from `unread`, or returns `None` if it is not complete. `handle` forgets what was remembered
    /// for another head.
    pub(super) fn take(
        &mut self,
        unread: &mut BytesMut,
        handle: &ConnectionHandle,
    ) -> Result<Option<RequestHead>, RejectedHead> {
        if self.reader.is_at_start()
            && let Some(head) = self.kept.as_mut().and_then(|it| it.repeat(unread))
        {
            self.different = 0;
            return Ok(Some(head));
        }
        let is_kept = self.different < MAX_DIFFERENT;
        let mut copy = Bytes::new();
        let head = self.reader.take(unread, |head| {
            if is_kept && head.len() <= MAX_KEPT_BYTES {
                // The copy does not hold on to the body, which is behind the head in memory.
                copy = Bytes::copy_from_slice(&head);
                return copy.clone();
            }
            head
        })?;
        if let Some(head) = &head {
            handle.forget();
            self.different = self.different.saturating_add(1);
            self.kept = (!copy.is_empty()).then(|| Box::new(KeptHead::of(head.clone(), copy)));
        }
        Ok(head)
    }
}

impl KeptHead {
    fn of(head: RequestHead, bytes: Bytes) -> KeptHead {
        let value = head.request.headers().get(CONTENT_LENGTH).map(HeaderValue::as_bytes);
        // The value is a part of `bytes`.
        let place = value.and_then(|it| {
            let start = it.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
            Some(start..start + it.len()).filter(|place| bytes.get(place.clone()) == Some(it))
        });
        let Some(place) = place else { return KeptHead { head, before: bytes, length: None } };
        let (before, after) = (bytes.slice(..place.start), bytes.slice(place.end..));
        KeptHead { head, before, length: Some((bytes.slice(place), after)) }
    }

    /// Takes the head from `unread` if it is this one, with any length of the body.
    fn repeat(&mut self, unread: &mut BytesMut) -> Option<RequestHead> {
        let rest = unread.strip_prefix(&*self.before)?;
        let mut taken = self.before.len();
        if let Some((length, after)) = &mut self.length {
            let digits = rest.iter().take(MAX_DIGITS).take_while(|it| it.is_ascii_digit()).count();
            let (number, rest) = rest.split_at(digits);
            if !rest.starts_with(after) {
                return None;
            }
            taken += digits + after.len();
            if number != &**length {
                self.head.body = decimal(number).map(BodyLength::Known)?;
                *length = Bytes::copy_from_slice(number);
                let value = HeaderValue::from_maybe_shared(length.clone()).ok()?;
                self.head.request.headers_mut().insert(CONTENT_LENGTH, value);
            }
        }
        unread.advance(taken);
        Some(self.head.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nX-Last: 1\r\n\r\n";

    /// Reads all heads that are there, each with the value that was remembered when it was read.
    fn read(reader: &mut RepeatingReader, handle: &ConnectionHandle, text: &str) -> Vec<String> {
        let mut unread = BytesMut::from(text);
        let mut found = Vec::new();
        loop {
            match reader.take(&mut unread, handle) {
                Ok(Some(head)) => {
                    let BodyLength::Known(length) = head.body else { panic!("{head:?}") };
                    let stated = head.request.headers().get(CONTENT_LENGTH);
                    let stated = stated.map_or("-", |it| it.to_str().expect("a number"));
                    let path = head.request.uri().path();
                    let known = handle.recall::<String>().map_or("new".to_owned(), |it| (*it).clone());
                    found.push(format!("{path} {stated} {known}"));
                    handle.remember(path.to_owned());
                    unread.advance(length as usize);
                }
                Ok(None) => return found,
                Err(rejected) => {
                    found.push(format!("{rejected:?}"));
                    return found;
                }
            }
        }
    }

    #[test]
    fn only_a_head_that_repeats_recalls_what_was_remembered() {
        let (mut reader, handle) = (RepeatingReader::default(), ConnectionHandle::default());
        let longer = HEAD.replace(": 4", ": 12");
        let other = HEAD.replace("/mcp", "/ready");
        let requests = format!(
            "{HEAD}body{HEAD}body{longer}longer body!{longer}longer body!{HEAD}body{other}body{HEAD}body"
        );
        let expected = [
            "/mcp 4 new",
            "/mcp 4 /mcp",
            "/mcp 12 /mcp",
            "/mcp 12 /mcp",
            "/mcp 4 /mcp",
            "/ready 4 new",
            "/mcp 4 new",
        ];
        assert_eq!(read(&mut reader, &handle, &requests), expected);
    }

    #[test]
    fn waiting_for_the_next_head_forgets_nothing() {
        let (mut reader, handle) = (RepeatingReader::default(), ConnectionHandle::default());
        for expected in ["/mcp 4 new", "/mcp 4 /mcp", "/mcp 4 /mcp"] {
            assert!(matches!(reader.take(&mut BytesMut::new(), &handle), Ok(None)));
            assert_eq!(read(&mut reader, &handle, &format!("{HEAD}body")), [expected]);
        }
    }

    #[test]
    fn a_head_without_a_length_repeats_as_a_whole() {
        let (mut reader, handle) = (RepeatingReader::default(), ConnectionHandle::default());
        let get = "GET /7 HTTP/1.1\r\nHost: a\r\n\r\n";
        let found = read(&mut reader, &handle, &format!("{get}{get}{}", get.replace("/7", "/77")));
        assert_eq!(found, ["/7 - new", "/7 - /7", "/77 - new"]);
    }

    #[test]
    fn a_repeated_head_is_checked_as_strictly_as_the_first() {
        for (wrong, expected) in [
            (HEAD.replace(": 4", ": +4"), "Malformed"),
            (HEAD.replace(": 4", ": "), "Malformed"),
            (HEAD.replace(": 4", ": 4a"), "Malformed"),
            (HEAD.replace(": 4", ": 99999999999999999999"), "Malformed"),
            (HEAD.replace(": 4\r\n", ": 4\n"), "Malformed"),
            (HEAD.replace("X-Last: 1", "Content-Length: 4"), "Malformed"),
            (HEAD.replace("X-Last: 1", "Transfer-Encoding: chunked"), "Malformed"),
        ] {
            let (mut reader, handle) = (RepeatingReader::default(), ConnectionHandle::default());
            let found = read(&mut reader, &handle, &format!("{HEAD}body{HEAD}body{wrong}body"));
            assert_eq!(found, ["/mcp 4 new", "/mcp 4 /mcp", expected], "{wrong:?}");
        }
    }

    #[test]
    fn heads_that_always_differ_are_not_kept() {
        let (mut reader, handle) = (RepeatingReader::default(), ConnectionHandle::default());
        for number in 0..=MAX_DIFFERENT {
            let head = HEAD.replace("/mcp", &format!("/{number}"));
            assert_eq!(read(&mut reader, &handle, &format!("{head}body")), [format!("/{number} 4 new")]);
        }
        assert!(reader.kept.is_none());
        assert_eq!(
            read(&mut reader, &handle, &format!("{HEAD}body{HEAD}body")),
            ["/mcp 4 new", "/mcp 4 new"]
        );
    }

    #[test]
    fn heads_arrive_in_pieces() {
        let (mut reader, handle) = (RepeatingReader::default(), ConnectionHandle::default());
        let mut unread = BytesMut::new();
        let mut heads = 0;
        for byte in HEAD.repeat(3).bytes() {
            unread.extend_from_slice(&[byte]);
            heads += usize::from(reader.take(&mut unread, &handle).expect("valid").is_some());
        }
        assert_eq!((heads, unread.len()), (3, 0));
    }
}
