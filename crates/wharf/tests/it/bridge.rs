//! Tests the gateway between protocol eras: server questions reach the client that made the call, log messages and
//! change notifications reach the clients that asked for them, and nothing reaches the wrong client.

mod argument_errors;
mod both_eras;
mod caching;
mod instructions;
mod task_server;
mod tasks;
mod test_client;
mod test_server;
mod unlisted;
mod unsolicited;

use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use test_client::{Gateway, Transport};
use test_server::{THING, TestServer};
use tokio::time;
use wharf_mcp::{
    News, Request,
    model::LogLevel,
    serve::Eras,
    session::{Era, NoHost},
};

/// All combinations of client transport, client era and server era.
const COMBINATIONS: [(Transport, Era, Eras); 8] = [
    (Transport::Http, Era::Modern, Eras::LegacyOnly),
    (Transport::Http, Era::Modern, Eras::ModernOnly),
    (Transport::Http, Era::Legacy, Eras::LegacyOnly),
    (Transport::Http, Era::Legacy, Eras::ModernOnly),
    (Transport::Ws, Era::Modern, Eras::LegacyOnly),
    (Transport::Ws, Era::Legacy, Eras::ModernOnly),
    (Transport::Sse, Era::Legacy, Eras::ModernOnly),
    (Transport::Sse, Era::Modern, Eras::LegacyOnly),
];

