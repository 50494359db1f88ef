//! Tests the outcome of one request for each way in which a server can answer it.

use crate::{
    eras::options,
    fake::{DISCOVERED, Fake, INITIALIZED, NO_DISCOVERY},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;
use wharf_mcp::session::{Connected, HostFuture, List};
use wharf_mcp::{Failure, Host, News, Options, Raw, Request, Sent, Session};

async fn connect(rules: &[&str]) -> (Fake, Connected) {
    let fake = Fake::new(&rules.join("\n"));
    let connected = Session::connect(&fake, &options()).await.unwrap();
    (fake, connected)
}

fn describe(outcome: Result<Raw, Failure>) -> String {
    match outcome {
        Ok(result) => result.as_str().to_owned(),
        Err(failure) => format!("{:?} {:?}: {failure}", failure.class, failure.sent),
    }
}

/// Calls a tool of a handshake-era server that follows `rule`, then makes a second request.
async fn check(rule: &str, expected: &str) {
    let rule = format!("tools/call: {rule}");
    let (_fake, connected) = connect(&[NO_DISCOVERY, INITIALIZED, &rule, r#"again: result "again""#]).await;
    let begun = Instant::now();
    let deadline = Instant::now() + Duration::from_secs(5);
    let outcome = describe(connected.session.request(Request::call_tool("t", None).deadline(deadline)).await);
    let again = describe(
        connected.session.request(Request::new("again").deadline(deadline + Duration::from_secs(5))).await,
    );
    let seconds = begun.elapsed().as_secs();
    assert_eq!(format!("{outcome}; then {again}; {seconds} s"), expected, "for {rule}");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_answer_has_one_outcome() {
    let fine = r#""fine"; then "again"; 0 s"#;
    let gone = "then Closed No: the server closed the connection; 0 s";
    for (rule, expected) in [
        (r#"result "fine""#, fine.to_owned()),
        // Unusual, but unambiguous.
        (r#"line {"id":$id,"result":"fine"}"#, fine.to_owned()),
        (r#"line {"jsonrpc":"2.0","id":"$id","result":"fine"}"#, fine.to_owned()),
        (r#"line {"jsonrpc":"2.0","id":$id.0,"result":"fine"}"#, fine.to_owned()),
        ("line noise | line  | line [info] x | result \"fine\"", fine.to_owned()),
        ("line \u{feff}{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":\"fine\"}\r", fine.to_owned()),
        (r#"result "fine" | result "twice""#, fine.to_owned()),
        (r#"line {"jsonrpc":"2.0","id":999,"result":"stray"} | result "fine""#, fine.to_owned()),
        (r#"line {"jsonrpc":"2.0","id":"x","method":"ping"} | result "fine""#, fine.to_owned()),
        (r#"line {"jsonrpc":"2.0","id":"x","method":"sampling/createMessage"} | result "fine""#, fine.to_owned()),
        // More server requests than any queue holds, all at once.
        (r#"ask 5000 | result "fine""#, fine.to_owned()),
        // Invalid, but the request is identifiable.
        ("big 17000000", r#"Protocol Unknown: a message is longer than the limit; then "again"; 0 s"#.into()),
        (
            r#"line [{"jsonrpc":"2.0","id":$id,"result":"fine"}]"#,
            r#"Protocol Unknown: the response arrived in a batch, which this protocol version does not support; then "again"; 0 s"#.into(),
        ),
        (
            r#"line {"jsonrpc":"2.0","id":$id}"#,
            r#"Protocol Unknown: an answer has neither `result` nor `error`; then "again"; 0 s"#.into(),
        ),
        (
            r#"line {"jsonrpc":"2.0","id":$id,"result":{}} x"#,
            r#"Protocol Unknown: a message is not valid JSON: trailing characters at line 1 column 38; then "again"; 0 s"#.into(),
        ),
        ("error -32000", r#"Rpc Yes: the server answered with an error: no (-32000); then "again"; 0 s"#.into()),
        (
            r#"line {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
            r#"Rpc Yes: the server answered with an error: what? (-32700); then "again"; 0 s"#.into(),
        ),
        // Invalid and not attributable: the connection fails.
        (
            "line {\\n  \"jsonrpc\": \"2.0\",",
            "Protocol Unknown: a message is not valid JSON: key must be a string at line 1 column 2; then Protocol No: a message is not valid JSON: key must be a string at line 1 column 2; 0 s".into(),
        ),
        (
            "line {",
            "Protocol Unknown: a message is truncated, or contains newlines; then Protocol No: a message is truncated, or contains newlines; 0 s".into(),
        ),
        ("exit", format!("Closed Unknown: the server closed the connection; {gone}")),
        // No answer at all.
        ("wait 1", r#"Timeout Unknown: no answer in time; then "again"; 5 s"#.into()),
    ] {
        check(rule, &expected).await;
    }
}

/// Requests go to the link without the session task, but not before what was sent earlier through it.
#[tokio::test(start_paused = true)]
async fn requests_do_not_overtake_earlier_messages() {
    let (fake, connected) = connect(&[NO_DISCOVERY, INITIALIZED, r#"x: result 1"#]).await;
    let session = &connected.session;
    // More than fit into any queue on the way.
    for _ in 0..300 {
        session.notify("before", None).await.unwrap();
        let answers = tokio::join!(session.request(Request::new("x")), session.request(Request::new("x")));
        assert_eq!((describe(answers.0), describe(answers.1)), ("1".to_owned(), "1".to_owned()));
    }
    let expected = ["server/discover initialize notifications/initialized"]
        .into_iter()
        .chain(std::iter::repeat_n("before x x", 300))
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(fake.methods(), expected);
}

#[tokio::test(start_paused = true)]
async fn batches_are_read_where_the_version_has_them() {
    let old = r#"initialize: result {"protocolVersion":"2025-03-26","capabilities":{}}"#;
    let batch =
        r#"x: line [{"jsonrpc":"2.0","method":"notifications/tools/list_changed"},{"id":$id,"result":1}]"#;
    let (_fake, mut connected) = connect(&[NO_DISCOVERY, old, batch]).await;
    assert_eq!(describe(connected.session.request(Request::new("x")).await), "1");
    assert_eq!(connected.news.next().await, Some(News::ToolsChanged));
}

#[tokio::test(start_paused = true)]
async fn progress_arrives_in_order_before_the_answer() {
    let (_fake, connected) =
        connect(&[NO_DISCOVERY, INITIALIZED, "tools/call: progress 500 | result {}"]).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorder = seen.clone();
    let request = Request::call_tool("t", None)
        .on_progress(move |at| recorder.lock().unwrap().push(at.progress as u32));
    connected.session.request(request).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), (1..=500).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn progress_of_every_round_is_reported() {
    let needs = r#"tools/call: progress 2 | result {"resultType":"input_required","requestState":"s"}"#;
    let fake = Fake::new(&[DISCOVERED, needs].join("\n"));
    let connected = Session::connect(&fake, &Options { max_rounds: 1, ..options() }).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorder = seen.clone();
    let request = Request::call_tool("t", None)
        .on_progress(move |at| recorder.lock().unwrap().push(at.progress as u32));
    connected.session.request(request).await.unwrap_err();
    assert_eq!(*seen.lock().unwrap(), [1, 2, 1, 2]);
}

/// Host that never answers some requests and panics on others.
struct FailingHost;

impl Host for FailingHost {
    fn capabilities(&self) -> Raw {
        Raw::empty_object()
    }

    fn answer(&self, method: &str, _params: Option<Raw>) -> HostFuture {
        match method {
            "never" => Box::pin(std::future::pending()),
            "later" => Box::pin(async { panic!("the host fails while it answers") }),
            _ => panic!("the host fails before it answers"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_host_answers_with_an_error() {
    let ask = |id: &str, method: &str| format!(r#"line {{"id":"{id}","method":"{method}"}}"#);
    let cancel = r#"line {"method":"notifications/cancelled","params":{"requestId":"a"}}"#;
    let call =
        format!("tools/call: {} | {cancel} | {} | {}", ask("a", "never"), ask("b", "later"), ask("c", "now"));
    let fake = Fake::new(&[NO_DISCOVERY, INITIALIZED, &call].join("\n"));
    let options = Options { host: Arc::new(FailingHost), ..options() };
    let connected = Session::connect(&fake, &options).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    connected.session.request(Request::call_tool("t", None).deadline(deadline)).await.unwrap_err();
    for (id, seen) in [("a", false), ("b", true), ("c", true)] {
        let error = format!(r#""id":"{id}","error":{{"code":-32603,"#);
        assert_eq!(fake.received().iter().any(|line| line.contains(&error)), seen, "{:?}", fake.received());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_abandoned_in_the_queue_is_never_sent() {
    // The server reads nothing while it waits.
    let (fake, connected) = connect(&[NO_DISCOVERY, INITIALIZED, "tools/call: wait 60000"]).await;
    let arguments = Raw::from(serde_json::json!({ "text": "x".repeat(64 << 10) }));
    let deadline = Instant::now() + Duration::from_secs(5);
    let calls = (0..300)
        .map(|_| connected.session.request(Request::call_tool("t", Some(&arguments)).deadline(deadline)));
    let outcomes = futures_util::future::join_all(calls).await;
    let sent: Vec<Sent> = outcomes.into_iter().map(|outcome| outcome.unwrap_err().sent).collect();
    assert_eq!((sent[0], sent[150], sent[299]), (Sent::Unknown, Sent::No, Sent::No));
    tokio::time::sleep(Duration::from_hours(24)).await;
    let received = fake.received().iter().filter(|line| line.contains("tools/call")).count();
    assert_eq!(received, sent.iter().filter(|sent| **sent == Sent::Unknown).count());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_request_cancels_it_at_the_server() {
    let (fake, connected) = connect(&[NO_DISCOVERY, INITIALIZED, "tools/call: wait 1"]).await;
    let call = connected.session.request(Request::call_tool("t", None));
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(fake.methods().ends_with("tools/call notifications/cancelled"), "{}", fake.methods());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_ends_the_session() {
    let (_fake, connected) = connect(&[DISCOVERED]).await;
    let Connected { session, task, mut news } = connected;
    drop(session);
    assert_eq!(task.join().await.cause, "the client closed the connection");
    assert_eq!(news.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_cancelled_before_the_link_closes() {
    let discovered = r#"server/discover: result {"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}"#;
    let (fake, connected) = connect(&[discovered]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(connected.session);
    connected.task.join().await;
    assert_eq!(fake.methods(), "server/discover subscriptions/listen notifications/cancelled");
}

#[tokio::test(start_paused = true)]
async fn modern_requests_carry_their_meta() {
    let (fake, connected) = connect(&[DISCOVERED, "tools/call: result {\"resultType\":\"complete\"}"]).await;
    connected.session.request(Request::call_tool("t", None)).await.unwrap();
    let sent = fake.received().pop().unwrap();
    let expected = r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}},"name":"t"}}"#;
    assert!(sent.ends_with(expected), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn input_required_is_answered_by_the_host() {
    let needs = r#"tools/call: result {"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s1"}"#;
    let fake = Fake::new(&[DISCOVERED, needs].join("\n"));
    let host = Arc::new(wharf_mcp::session::Roots(vec![]));
    let options = Options { host, max_rounds: 2, ..options() };
    let connected = Session::connect(&fake, &options).await.unwrap();
    let outcome = describe(connected.session.request(Request::call_tool("t", None)).await);
    assert_eq!(outcome, "Protocol Unknown: the server asked for more input 2 times, which is the limit");
    let last = fake.received().pop().unwrap();
    assert!(last.contains(r#""requestState":"s1","inputResponses":{"a":{"roots":[]}},"name":"t""#), "{last}");
    assert_eq!(fake.methods(), "server/discover tools/call tools/call tools/call");

    let odd = r#"tools/call: result {"resultType":"surprise"}"#;
    let (_fake, connected) = connect(&[DISCOVERED, odd]).await;
    let outcome = describe(connected.session.request(Request::call_tool("t", None)).await);
    assert_eq!(outcome, "Protocol Unknown: the result has the unknown type `surprise`");
}

#[tokio::test(start_paused = true)]
async fn endless_lists_fail() {
    for (rule, expected) in [
        (r#"result {"tools":[{"name":"a"},5]}"#, Ok(2)),
        (
            r#"result {"tools":[{"name":"a"}],"nextCursor":"same"}"#,
            Err("the list does not end: the server returned the same cursor twice"),
        ),
        (
            r#"result {"tools":[{"name":"a"}],"nextCursor":"$id"}"#,
            Err("the list does not end: the server returned the same cursor twice"),
        ),
        (
            r#"line {"id":$id,"result":{"tools":[1],"nextCursor":"$id"}}"#,
            Err("the list does not end: more than 100 pages"),
        ),
        (r#"result {"items":[]}"#, Err("the answer to `tools/list` has no list `tools`")),
    ] {
        let rule = format!("tools/list: {rule}");
        let (_fake, connected) = connect(&[NO_DISCOVERY, INITIALIZED, &rule]).await;
        let listed = connected.session.list(List::Tools).await;
        let outcome = listed.map(|listing| listing.items.len()).map_err(|failure| failure.to_string());
        assert_eq!(outcome, expected.map_err(str::to_owned), "for {rule}");
        assert_eq!(connected.session.list(List::Prompts).await.unwrap().items.len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_subscription_is_renewed_after_it_ends() {
    let discovered = r#"server/discover: result {"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}"#;
    let listen = r#"subscriptions/listen: line {"jsonrpc":"2.0","method":"notifications/tools/list_changed"} | result {}"#;
    let (fake, mut connected) = connect(&[discovered, listen]).await;
    assert_eq!(connected.news.next().await, Some(News::ToolsChanged));
    assert_eq!(connected.news.next().await, Some(News::ToolsChanged));
    assert_eq!(fake.methods(), "server/discover subscriptions/listen subscriptions/listen");
    let request = fake.received().pop().unwrap();
    assert!(request.contains(r#""notifications":{"toolsListChanged":true"#), "{request}");
    drop(connected.session);
    connected.task.join().await;
}
