//! The instructions of the servers in the gateway's `initialize` and `server/discover`.

use super::{
    test_client::{Gateway, Transport},
    test_server::TestServer,
};
use serde_json::json;
use std::time::Duration;
use tokio::time;
use wharf_mcp::{serve::Eras, session::Era};

/// Returns the instructions that a new client receives.
async fn received(gateway: &Gateway, era: Era) -> String {
    let client = gateway.connect(Transport::Http, era, "Ada").await;
    client.session.terms().instructions.clone().unwrap_or_default()
}

#[tokio::test]
async fn clients_receive_the_instructions_of_all_servers() {
    let (one, two, three) = tokio::join!(
        TestServer::start(Eras::LegacyOnly),
        TestServer::start(Eras::ModernOnly),
        TestServer::start(Eras::Both)
    );
    one.set_instructions("Ask first.");
    two.set_instructions(&"\u{2693}".repeat(2_000));
    three.set_instructions("Not for clients.");
    let gateway =
        Gateway::start(&[("one", &one, ""), ("two", &two, ""), ("three", &three, "instructions: false")]);
    for era in [Era::Legacy, Era::Modern] {
        let text = received(&gateway, era).await;
        assert!(text.starts_with("# one\n\nAsk first.\n\n# two\n\n\u{2693}"), "{era:?} {text}");
        assert!(
            text.ends_with("\u{2693}…\n[cut: the server's instructions have 6000 bytes]"),
            "{era:?} {text}"
        );
        assert!(text.len() < 2_100 && !text.contains("Not for clients."), "{era:?} {text}");
    }
}

#[tokio::test]
async fn new_sessions_receive_the_current_instructions() {
    let (one, two) = tokio::join!(TestServer::start(Eras::LegacyOnly), TestServer::start(Eras::Both));
    one.set_instructions("Ask first.");
    two.set_instructions("Ask later.");
    let gateway = Gateway::start(&[("island", &one, ""), ("two", &two, "")]);
    assert_eq!(received(&gateway, Era::Legacy).await, "# island\n\nAsk first.\n\n# two\n\nAsk later.");
    // The server restarts with another text.
    one.set_instructions("Do not ask.");
    gateway.restart();
    let ada = gateway.connect(Transport::Http, Era::Legacy, "Ada").await;
    assert_eq!(ada.call("island:echo", json!({ "nonce": 1 })).await, "1");
    assert_eq!(received(&gateway, Era::Legacy).await, "# island\n\nDo not ask.\n\n# two\n\nAsk later.");
    // It leaves.
    gateway.rewrite(&[("two", &two, "")]);
    let left = async {
        while received(&gateway, Era::Modern).await != "# two\n\nAsk later." {
            time::sleep(Duration::from_millis(100)).await;
        }
    };
    time::timeout(Duration::from_secs(20), left).await.expect("the gateway reads the new file");
}