#[tokio::test]
async fn questions_reach_the_calling_client() {
    for (transport, era, eras) in COMBINATIONS {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        let (ada, bob) =
            tokio::join!(gateway.connect(transport, era, "Ada"), gateway.connect(transport, era, "Bob"));
        for round in 0..3 {
            // Both clients call concurrently, with the same ids.
            let (one, two) = tokio::join!(ada.call("form", json!({})), bob.call("form", json!({})));
            for (said, name) in [(one, "Ada"), (two, "Bob")] {
                let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
                assert_eq!(said["who"]["content"]["name"], name, "{transport:?} {era:?} {eras:?} {round}");
            }
        }
        let said: Value = serde_json::from_str(&ada.call("sample", json!({})).await).expect("JSON");
        assert_eq!(said["what"]["content"]["text"], "Ada", "{transport:?} {era:?} {eras:?}");
        let said: Value = serde_json::from_str(&ada.call("both", json!({})).await).expect("JSON");
        assert_eq!(
            (&said["who"]["content"]["name"], &said["what"]["content"]["text"]),
            (&json!("Ada"), &json!("Ada"))
        );
        // With two concurrent calls, each client receives its own question.
        let (one, two) = tokio::join!(ada.call("roots", json!({})), bob.call("roots", json!({})));
        for (said, name) in [(one, "Ada"), (two, "Bob")] {
            let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
            assert_eq!(said["where"]["roots"][0]["name"], name, "{transport:?} {era:?} {eras:?}");
        }
        assert_eq!(
            ada.ask(Request::get_prompt("greet", None)).await,
            r#"Greet "Ada"."#,
            "{transport:?} {era:?} {eras:?}"
        );
        let secret = ada.ask(Request::read_resource("island://secret/1")).await;
        assert_eq!(secret, r#"for "Ada""#, "{transport:?} {era:?} {eras:?}");
    }
}

#[tokio::test]
async fn client_without_capability_is_not_asked() {
    for (transport, era, eras) in COMBINATIONS {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        let mute = gateway.connect_with(transport, era, "Mute", Arc::new(NoHost)).await;
        let said = mute.call("whoami", json!({})).await;
        let seen: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        if eras == Eras::ModernOnly {
            assert_eq!(seen["capabilities"], json!({}), "{transport:?} {era:?}: the server sees the caller");
            assert_eq!(
                seen["meta"]["io.modelcontextprotocol/clientInfo"]["name"], "Mute",
                "{transport:?} {era:?}"
            );
        }
        // The call does not hang, and no other client receives the question.
        let said =
            time::timeout(Duration::from_secs(20), mute.call("form", json!({}))).await.expect("an answer");
        assert!(!said.contains("\"name\""), "{transport:?} {era:?} {eras:?}: {said}");
        let said = time::timeout(Duration::from_secs(20), mute.call("roots", json!({}))).await;
        let said = said.expect("an answer");
        if eras == Eras::LegacyOnly {
            assert!(
                said.starts_with("-32601 ") && said.contains("`roots/list`"),
                "{transport:?} {era:?}: {said}"
            );
        }
        assert!(!said.contains("file:"), "{transport:?} {era:?} {eras:?}: {said}");
    }
}

/// A server with one session for all clients decides by the capabilities of that session which questions it may ask.
#[tokio::test]
async fn legacy_server_sees_all_client_capabilities() {
    let test_server = TestServer::start(Eras::LegacyOnly).await;
    let gateway = Gateway::in_front_of(&test_server);
    let mute = gateway.connect_with(Transport::Http, Era::Legacy, "Mute", Arc::new(NoHost)).await;
    let said = mute.call("whoami", json!({})).await;
    let seen: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let expected =
        json!({ "elicitation": { "form": {}, "url": {} }, "roots": { "listChanged": true }, "sampling": {} });
    assert_eq!(seen["capabilities"], expected);
    // Ada supports forms but not URLs.
    let ada = gateway.connect(Transport::Http, Era::Legacy, "Ada").await;
    let said = ada.call("link", json!({})).await;
    assert!(said.starts_with("-32602 ") && said.contains("`url` of `elicitation`"), "{said}");
}

/// Request metadata from the client reaches the server in either era, except fields that only one era understands.
#[tokio::test]
async fn what_a_caller_says_goes_along() {
    for (transport, era, eras) in COMBINATIONS {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        let ada = gateway.connect(transport, era, "Ada").await;
        let meta = json!({ "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "x/y": { "z": 1 } });
        let said = ada.ask(Request::call_tool("whoami", None).meta(meta.clone().into())).await;
        let seen: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        for key in ["traceparent", "x/y"] {
            assert_eq!(seen["meta"][key], meta[key], "{transport:?} {era:?} {eras:?}");
        }
        let era_key = "io.modelcontextprotocol/protocolVersion";
        assert_eq!(
            seen["meta"].get(era_key).is_some(),
            eras == Eras::ModernOnly,
            "{transport:?} {era:?} {eras:?}"
        );
    }
}

#[tokio::test]
async fn log_messages_reach_the_caller_from_its_level_on() {
    for (transport, era, eras) in COMBINATIONS {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        let (mut ada, mut bob) =
            tokio::join!(gateway.connect(transport, era, "Ada"), gateway.connect(transport, era, "Bob"));
        let combination = format!("{transport:?} {era:?} {eras:?}");
        assert_eq!(ada.collect_logs(LogLevel::Error).await, ["error"], "{combination}");
        assert_eq!(bob.collect_logs(LogLevel::Debug).await, ["debug", "info", "error"], "{combination}");
        assert_eq!(ada.collect_logs(LogLevel::Error).await, ["error"], "{combination}");
        let strays = |news: Vec<News>| news.iter().filter(|it| matches!(it, News::Log(_))).count();
        assert_eq!((strays(ada.received_news()), strays(bob.received_news())), (0, 0), "{combination}");
    }
}

#[tokio::test]
async fn updates_reach_subscribers_only() {
    for (transport, era, eras) in COMBINATIONS {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        let (mut ada, mut bob) =
            tokio::join!(gateway.connect(transport, era, "Ada"), gateway.connect(transport, era, "Bob"));
        let mut eve = gateway.connect(transport, era, "Eve").await;
        let combination = format!("{transport:?} {era:?} {eras:?}");
        let updated = |it: &News| *it == News::ResourceUpdated(THING.to_owned());
        let mut watched = test_server.service.watched();
        ada.watch(&[THING]);
        bob.watch(&[THING]);
        for test_client in [&ada, &bob] {
            let agreed = test_client.session.is_watching(THING).await;
            assert_eq!(agreed, Ok(()), "{combination}");
        }
        assert_eq!(watched.borrow_and_update().iter().collect::<Vec<_>>(), [THING], "{combination}");
        assert_eq!(eve.call("touch", json!({})).await, "touch");
        ada.news(updated).await;
        bob.news(updated).await;
        // One of two subscribers unsubscribes; the other still receives updates.
        ada.watch(&[]);
        assert_eq!(eve.call("touch", json!({})).await, "touch");
        bob.news(updated).await;
        assert!(
            !eve.received_news().iter().any(updated),
            "{combination}: a client receives only its own subscriptions"
        );
        bob.watch(&[]);
        // The gateway unsubscribes at the server after the last client.
        time::timeout(Duration::from_secs(20), watched.wait_for(|it| it.is_empty()))
            .await
            .expect("in time")
            .expect("it serves");
        drop(ada.received_news());
        let unknown = Request::new("resources/subscribe").params(json!({ "uri": "nowhere://x" }).into());
        let refused = eve.ask(unknown).await;
        assert!(refused.starts_with("-320") || refused.starts_with("-326"), "{combination}: {refused}");
    }
}

/// After a new session the gateway subscribes again and notifies the subscribers.
#[tokio::test]
async fn subscription_survives_a_new_upstream_session() {
    for (transport, era, eras) in COMBINATIONS {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        let mut ada = gateway.connect(transport, era, "Ada").await;
        let combination = format!("{transport:?} {era:?} {eras:?}");
        let updated = |it: &News| *it == News::ResourceUpdated(THING.to_owned());
        ada.watch(&[THING]);
        assert_eq!(ada.session.is_watching(THING).await, Ok(()), "{combination}");
        gateway.restart();
        assert_eq!(ada.call("echo", json!({ "nonce": 1 })).await, "1", "{combination}");
        ada.news(updated).await;
        let mut watched = test_server.service.watched();
        let asked = watched.wait_for(|it| it.contains(THING));
        time::timeout(Duration::from_secs(20), asked).await.expect("in time").expect("it serves");
        // The subscription request has reached the server; once it has responded, updates arrive again.
        let bob = gateway.connect(transport, era, "Bob").await;
        bob.watch(&[THING]);
        assert_eq!(bob.session.is_watching(THING).await, Ok(()), "{combination}");
        drop(ada.received_news());
        assert_eq!(bob.call("touch", json!({})).await, "touch", "{combination}");
        ada.news(updated).await;
    }
}

/// A call that waits for client input does not delay the shutdown.
#[tokio::test]
async fn call_waiting_for_input_does_not_delay_shutdown() {
    let test_server = TestServer::start(Eras::LegacyOnly).await;
    let gateway = Gateway::in_front_of(&test_server);
    let ada = gateway.connect(Transport::Http, Era::Modern, "Ada").await;
    let said = ada.ask(Request::call_tool("form", None).single_round(true)).await;
    assert!(said.contains("input_required"), "{said}");
    drop(ada);
    let begun = std::time::Instant::now();
    let exit = tokio::task::spawn_blocking(|| gateway.terminate()).await.expect("it ends");
    assert_eq!(exit, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(60), "it took {:?}", begun.elapsed());
}

/// Each of two clients makes thirty calls with the same request ids.
#[tokio::test]
async fn clients_with_equal_ids_get_their_own_results() {
    for (transport, era, eras) in COMBINATIONS {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        let (ada, bob) =
            tokio::join!(gateway.connect(transport, era, "Ada"), gateway.connect(transport, era, "Bob"));
        let mut calls = tokio::task::JoinSet::new();
        for (test_client, name) in [(Arc::new(ada), "Ada"), (Arc::new(bob), "Bob")] {
            for number in 0..30_u64 {
                let test_client = test_client.clone();
                calls.spawn(async move {
                    let nonce = format!("{name} {number}");
                    let said =
                        test_client.call("echo", json!({ "nonce": nonce, "wait": number % 3 * 5 })).await;
                    (said, json!(nonce).to_string())
                });
            }
        }
        for (said, nonce) in calls.join_all().await {
            assert_eq!(said, nonce, "{transport:?} {era:?} {eras:?}");
        }
    }
}

/// A list has one page, so any cursor is invalid.
#[tokio::test]
async fn unknown_cursor_is_rejected() {
    let test_server = TestServer::start(Eras::LegacyOnly).await;
    let gateway = Gateway::in_front_of(&test_server);
    for era in [Era::Legacy, Era::Modern] {
        let ada = gateway.connect(Transport::Http, era, "Ada").await;
        for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            let page = |cursor: Value| Request::new(list).params(json!({ "cursor": cursor }).into());
            let refused = ada.ask(page(json!("nonsense"))).await;
            assert!(refused.starts_with("-32602 ") && refused.contains("`cursor`"), "{list}: {refused}");
            for first in [Value::Null, json!("")] {
                assert!(!ada.ask(page(first)).await.starts_with("-32"), "{list}");
            }
        }
    }
}

/// A log message that belongs to no call goes to the clients that have set a level, with the name of its source.
#[tokio::test]
async fn uncorrelated_log_reaches_clients_that_set_a_level() {
    for transport in [Transport::Http, Transport::Ws, Transport::Sse] {
        let test_server = TestServer::start(Eras::LegacyOnly).await;
        let gateway = Gateway::in_front_of(&test_server);
        let mut ada = gateway.connect(transport, Era::Legacy, "Ada").await;
        let mut bob = gateway.connect(transport, Era::Legacy, "Bob").await;
        assert_eq!(ada.collect_logs(LogLevel::Info).await, ["info", "error"], "{transport:?}");
        let line = json!({ "level": "warning", "data": "drone" });
        test_server.service.announce(News::Log(line.into()));
        let News::Log(line) = ada.news(|it| matches!(it, News::Log(_))).await else { unreachable!() };
        let line: Value = line.decode().expect("JSON");
        assert_eq!(line, json!({ "level": "warning", "logger": "island", "data": "drone" }), "{transport:?}");
        assert_eq!(bob.call("echo", json!({ "nonce": 1 })).await, "1");
        assert!(!bob.received_news().iter().any(|it| matches!(it, News::Log(_))), "{transport:?}");
    }
}

/// Members that only one era defines do not reach clients of the other, on any method.
#[tokio::test]
async fn results_have_the_members_of_the_clients_era_only() {
    for eras in [Eras::ModernOnly, Eras::Both, Eras::LegacyOnly] {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        // This client cannot be asked, so a server of both eras is called in the newest one.
        let mute = gateway.connect_with(Transport::Http, Era::Legacy, "Mute", Arc::new(NoHost)).await;
        let ada = gateway.connect(Transport::Http, Era::Legacy, "Ada").await;
        let bob = gateway.connect(Transport::Http, Era::Modern, "Bob").await;
        for method in [
            "tools/list",
            "tools/call",
            "prompts/list",
            "prompts/get",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "completion/complete",
        ] {
            for client in [&mute, &ada, &bob] {
                let request = || match method {
                    "tools/call" => Request::call_tool("structured", None),
                    "prompts/get" => Request::get_prompt("greet", None),
                    "resources/read" => Request::read_resource(THING),
                    "completion/complete" => {
                        let reference = json!({ "type": "ref/prompt", "name": "greet" });
                        Request::new(method).params(json!({ "ref": reference, "argument": {} }).into())
                    }
                    list => Request::new(list),
                };
                let Ok(result) = client.session.request(request()).await else {
                    assert!(method == "prompts/get" && std::ptr::eq(client, &mute), "{method} {eras:?}");
                    continue;
                };
                let result: Value = result.decode().expect("JSON");
                let is_modern = client.session.terms().era == Era::Modern;
                assert_eq!(result.get("resultType").is_some(), is_modern, "{method} {eras:?}: {result}");
                let is_cacheable = is_modern && (method.ends_with("/list") || method == "resources/read");
                for member in ["ttlMs", "cacheScope"] {
                    assert_eq!(result.get(member).is_some(), is_cacheable, "{method} {eras:?}: {result}");
                }
                let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
                assert_eq!(server.is_object(), is_modern, "{method} {eras:?}: {result}");
                if method == "tools/call" {
                    let own = json!({ "resultType": "mine", "ttlMs": 1, "cacheScope": "mine" });
                    assert_eq!(result["structuredContent"], own, "{eras:?}: {result}");
                }
            }
        }
        for (client, code) in [(&mute, "-32002"), (&ada, "-32002"), (&bob, "-32602")] {
            let said = client.ask(Request::read_resource("island://secret/missing")).await;
            assert!(said.starts_with(code), "{eras:?}: {said}");
        }
    }
}
