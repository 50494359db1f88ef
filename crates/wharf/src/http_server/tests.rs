//! Tests the HTTP server over connections in memory: which requests it accepts, however they are split, and what it
//! answers.

use super::{RequestBody, serve_http};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::CONNECTION};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};
use std::{convert::Infallible, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use wharf_mcp::serve::http::Body;

/// Valid requests, and their bodies.
const GOOD: &[(&str, &str)] = &[
    ("GET /health HTTP/1.1\r\nHost: a\r\n\r\n", ""),
    ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", ""),
    ("POST /mcp HTTP/1.1\r\nHost: a\r\ncontent-length: 0\r\n\r\n", ""),
    (
        "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length:12\r\nAccept: */*\r\n\r\n\n\nGET \r\n\n\0\n:",
        "\n\nGET \r\n\n\0\n:",
    ),
    (
        "PATCH /x HTTP/1.1\r\nCONTENT-LENGTH: \t 3 \t\r\nTE: trailers\r\nContent-Length-Of: b\r\n\r\n\n\n\n",
        "\n\n\n",
    ),
    (
        "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n5\r\n\n\n\n\n\n\r\nA ; a=b\r\n0\r\n\r\n\r\n\r\n0\r\n0\r\n\r\n",
        "\n\n\n\n\n0\r\n\r\n\r\n\r\n0",
    ),
    (
        "POST /x HTTP/1.1\r\ntransfer-encoding:Chunked\r\nTransfer: x\r\n\r\n01;name=\"value\"\r\nx\r\n000\r\nContent-Length: 5\r\n\r\n",
        "x",
    ),
    (
        "POST /x HTTP/1.1\r\nTransfer-Encoding:                                        chunked\r\n\r\n0\r\n\r\n",
        "",
    ),
];

/// Invalid requests, up to the line feed that reveals the error.
const BAD: &[&str] = &[
    "\n",
    "GET / HTTP/1.1\n",
    "GET / HTTP/1.1\r\nHost: a\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\n",
    "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "GET /\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\0\r\n\r\n",
    "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nX: y\r\ncontent-length: 5\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 0000000000000000000000000000000000000000000000000000000000000000005\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding:\r\n\r\n",
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

/// A response with this text.
fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// Answers with the body of the request.
async fn echo(request: Request<RequestBody>) -> Response<Body> {
    match request.into_body().collect().await {
        Ok(body) => text(StatusCode::OK, body.to_bytes()),
        Err(_) => text(StatusCode::BAD_REQUEST, ""),
    }
}

/// Serves one connection until it ends, and talks to it.
async fn talk<F>(
    respond: impl Fn(Request<RequestBody>) -> F + Send + Sync,
    client: impl AsyncFnOnce(DuplexStream),
) where
    F: Future<Output = Response<Body>> + Send,
{
    let (far, near) = duplex(64 << 10);
    let (_shutdown, signal) = watch::channel(());
    let serving = serve_http(near, signal, |request, _| respond(request));
    let both = async { tokio::join!(serving, client(far)) };
    timeout(Duration::from_secs(600), both).await.expect("it ends");
}

/// Sends a text in these pieces, closes the sending side, and returns everything that the server answers.
async fn answers(text: &str, cuts: &[usize]) -> String {
    let mut heard = String::new();
    talk(echo, async |mut far| {
        let mut begin = 0;
        for end in cuts.iter().copied().chain([text.len()]) {
            // The write fails after the server has closed the connection.
            let _ = far.write_all(&text.as_bytes()[begin..end]).await;
            tokio::task::yield_now().await;
            begin = end;
        }
        let (mut reading, mut writing) = tokio::io::split(far);
        let read = reading.read_to_string(&mut heard);
        let stop = async {
            sleep(Duration::from_secs(1)).await;
            let _ = writing.shutdown().await;
        };
        tokio::join!(read, stop).0.expect("text");
    })
    .await;
    heard
}

/// Returns status and body of each answer.
fn parse(mut heard: &str) -> Vec<(u16, String)> {
    let mut all = Vec::new();
    while !heard.is_empty() {
        let (head, rest) = heard.split_once("\r\n\r\n").expect("a head");
        let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).expect("a length");
        let (body, rest) = rest.split_at(length.parse().expect("a number"));
        all.push((head[9..12].parse().expect("a status"), body.to_owned()));
        heard = rest;
    }
    all
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().expect("a runtime").block_on(work)
}

fn sorted(cuts: &[Index], text: &str) -> Vec<usize> {
    let mut cuts: Vec<usize> = cuts.iter().map(|it| it.index(text.len() + 1)).collect();
    cuts.sort_unstable();
    cuts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn valid_requests_are_read_however_they_are_split(
        requests in vec(select(GOOD), 1..6),
        cuts in vec(any::<Index>(), 0..40),
    ) {
        let all: String = requests.iter().map(|it| it.0).collect();
        let expected: Vec<_> = requests.iter().map(|it| (200, it.1.to_owned())).collect();
        prop_assert_eq!(parse(&run(answers(&all, &sorted(&cuts, &all)))), expected);
    }

    #[test]
    fn nothing_is_read_after_an_invalid_request(
        before in vec(select(GOOD), 0..3),
        bad in select(BAD),
        cuts in vec(any::<Index>(), 0..40),
    ) {
        let all: String = before.iter().map(|it| it.0).chain([bad, GOOD[0].0]).collect();
        let answered = parse(&run(answers(&all, &sorted(&cuts, &all))));
        let statuses: Vec<u16> = answered.iter().map(|it| it.0).collect();
        let expected: Vec<u16> = before.iter().map(|_| 200).chain([400]).collect();
        prop_assert_eq!(statuses, expected);
    }

    #[test]
    fn arbitrary_bytes_end_the_connection(bytes in vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        let answered = parse(&run(answers(&text, &[])));
        prop_assert!(answered.iter().all(|it| it.0 == 400), "{:?}", answered);
    }
}

#[test]
fn requests_may_arrive_byte_by_byte() {
    for (request, body) in GOOD {
        let cuts: Vec<usize> = (1..request.len()).collect();
        assert_eq!(parse(&run(answers(request, &cuts))), [(200, (*body).to_owned())], "{request}");
    }
    for request in BAD {
        let cuts: Vec<usize> = (1..request.len()).collect();
        assert_eq!(parse(&run(answers(request, &cuts)))[0].0, 400, "{request}");
    }
}

#[test]
fn heads_have_a_maximum_size() {
    let long = |length: usize| "x".repeat(length);
    let headers = |count: usize| "X: y\r\n".repeat(count);
    for (request, expected) in [
        (format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", long(200_000)), 200),
        (format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", long(300_000)), 431),
        (format!("GET / HTTP/1.1\r\n{}\r\n", headers(100)), 200),
        (format!("GET / HTTP/1.1\r\n{}\r\n", headers(101)), 431),
        (format!("GET /{} HTTP/1.1\r\n\r\n", long(65_000)), 200),
        (format!("GET /{} HTTP/1.1\r\n\r\n", long(70_000)), 414),
        (format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;{}", long(5_000)), 400),
    ] {
        let answered = parse(&run(answers(&request, &[])));
        assert_eq!(answered.iter().map(|it| it.0).collect::<Vec<_>>(), [expected], "{}", &request[..40]);
    }
}

/// Sends a text, and returns what the server answers until it closes the connection or `quiet` seconds pass.
async fn heard_within<F>(
    respond: impl Fn(Request<RequestBody>) -> F + Send + Sync,
    text: &str,
    quiet: u64,
) -> (String, bool)
where
    F: Future<Output = Response<Body>> + Send,
{
    let mut heard = (Vec::new(), false);
    talk(respond, async |mut far| {
        far.write_all(text.as_bytes()).await.expect("it listens");
        let reading = far.read_to_end(&mut heard.0);
        heard.1 = timeout(Duration::from_secs(quiet), reading).await.is_ok();
    })
    .await;
    (String::from_utf8(heard.0).expect("text"), heard.1)
}

#[test]
fn connection_stays_open_if_both_sides_want_that() {
    let ok = |_| async { text(StatusCode::OK, "ok") };
    let closing = |_| async {
        let mut response = text(StatusCode::OK, "ok");
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    };
    for (request, closes) in [
        ("GET / HTTP/1.1\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n", true),
        ("GET / HTTP/1.0\r\n\r\n", true),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false),
        // The rest of the body has not arrived.
        ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab", true),
        ("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab", false),
    ] {
        let (heard, is_closed) = run(heard_within(ok, request, 5));
        assert!(heard.ends_with("\r\n\r\nok"), "{heard}");
        assert_eq!(is_closed, closes, "{request}");
        let version = if request.contains("1.0") { "HTTP/1.0 " } else { "HTTP/1.1 " };
        assert!(heard.starts_with(version), "{heard}");
        assert_eq!(heard.contains("connection: close"), closes, "{heard}");
        assert!(heard.contains("\r\ndate: "), "{heard}");
        assert!(run(heard_within(closing, request, 5)).1, "{request}");
    }
}

#[test]
fn idle_connections_are_closed() {
    let ok = |_| async { text(StatusCode::OK, "ok") };
    for (request, at_most) in [("", 11), ("GET / HTT", 11), ("GET / HTTP/1.1\r\n\r\n", 21)] {
        assert!(run(heard_within(ok, request, at_most)).1, "{request}");
    }
}

#[test]
fn busy_connection_is_not_idle() {
    let slow = |_| async {
        sleep(Duration::from_secs(100)).await;
        text(StatusCode::OK, "late")
    };
    let (heard, _) = run(heard_within(slow, "GET / HTTP/1.1\r\n\r\n", 105));
    assert!(heard.ends_with("late"), "{heard}");
}

#[test]
fn client_that_disconnects_drops_the_handler() {
    let (alive, mut dropped) = mpsc::channel::<()>(1);
    run(talk(
        move |_| {
            let alive = alive.clone();
            async move {
                std::future::pending::<()>().await;
                drop(alive);
                text(StatusCode::OK, "")
            }
        },
        async |mut far| {
            far.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("it listens");
            sleep(Duration::from_secs(1)).await;
        },
    ));
    assert!(matches!(dropped.try_recv(), Err(mpsc::error::TryRecvError::Disconnected)));
}

#[test]
fn streams_are_written_as_they_come() {
    let stream = |_| async {
        let parts = futures_util::stream::unfold(["one", "two"].into_iter(), |mut parts| async {
            let part = parts.next()?;
            if part == "two" {
                sleep(Duration::from_secs(1)).await;
            }
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(part.as_bytes()))), parts))
        });
        Response::new(StreamBody::new(parts).boxed_unsync())
    };
    run(talk(stream, async |mut far| {
        far.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("it listens");
        let mut heard = vec![0; 1_000];
        let first = far.read(&mut heard).await.expect("bytes");
        let first = String::from_utf8_lossy(&heard[..first]).into_owned();
        assert!(first.contains("transfer-encoding: chunked\r\n") && !first.contains("two"), "{first}");
    }));
    let (heard, is_closed) = run(heard_within(stream, "GET / HTTP/1.1\r\n\r\n", 5));
    assert!(heard.ends_with("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n") && !is_closed, "{heard}");
    // HTTP/1.0 knows no chunks: the end of the connection is that of the body.
    let (heard, is_closed) = run(heard_within(stream, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 5));
    assert!(heard.ends_with("\r\n\r\nonetwo") && is_closed, "{heard}");
    assert!(heard.contains("connection: close\r\n"), "{heard}");
}

