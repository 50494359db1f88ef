//! Tests which pending request owns a log line or question that arrives on a shared stream.

use crate::fake::{DISCOVERED, Fake, INITIALIZED, NO_DISCOVERY};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wharf_mcp::model::LogLevel;
use wharf_mcp::session::{Audience, ClientInfo, Connected, HostFuture, Input};
use wharf_mcp::{Host, News, Options, Raw, Request, Session};

/// Host that answers every request with its name.
struct Named(&'static str);

impl Host for Named {
    fn capabilities(&self) -> Raw {
        Raw::empty_object()
    }

    fn answer(&self, _method: &str, _params: Option<Raw>) -> HostFuture {
        let name = json!({ "name": self.0 });
        Box::pin(async move { Ok(name.into()) })
    }
}

async fn connect(script: &[&str]) -> (Fake, Connected) {
    let fake = Fake::new(&script.join("\n"));
    let mut options = Options::new(ClientInfo { name: "test".into(), version: "0".into() });
    options.host = Arc::new(Named("the session"));
    let connected = Session::connect(&fake, &options).await.unwrap();
    (fake, connected)
}

/// Returns the names of the hosts that answered, in order.
fn answered(fake: &Fake) -> Vec<String> {
    let name =
        |line: &String| Some(line.split_once(r#""result":{"name":""#)?.1.split('"').next()?.to_owned());
    fake.received().iter().filter_map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_to_the_only_pending_call_or_to_the_session() {
    let question = r#"line {"jsonrpc":"2.0","id":"q","method":"elicitation/create"}"#;
    let call = format!("tools/call: {question} | wait 100 | result {{}}");
    // With two pending requests the owner is ambiguous; after the first completes, the other one is the owner.
    let twice = format!("prompts/get: wait 50 | {question} | wait 100 | result {{}}");
    let ambiguous = vec!["the session", "the caller"];
    for (with, expected) in [(None, vec!["the caller"]), (Some("prompts/get"), ambiguous)] {
        let (fake, connected) = connect(&[NO_DISCOVERY, INITIALIZED, &call, &twice]).await;
        let session = &connected.session;
        let request = Request::call_tool("t", None).host(Arc::new(Named("the caller")));
        match with {
            None => drop(session.request(request).await.unwrap()),
            Some(method) => {
                let other = session.request(Request::new(method));
                let (one, two) = tokio::join!(other, session.request(request));
                assert!(one.is_ok() && two.is_ok());
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(answered(&fake), expected, "{:?}", fake.received());
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_line_reaches_its_caller_and_the_feed() {
    let line =
        r#"line {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let call = format!("tools/call: {line} | wait 100 | result {{}}");
    let logs_after = format!("late: result {{}} | wait 50 | {line}");
    let (_fake, mut connected) = connect(&[NO_DISCOVERY, INITIALIZED, &call, &logs_after]).await;
    let received = Arc::new(Mutex::new(0));
    let counter = |received: &Arc<Mutex<u32>>| {
        let received = received.clone();
        Arc::new(move |_: &Raw| *received.lock().unwrap() += 1)
    };
    let request_with_logs = || Request::call_tool("t", None).logs(LogLevel::Info, false, counter(&received));
    connected.session.request(request_with_logs()).await.unwrap();
    assert_eq!(*received.lock().unwrap(), 1);
    assert!(matches!(connected.news.next().await, Some(News::LogOfCall(_))));
    let (one, two) = tokio::join!(
        connected.session.request(request_with_logs()),
        connected.session.request(request_with_logs())
    );
    assert!(one.is_ok() && two.is_ok());
    // With two pending requests the owner is ambiguous, but one client made both, so it receives each line once.
    assert_eq!(*received.lock().unwrap(), 3);
    while let Some(news) = connected.news.try_next() {
        assert!(matches!(news, News::LogOfCall(_)), "{news:?}");
    }
    connected.session.request(Request::new("late")).await.unwrap();
    assert!(matches!(connected.news.next().await, Some(News::Log(_))));
}

/// Two calls are in flight while the server writes a line that names neither.
#[tokio::test(start_paused = true)]
async fn ambiguous_log_line_reaches_each_client_of_one_principal_once() {
    let line =
        r#"line {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let log = format!("tools/call: wait 50 | {line} | wait 50 | result {{}}");
    let who =
        |principal: &str, client: u64| Audience { principal: Some(principal.into()), client: Some(client) };
    for (one, two, expected) in [
        (who("ada", 1), who("ada", 1), "1"),
        (who("ada", 1), who("ada", 2), "1 2"),
        (who("ada", 1), who("bob", 2), ""),
        (who("ada", 1), Audience::default(), ""),
    ] {
        let (_fake, mut connected) =
            connect(&[NO_DISCOVERY, INITIALIZED, &log, "prompts/get: result {}"]).await;
        let received = Arc::new(Mutex::new(Vec::new()));
        let logs = |request: Request, audience: Audience| {
            let (received, client) = (received.clone(), audience.client);
            let receive =
                move |_: &Raw| received.lock().unwrap().push(client.unwrap_or_default().to_string());
            request.audience(audience).logs(LogLevel::Info, false, Arc::new(receive))
        };
        let session = &connected.session;
        let (one, two) = tokio::join!(
            session.request(logs(Request::call_tool("t", None), one.clone())),
            session.request(logs(Request::new("prompts/get"), two.clone()))
        );
        assert!(one.is_ok() && two.is_ok());
        assert_eq!(received.lock().unwrap().join(" "), expected);
        assert!(matches!(connected.news.next().await, Some(News::LogOfCall(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn progress_without_our_token_belongs_to_the_only_request() {
    let progress = |token: &str| {
        format!(
            r#"line {{"jsonrpc":"2.0","method":"notifications/progress","params":{{{token}"progress":1}}}}"#
        )
    };
    for (token, with_other, expected) in [
        ("", false, 1),
        (r#""progressToken":null,"#, false, 1),
        (r#""progressToken":"theirs","#, false, 1),
        // A number is ours: this one belongs to a request that has ended.
        (r#""progressToken":1,"#, false, 0),
        ("", true, 0),
    ] {
        let call = format!("tools/call: wait 50 | {} | wait 50 | result {{}}", progress(token));
        let (_fake, connected) =
            connect(&[NO_DISCOVERY, INITIALIZED, &call, "prompts/get: wait 500 | result {}"]).await;
        let received = Arc::new(Mutex::new(0));
        let count = received.clone();
        let request = Request::call_tool("t", None).on_progress(move |_| *count.lock().unwrap() += 1);
        let other = async {
            if with_other {
                connected.session.request(Request::new("prompts/get")).await.unwrap();
            }
        };
        let (called, ()) = tokio::join!(connected.session.request(request), other);
        assert!(called.is_ok());
        assert_eq!(*received.lock().unwrap(), expected, "{token} {with_other}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_level_is_sent_once_and_only_lowered() {
    let logs =
        r#"initialize: result {"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}}}"#;
    let (fake, connected) =
        connect(&[NO_DISCOVERY, logs, "tools/call: result {}", "logging/setLevel: result {}"]).await;
    let callback: Arc<dyn Fn(&Raw) + Send + Sync> = Arc::new(|_: &Raw| {});
    for (level, explicit) in [
        (LogLevel::Info, false),
        (LogLevel::Error, true),
        (LogLevel::Error, true),
        (LogLevel::Info, false),
        (LogLevel::Warning, true),
        (LogLevel::Debug, true),
    ] {
        let request = Request::call_tool("t", None).logs(level, explicit, callback.clone());
        connected.session.request(request).await.unwrap();
    }
    let received = fake.received();
    let levels = received.iter().filter_map(|line| line.split_once(r#""level":""#)?.1.split('"').next());
    assert_eq!(levels.collect::<Vec<_>>(), ["error", "info", "debug"]);
}

#[tokio::test(start_paused = true)]
async fn input_responses_are_forwarded_unchanged() {
    let needs = r#"tools/call: result {"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s1"}"#;
    let (fake, connected) = connect(&[DISCOVERED, needs]).await;
    let demand = connected.session.request(Request::call_tool("t", None).single_round(true)).await.unwrap();
    assert!(demand.as_str().contains(r#""requestState":"s1""#), "{demand:?}");
    let input =
        Input { responses: Some(json!({ "a": { "roots": [] } }).into()), state: Some(json!("s1").into()) };
    connected
        .session
        .request(Request::call_tool("t", None).single_round(true).input(input.clone()))
        .await
        .unwrap();
    let last = fake.received().pop().unwrap();
    assert!(last.contains(r#""requestState":"s1","inputResponses":{"a":{"roots":[]}}"#), "{last}");
    let (_fake, connected) = connect(&[NO_DISCOVERY, INITIALIZED, "tools/call: result {}"]).await;
    let lost = connected.session.request(Request::call_tool("t", None).input(input)).await.unwrap_err();
    assert_eq!(lost.rpc_code(), Some(-32602));
}

#[tokio::test(start_paused = true)]
async fn watched_resources_are_part_of_the_subscription() {
    let discovered = r#"server/discover: result {"supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}}}"#;
    let acknowledge = r#"subscriptions/listen: line {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a","b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":$id}}}"#;
    let (fake, connected) = connect(&[discovered, acknowledge]).await;
    let session = &connected.session;
    for wanted in [&["a"][..], &["a", "b"], &["a", "c"]] {
        session.watch(wanted.iter().map(|it| (*it).to_owned()).collect());
        for uri in wanted {
            let refused = session.is_watching(uri).await.is_err();
            assert_eq!(refused, *uri == "c", "{uri}");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // The new subscription is acknowledged before the old one is cancelled.
    let listen = "subscriptions/listen";
    let cancel = "notifications/cancelled";
    assert_eq!(fake.methods(), ["server/discover", listen, listen, cancel, listen, cancel].join(" "));
}
