//! Tests that valid requests pass unchanged, however they are split, and that invalid ones lose their line feed.

use super::{super::checked_stream::CheckedStream, Framing, Position};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};
use std::{convert::Infallible, sync::Arc};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// Valid heads and bodies.
const GOOD: &[&str] = &[
    "GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\n\r\nGET / HTTP/1.0\r\n\r\n",
    "POST /mcp HTTP/1.1\r\nHost: a\r\ncontent-length: 0\r\n\r\n",
    "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length:12\r\nAccept: */*\r\n\r\n\n\nGET \r\n\n\0\n:",
    "PATCH /x HTTP/1.1\r\nCONTENT-LENGTH: \t 3 \t\r\nTE: trailers\r\nContent-Length-Of: b\r\n\r\n\n\n\n",
    "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nX-Long: 0123456789012345678901234567890123456789012345678901234\
     567890123456789\r\n\r\n5\r\n\n\n\n\n\n\r\nA ; a=b\r\n0\r\n\r\n\r\n\r\n0\r\n0\r\n\r\n",
    "POST /x HTTP/1.1\r\ntransfer-encoding:Chunked\r\nTransfer: x\r\n\r\n01;name=\"value\"\r\nx\r\n000\r\nContent-Length: 5\r\n\r\n",
];

/// Invalid requests, up to the line feed that reveals the error.
const BAD: &[&str] = &[
    "\n",
    "GET / HTTP/1.1\n",
    "GET / HTTP/1.1\r\nHost: a\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX-Long: 0123456789012345678901234567890123456789012345678901234567890123456789\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nX: y\r\ncontent-length: 5\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n",
    "POST / HTTP/1.1\r\nContent-Length: +5\r\n",
    "POST / HTTP/1.1\r\nContent-Length:\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 0000000000000000000000000000000000000000000000000000000000000000005\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding:                                                        chunked\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding:\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n",
];

/// Feeds the text in these pieces; returns the bytes afterwards and the final position.
fn inspected(text: &str, cuts: &[Index]) -> (Vec<u8>, Position) {
    let mut bytes = text.as_bytes().to_vec();
    let mut cuts: Vec<usize> = cuts.iter().map(|it| it.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut framing = Framing::new();
    let (mut rest, mut done) = (&mut bytes[..], 0);
    for cut in cuts {
        let (piece, more) = rest.split_at_mut(cut - done);
        framing.inspect(piece);
        (rest, done) = (more, cut);
    }
    framing.inspect(rest);
    (bytes, framing.at)
}

fn good() -> impl Strategy<Value = String> {
    vec(select(GOOD), 0..6).prop_map(|it| it.concat())
}

proptest! {
    #[test]
    fn good_requests_pass_byte_for_byte(text in good(), cuts in vec(any::<Index>(), 0..40)) {
        let (bytes, at) = inspected(&text, &cuts);
        prop_assert_eq!(String::from_utf8(bytes), Ok(text));
        prop_assert_eq!(at, Position::Start);
    }

    #[test]
    fn rejected_line_loses_its_line_feed(
        before in good(),
        bad in select(BAD),
        after in good(),
        cuts in vec(any::<Index>(), 0..40),
    ) {
        let (bytes, at) = inspected(&format!("{before}{bad}{after}"), &cuts);
        let spoiled = format!("{before}{}\0{after}", &bad[..bad.len() - 1]);
        prop_assert_eq!(String::from_utf8(bytes), Ok(spoiled));
        prop_assert_eq!(at, Position::End);
    }

    #[test]
    fn only_line_feeds_are_overwritten(
        pieces in vec(prop_oneof![
            select(GOOD).prop_map(|it| it.as_bytes().to_vec()),
            select(BAD).prop_map(|it| it.as_bytes()[..it.len() - 1].to_vec()),
            vec(any::<u8>(), 0..80),
        ], 0..20),
    ) {
        let mut framing = Framing::new();
        for piece in &pieces {
            let mut bytes = piece.clone();
            framing.inspect(&mut bytes);
            let changed = piece.iter().zip(&bytes).filter(|(was, is)| was != is);
            prop_assert!(changed.clone().count() <= 1 && changed.clone().all(|it| it == (&b'\n', &0)));
        }
    }
}

#[test]
fn requests_may_arrive_byte_by_byte() {
    let each = |text: &str| {
        let mut framing = Framing::new();
        let mut bytes = text.as_bytes().to_vec();
        bytes.chunks_mut(1).for_each(|it| framing.inspect(it));
        (bytes, framing.at)
    };
    for text in GOOD {
        assert_eq!(each(text), (text.as_bytes().to_vec(), Position::Start), "{text}");
    }
    for text in BAD {
        let (bytes, at) = each(text);
        assert_eq!((bytes.last(), at), (Some(&0), Position::End), "{text}");
    }
}

/// Returns the statuses with which the HTTP library itself answers the text, sent in pieces of this size.
async fn response_statuses(text: &str, piece: usize) -> Vec<String> {
    let (mut far, near) = duplex(64 << 10);
    let service = service_fn(|request: Request<Incoming>| async {
        let read = request.into_body().collect().await;
        let status = if read.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let mut response = Response::new(Empty::<Bytes>::new());
        *response.status_mut() = status;
        Ok::<_, Infallible>(response)
    });
    let near = TokioIo::new(CheckedStream::new(near, Arc::default()));
    let mut heard = String::new();
    let talk = async {
        for piece in text.as_bytes().chunks(piece) {
            // The write fails after the server has closed the connection.
            let _ = far.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        let _ = far.shutdown().await;
        far.read_to_string(&mut heard).await.expect("text");
    };
    let (_, ()) = tokio::join!(http1::Builder::new().half_close(true).serve_connection(near, service), talk);
    let statuses = heard.split("HTTP/1.").skip(1).map(|it| it[2..5].to_owned());
    statuses.collect()
}

/// The library rejects every overwritten line and reads nothing after it. It agrees with this module about all
/// others.
#[tokio::test]
async fn hyper_reads_every_request_the_same_way() {
    for piece in [1, 7, 1 << 20] {
        for text in GOOD {
            assert_eq!(response_statuses(text, piece).await, ["200"], "{text}");
        }
        let all: Vec<&str> = GOOD.iter().copied().filter(|it| !it.contains("HTTP/1.0")).collect();
        assert_eq!(response_statuses(&all.concat(), piece).await, vec!["200"; all.len()]);
        for text in BAD {
            let text = format!("{}{text}{}", GOOD[0], GOOD[0]);
            assert_eq!(response_statuses(&text, piece).await, ["200", "400"], "{text}");
        }
    }
}