#[test]
fn responses_without_a_body_state_its_length_only_for_head() {
    let with = |status| move |_| async move { text(status, "four") };
    for (request, status, expected) in [
        ("HEAD / HTTP/1.1\r\n\r\n", StatusCode::OK, true),
        ("GET / HTTP/1.1\r\n\r\n", StatusCode::NO_CONTENT, false),
        ("GET / HTTP/1.1\r\n\r\n", StatusCode::NOT_MODIFIED, false),
    ] {
        let (heard, is_closed) = run(heard_within(with(status), request, 5));
        assert!(heard.ends_with("\r\n\r\n") && !is_closed, "{heard}");
        assert_eq!(heard.contains("content-length: 4"), expected, "{heard}");
    }
}

#[test]
fn body_is_sent_after_permission() {
    let head = "POST / HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    run(talk(echo, async |mut far| {
        far.write_all(head.as_bytes()).await.expect("it listens");
        let mut permission = vec![0; 25];
        far.read_exact(&mut permission).await.expect("permission");
        assert_eq!(permission, b"HTTP/1.1 100 Continue\r\n\r\n");
        far.write_all(b"hello").await.expect("it listens");
        let mut heard = vec![0; 1_000];
        let length = far.read(&mut heard).await.expect("a response");
        assert!(heard[..length].ends_with(b"hello"));
    }));
    // A handler that does not read the body does not ask for it.
    let refuse = |_| async { text(StatusCode::PAYLOAD_TOO_LARGE, "no") };
    let (heard, is_closed) = run(heard_within(refuse, head, 5));
    assert!(heard.starts_with("HTTP/1.1 413 ") && is_closed, "{heard}");
}

#[test]
fn client_receives_the_response_to_a_body_that_was_not_read() {
    let refuse = |_| async { text(StatusCode::PAYLOAD_TOO_LARGE, "no") };
    run(talk(refuse, async |mut far| {
        let (mut reading, mut writing) = tokio::io::split(&mut far);
        writing.write_all(b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n").await.expect("it listens");
        let mut heard = String::new();
        let send = async {
            // More than the connection holds: it has to be read.
            let _ = writing.write_all(&[b'x'; 500_000]).await;
        };
        tokio::join!(reading.read_to_string(&mut heard), send).0.expect("text");
        assert!(heard.starts_with("HTTP/1.1 413 "), "{heard}");
    }));
}

#[test]
fn chunked_body_that_is_cut_off_is_an_error() {
    for request in [
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab",
    ] {
        let answered = parse(&run(answers(request, &[])));
        assert_eq!(answered.iter().map(|it| it.0).collect::<Vec<_>>(), [400], "{request}");
    }
}
