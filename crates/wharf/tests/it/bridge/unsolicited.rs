//! Messages that belong to no request: finished elicitations, changed roots, progress without a token.

use super::{
    test_client::{Gateway, OpensUrls, TestClient, Transport},
    test_server::TestServer,
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time;
use wharf_mcp::{News, Raw, Request, serve::Eras, session::Era};

const TRANSPORTS: [Transport; 3] = [Transport::Http, Transport::Ws, Transport::Sse];

async fn connect(gateway: &Gateway, transport: Transport, name: &'static str) -> TestClient {
    gateway.connect_with(transport, Era::Legacy, name, Arc::new(OpensUrls(name))).await
}

fn completions(client: &mut TestClient) -> Vec<Raw> {
    let completed = |it| if let News::ElicitationComplete(params) = it { Some(params) } else { None };
    client.received_news().into_iter().filter_map(completed).collect()
}

#[tokio::test]
async fn finished_elicitation_reaches_the_client_that_was_asked() {
    for transport in TRANSPORTS {
        let test_server = TestServer::start(Eras::LegacyOnly).await;
        let gateway = Gateway::in_front_of(&test_server);
        let (mut ada, mut bob) =
            tokio::join!(connect(&gateway, transport, "Ada"), connect(&gateway, transport, "Bob"));
        let said = ada.call("link", json!({})).await;
        assert!(said.contains("accept"), "{transport:?} {said}");
        let said = ada.call("blocked", json!({})).await;
        assert!(said.starts_with("-32042 "), "{transport:?} {said}");
        for id in ["1", "2"] {
            assert_eq!(bob.call("finish", json!({ "id": id })).await, "finish", "{transport:?}");
            let news = ada.news(|it| matches!(it, News::ElicitationComplete(_))).await;
            assert_eq!(
                news,
                News::ElicitationComplete(json!({ "elicitationId": id }).into()),
                "{transport:?}"
            );
        }
        // Nobody was asked with this id, and a notification arrives once.
        assert_eq!(bob.call("finish", json!({ "id": "3" })).await, "finish", "{transport:?}");
        assert_eq!(ada.call("finish", json!({ "id": "1" })).await, "finish", "{transport:?}");
        assert_eq!((completions(&mut ada), completions(&mut bob)), (vec![], vec![]), "{transport:?}");
    }
}

#[tokio::test]
async fn changed_roots_reach_handshake_servers() {
    for transport in TRANSPORTS {
        let test_server = TestServer::start(Eras::LegacyOnly).await;
        let gateway = Gateway::in_front_of(&test_server);
        let (ada, bob) =
            tokio::join!(connect(&gateway, transport, "Ada"), connect(&gateway, transport, "Bob"));
        // The gateway's own session with the server is open after a call.
        assert_eq!(ada.call("echo", json!({ "nonce": 1 })).await, "1", "{transport:?}");
        for client in [&ada, &bob] {
            client.session.notify("notifications/roots/list_changed", None).await.expect("it is sent");
            let asked = test_server.wait_for_roots_of(client.name);
            let asked = time::timeout(Duration::from_secs(20), asked).await;
            asked.unwrap_or_else(|_| {
                panic!("{transport:?}: the server did not get the roots of {}", client.name)
            });
        }
    }
}

#[tokio::test]
async fn progress_without_a_token_reaches_the_only_caller() {
    for (era, eras) in [
        (Era::Legacy, Eras::LegacyOnly),
        (Era::Modern, Eras::LegacyOnly),
        (Era::Legacy, Eras::ModernOnly),
        (Era::Modern, Eras::ModernOnly),
    ] {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        let ada = gateway.connect(Transport::Http, era, "Ada").await;
        let received = Arc::new(Mutex::new(Vec::new()));
        let reports = received.clone();
        let request = Request::call_tool("advance", None)
            .on_progress(move |it| reports.lock().expect("a lock").push((it.progress, it.total)));
        assert_eq!(ada.ask(request).await, "advance", "{era:?} {eras:?}");
        assert_eq!(*received.lock().expect("a lock"), [(1.0, Some(2.0))], "{era:?} {eras:?}");
    }
}
