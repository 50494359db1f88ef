//! Tests the cache lifetime (`ttlMs`, `cacheScope`) of the gateway's responses in the 2026-07-28 era.

use super::{
    test_client::{Gateway, TestClient, Transport},
    test_server::{THING, TestServer},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time;
use wharf_mcp::{Request, serve::Eras, session::Era};

const LISTS: [&str; 4] = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/// A server: its era, the lifetime of its lists in seconds, and whether they are public.
type Server = (Eras, u64, bool);

/// Servers, the maximum lifetime of their merged list in seconds, whether it is cacheable, and its scope.
const CASES: &[(&[Server], u64, bool, &str)] = &[
    (&[(Eras::ModernOnly, 600, true)], 600, true, "public"),
    (&[(Eras::ModernOnly, 600, true), (Eras::ModernOnly, 60, true)], 60, true, "public"),
    (&[(Eras::ModernOnly, 60, true), (Eras::ModernOnly, 600, false)], 60, true, "private"),
    (&[(Eras::ModernOnly, 0, true)], 0, false, "public"),
    // A server of the handshake era states no lifetime.
    (&[(Eras::ModernOnly, 600, true), (Eras::LegacyOnly, 600, true)], 0, false, "private"),
];

#[tokio::test]
async fn merged_list_has_the_shortest_lifetime() {
    for (servers, most, is_cacheable, scope) in CASES {
        let mut test_servers = Vec::new();
        for (eras, seconds, shared) in *servers {
            test_servers.push(TestServer::start_with(*eras, (Duration::from_secs(*seconds), *shared)).await);
        }
        let gateway = Gateway::in_front_of_all(&test_servers.iter().collect::<Vec<_>>());
        let ada = gateway.connect(Transport::Http, Era::Modern, "Ada").await;
        for list in LISTS {
            let result = ada.result(Request::new(list)).await;
            let ttl = result["ttlMs"].as_u64().unwrap_or_else(|| panic!("{list}: {result}"));
            assert!(ttl <= most * 1_000 && is_cacheable == &(ttl > 0), "{servers:?} {list}: {ttl}");
            assert_eq!(result["cacheScope"], *scope, "{servers:?} {list}");
        }
        let old = gateway.connect(Transport::Http, Era::Legacy, "Old").await;
        for list in LISTS {
            let result = old.result(Request::new(list)).await;
            assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none(), "{list}: {result}");
        }
    }
}

/// A resource comes from one server, so it has that server's lifetime.
#[tokio::test]
async fn resource_keeps_the_lifetime_of_its_server() {
    for (eras, expected) in
        [(Eras::ModernOnly, json!([60_000, "public"])), (Eras::LegacyOnly, json!([0, "private"]))]
    {
        let test_server = TestServer::start_with(eras, (Duration::from_secs(60), true)).await;
        let gateway = Gateway::in_front_of(&test_server);
        let ada = gateway.connect(Transport::Http, Era::Modern, "Ada").await;
        let read = ada.result(Request::read_resource(THING)).await;
        assert_eq!(json!([read["ttlMs"], read["cacheScope"]]), expected, "{eras:?}");
        // A request for client input must not be cached.
        let asking = ada.result(Request::read_resource("island://secret/1").single_round(true)).await;
        assert_eq!(asking["resultType"], "input_required", "{eras:?}: {asking}");
        assert!(asking.get("ttlMs").is_none(), "{eras:?}: {asking}");
    }
}

/// A list with a short lifetime is read again when it expires, without a notification from the server.
#[tokio::test]
async fn expired_list_is_read_again() {
    let test_server = TestServer::start_with(Eras::ModernOnly, (Duration::from_millis(300), true)).await;
    let gateway = Gateway::in_front_of(&test_server);
    let ada = gateway.connect(Transport::Http, Era::Modern, "Ada").await;
    assert!(!has_grown(&ada).await);
    assert_eq!(ada.call("grow", json!({})).await, "null");
    let seen = async {
        while !has_grown(&ada).await {
            time::sleep(Duration::from_millis(50)).await;
        }
    };
    time::timeout(Duration::from_secs(20), seen).await.expect("it is read again");
}

async fn has_grown(test_client: &TestClient) -> bool {
    let listed = test_client.result(Request::new("tools/list")).await;
    let names = listed["tools"].as_array().into_iter().flatten().map(|it| &it["name"]);
    names.collect::<Vec<&Value>>().contains(&&json!("grown-0"))
}
