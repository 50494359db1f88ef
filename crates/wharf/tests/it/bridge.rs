//! Tests the gateway between protocol eras: server questions reach the client that made the call, log messages and
//! change notifications reach the clients that asked for them, and nothing reaches the wrong client.

mod caching;
mod island;
mod visitor;

use island::{Island, THING};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time;
use visitor::{Door, Gateway};
use wharf_mcp::{
    News, Request,
    model::LogLevel,
    serve::Eras,
    session::{Era, NoHost},
};

/// All combinations of client transport, client era and server era.
const WAYS: [(Door, Era, Eras); 8] = [
    (Door::Http, Era::Modern, Eras::LegacyOnly),
    (Door::Http, Era::Modern, Eras::ModernOnly),
    (Door::Http, Era::Legacy, Eras::LegacyOnly),
    (Door::Http, Era::Legacy, Eras::ModernOnly),
    (Door::Ws, Era::Modern, Eras::LegacyOnly),
    (Door::Ws, Era::Legacy, Eras::ModernOnly),
    (Door::Sse, Era::Legacy, Eras::ModernOnly),
    (Door::Sse, Era::Modern, Eras::LegacyOnly),
];

#[tokio::test]
async fn questions_are_answered_by_whoever_called() {
    for (door, era, eras) in WAYS {
        let island = Island::rise(eras).await;
        let gateway = Gateway::before(&island);
        let (ada, bob) = tokio::join!(gateway.visit(door, era, "Ada"), gateway.visit(door, era, "Bob"));
        for round in 0..3 {
            // Both clients call concurrently, with the same ids.
            let (one, two) = tokio::join!(ada.call("form", json!({})), bob.call("form", json!({})));
            for (said, name) in [(one, "Ada"), (two, "Bob")] {
                let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
                assert_eq!(said["who"]["content"]["name"], name, "{door:?} {era:?} {eras:?} {round}");
            }
        }
        let said: Value = serde_json::from_str(&ada.call("sample", json!({})).await).expect("JSON");
        assert_eq!(said["what"]["content"]["text"], "Ada", "{door:?} {era:?} {eras:?}");
        let said: Value = serde_json::from_str(&ada.call("both", json!({})).await).expect("JSON");
        assert_eq!(
            (&said["who"]["content"]["name"], &said["what"]["content"]["text"]),
            (&json!("Ada"), &json!("Ada"))
        );
        // With two concurrent calls, each client receives its own question.
        let (one, two) = tokio::join!(ada.call("roots", json!({})), bob.call("roots", json!({})));
        for (said, name) in [(one, "Ada"), (two, "Bob")] {
            let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
            assert_eq!(said["where"]["roots"][0]["name"], name, "{door:?} {era:?} {eras:?}");
        }
        assert_eq!(
            ada.ask(Request::get_prompt("greet", None)).await,
            r#"Greet "Ada"."#,
            "{door:?} {era:?} {eras:?}"
        );
        let secret = ada.ask(Request::read_resource("island://secret/1")).await;
        assert_eq!(secret, r#"for "Ada""#, "{door:?} {era:?} {eras:?}");
    }
}

#[tokio::test]
async fn who_cannot_be_asked_is_not() {
    for (door, era, eras) in WAYS {
        let island = Island::rise(eras).await;
        let gateway = Gateway::before(&island);
        let mute = gateway.visit_with(door, era, "Mute", Arc::new(NoHost)).await;
        let said = mute.call("whoami", json!({})).await;
        let seen: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        if eras == Eras::ModernOnly {
            assert_eq!(seen["capabilities"], json!({}), "{door:?} {era:?}: the server sees the caller");
            assert_eq!(
                seen["meta"]["io.modelcontextprotocol/clientInfo"]["name"], "Mute",
                "{door:?} {era:?}"
            );
        }
        // The call does not hang, and no other client receives the question.
        let said =
            time::timeout(Duration::from_secs(20), mute.call("form", json!({}))).await.expect("an answer");
        assert!(!said.contains("\"name\""), "{door:?} {era:?} {eras:?}: {said}");
        let said = time::timeout(Duration::from_secs(20), mute.call("roots", json!({}))).await;
        let said = said.expect("an answer");
        if eras == Eras::LegacyOnly {
            assert!(said.starts_with("-32601 ") && said.contains("`roots/list`"), "{door:?} {era:?}: {said}");
        }
        assert!(!said.contains("file:"), "{door:?} {era:?} {eras:?}: {said}");
    }
}

/// A server with one session for all clients decides by the capabilities of that session which questions it may ask.
#[tokio::test]
async fn a_server_is_told_what_clients_may_be_able_to_answer() {
    let island = Island::rise(Eras::LegacyOnly).await;
    let gateway = Gateway::before(&island);
    let mute = gateway.visit_with(Door::Http, Era::Legacy, "Mute", Arc::new(NoHost)).await;
    let said = mute.call("whoami", json!({})).await;
    let seen: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let told = json!({ "elicitation": { "form": {}, "url": {} }, "roots": {}, "sampling": {} });
    assert_eq!(seen["capabilities"], told);
    // Ada supports forms but not URLs.
    let ada = gateway.visit(Door::Http, Era::Legacy, "Ada").await;
    let said = ada.call("link", json!({})).await;
    assert!(said.starts_with("-32602 ") && said.contains("`url` of `elicitation`"), "{said}");
}

/// Request metadata from the client reaches the server in either era, except fields that only one era understands.
#[tokio::test]
async fn what_a_caller_says_goes_along() {
    for (door, era, eras) in WAYS {
        let island = Island::rise(eras).await;
        let gateway = Gateway::before(&island);
        let ada = gateway.visit(door, era, "Ada").await;
        let meta = json!({ "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "x/y": { "z": 1 } });
        let said = ada.ask(Request::call_tool("whoami", None).meta(meta.clone().into())).await;
        let seen: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        for key in ["traceparent", "x/y"] {
            assert_eq!(seen["meta"][key], meta[key], "{door:?} {era:?} {eras:?}");
        }
        let era_key = "io.modelcontextprotocol/protocolVersion";
        assert_eq!(
            seen["meta"].get(era_key).is_some(),
            eras == Eras::ModernOnly,
            "{door:?} {era:?} {eras:?}"
        );
    }
}

#[tokio::test]
async fn log_lines_reach_the_caller_from_its_level_on() {
    for (door, era, eras) in WAYS {
        let island = Island::rise(eras).await;
        let gateway = Gateway::before(&island);
        let (mut ada, mut bob) =
            tokio::join!(gateway.visit(door, era, "Ada"), gateway.visit(door, era, "Bob"));
        let way = format!("{door:?} {era:?} {eras:?}");
        assert_eq!(ada.hears(LogLevel::Error).await, ["error"], "{way}");
        assert_eq!(bob.hears(LogLevel::Debug).await, ["debug", "info", "error"], "{way}");
        assert_eq!(ada.hears(LogLevel::Error).await, ["error"], "{way}");
        let strays = |news: Vec<News>| news.iter().filter(|it| matches!(it, News::Log(_))).count();
        assert_eq!((strays(ada.old_news()), strays(bob.old_news())), (0, 0), "{way}");
    }
}

#[tokio::test]
async fn changes_reach_those_who_subscribed() {
    for (door, era, eras) in WAYS {
        let island = Island::rise(eras).await;
        let gateway = Gateway::before(&island);
        let (mut ada, mut bob) =
            tokio::join!(gateway.visit(door, era, "Ada"), gateway.visit(door, era, "Bob"));
        let mut eve = gateway.visit(door, era, "Eve").await;
        let way = format!("{door:?} {era:?} {eras:?}");
        let updated = |it: &News| *it == News::ResourceUpdated(THING.to_owned());
        let mut watched = island.service.watched();
        ada.watch(&[THING]);
        bob.watch(&[THING]);
        for visitor in [&ada, &bob] {
            let agreed = visitor.session.is_watching(THING).await;
            assert_eq!(agreed, Ok(()), "{way}");
        }
        assert_eq!(watched.borrow_and_update().iter().collect::<Vec<_>>(), [THING], "{way}");
        assert_eq!(eve.call("touch", json!({})).await, "touch");
        ada.news(updated).await;
        bob.news(updated).await;
        // One of two subscribers unsubscribes; the other still receives updates.
        ada.watch(&[]);
        assert_eq!(eve.call("touch", json!({})).await, "touch");
        bob.news(updated).await;
        assert!(!eve.old_news().iter().any(updated), "{way}: nobody hears what they did not ask for");
        bob.watch(&[]);
        // The gateway unsubscribes at the server after the last client.
        time::timeout(Duration::from_secs(20), watched.wait_for(|it| it.is_empty()))
            .await
            .expect("in time")
            .expect("it serves");
        drop(ada.old_news());
        let unknown = Request::new("resources/subscribe").params(json!({ "uri": "nowhere://x" }).into());
        let refused = eve.ask(unknown).await;
        assert!(refused.starts_with("-320") || refused.starts_with("-326"), "{way}: {refused}");
    }
}

/// After a new session the gateway subscribes again and notifies the subscribers.
#[tokio::test]
async fn a_subscription_outlives_the_sources_session() {
    for (door, era, eras) in WAYS {
        let island = Island::rise(eras).await;
        let gateway = Gateway::before(&island);
        let mut ada = gateway.visit(door, era, "Ada").await;
        let way = format!("{door:?} {era:?} {eras:?}");
        let updated = |it: &News| *it == News::ResourceUpdated(THING.to_owned());
        ada.watch(&[THING]);
        assert_eq!(ada.session.is_watching(THING).await, Ok(()), "{way}");
        gateway.restart();
        assert_eq!(ada.call("echo", json!({ "nonce": 1 })).await, "1", "{way}");
        ada.news(updated).await;
        let mut watched = island.service.watched();
        let asked = watched.wait_for(|it| it.contains(THING));
        time::timeout(Duration::from_secs(20), asked).await.expect("in time").expect("it serves");
        // The subscription request has reached the server; once it has responded, updates arrive again.
        let bob = gateway.visit(door, era, "Bob").await;
        bob.watch(&[THING]);
        assert_eq!(bob.session.is_watching(THING).await, Ok(()), "{way}");
        drop(ada.old_news());
        assert_eq!(bob.call("touch", json!({})).await, "touch", "{way}");
        ada.news(updated).await;
    }
}

/// A call that waits for client input does not delay the shutdown.
#[tokio::test]
async fn a_waiting_call_does_not_keep_the_gateway() {
    let island = Island::rise(Eras::LegacyOnly).await;
    let gateway = Gateway::before(&island);
    let ada = gateway.visit(Door::Http, Era::Modern, "Ada").await;
    let said = ada.ask(Request::call_tool("form", None).once(true)).await;
    assert!(said.contains("input_required"), "{said}");
    drop(ada);
    let begun = std::time::Instant::now();
    let exit = tokio::task::spawn_blocking(|| gateway.terminate()).await.expect("it ends");
    assert_eq!(exit, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(60), "it took {:?}", begun.elapsed());
}

/// Each of two clients makes thirty calls with the same request ids.
#[tokio::test]
async fn same_ids_are_never_crossed() {
    for (door, era, eras) in WAYS {
        let island = Island::rise(eras).await;
        let gateway = Gateway::before(&island);
        let (ada, bob) = tokio::join!(gateway.visit(door, era, "Ada"), gateway.visit(door, era, "Bob"));
        let mut calls = tokio::task::JoinSet::new();
        for (visitor, name) in [(Arc::new(ada), "Ada"), (Arc::new(bob), "Bob")] {
            for number in 0..30_u64 {
                let visitor = visitor.clone();
                calls.spawn(async move {
                    let nonce = format!("{name} {number}");
                    let said = visitor.call("echo", json!({ "nonce": nonce, "wait": number % 3 * 5 })).await;
                    (said, json!(nonce).to_string())
                });
            }
        }
        for (said, nonce) in calls.join_all().await {
            assert_eq!(said, nonce, "{door:?} {era:?} {eras:?}");
        }
    }
}

/// A list has one page, so any cursor is invalid.
#[tokio::test]
async fn there_is_no_second_page() {
    let island = Island::rise(Eras::LegacyOnly).await;
    let gateway = Gateway::before(&island);
    for era in [Era::Legacy, Era::Modern] {
        let ada = gateway.visit(Door::Http, era, "Ada").await;
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
async fn a_line_of_nobodys_goes_to_those_who_set_a_level() {
    for door in [Door::Http, Door::Ws, Door::Sse] {
        let island = Island::rise(Eras::LegacyOnly).await;
        let gateway = Gateway::before(&island);
        let mut ada = gateway.visit(door, Era::Legacy, "Ada").await;
        let mut bob = gateway.visit(door, Era::Legacy, "Bob").await;
        assert_eq!(ada.hears(LogLevel::Info).await, ["info", "error"], "{door:?}");
        let line = json!({ "level": "warning", "data": "drone" });
        island.service.announce(News::Log(line.into()));
        let News::Log(line) = ada.news(|it| matches!(it, News::Log(_))).await else { unreachable!() };
        let line: Value = line.decode().expect("JSON");
        assert_eq!(line, json!({ "level": "warning", "logger": "island", "data": "drone" }), "{door:?}");
        assert_eq!(bob.call("echo", json!({ "nonce": 1 })).await, "1");
        assert!(!bob.old_news().iter().any(|it| matches!(it, News::Log(_))), "{door:?}");
    }
}
