//! Tests the switch to another plan.

use super::{
    fake_server::FakeServer,
    rig::{Rig, plan, summary, upstream_context},
};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;
use wharf_runtime::{Call, PlanChanges, RuntimeOptions};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&it| it.to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn unchanged_sources_and_calls_in_flight_survive_a_plan_change() {
    let first = plan(&[("kept", ""), ("changed", ""), ("gone", "")]);
    let rig = Rig::start(&first, FakeServer::default(), RuntimeOptions::default());
    rig.handle.settled().await;
    assert_eq!(rig.fake_server.opens(), 3);
    let mut calls = JoinSet::new();
    for tool in ["kept__slow", "changed__slow", "gone__slow"] {
        let handle = rig.handle.clone();
        let call = Call::new(tool).arguments(json!({ "ms": 5_000, "nonce": tool }));
        calls.spawn(async move { summary(&handle.call(call).await) });
    }
    rig.fake_server.wait_for("tools/call", 3).await;

    let later = FakeServer::default();
    let second = plan(&[("new", ""), ("kept", ""), ("changed", "request_timeout: 7")]);
    let applied = rig.runtime.apply(&second, &upstream_context(&later));
    let expected = PlanChanges {
        started: names(&["new", "changed"]),
        stopped: names(&["changed", "gone"]),
        kept: names(&["kept"]),
    };
    assert_eq!(applied, expected);
    // Immediately after the switch.
    for (tool, expected) in [
        ("new__echo", "ok x"),
        ("changed__echo", "ok x"),
        ("kept__echo", "ok x"),
        ("gone__echo", "MCPToolNotFoundError resolve no"),
    ] {
        assert_eq!(rig.call(tool, json!({ "nonce": "x" })).await, expected, "{tool}");
    }
    assert_eq!((rig.fake_server.opens(), later.opens()), (3, 2));
    let mut answers = calls.join_all().await;
    answers.sort_unstable();
    assert_eq!(answers, ["ok changed__slow", "ok gone__slow", "ok kept__slow"]);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn last_of_many_plans_applies() {
    let rig = Rig::start(&plan(&[("s0", "")]), FakeServer::default(), RuntimeOptions::default());
    let upstream_context = upstream_context(&rig.fake_server);
    for number in 1..=100 {
        rig.runtime.apply(&plan(&[(&format!("s{number}"), "")]), &upstream_context);
    }
    let catalog = rig.handle.settled().await;
    assert!(catalog.tools.iter().all(|it| it.source == "s100"), "{:?}", catalog.tools);
    assert_eq!(rig.call("s100__echo", json!({ "nonce": "last" })).await, "ok last");
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// A caller waits for lists that will never be read, because the source was replaced.
#[tokio::test(start_paused = true)]
async fn refresh_of_a_replaced_source_returns() {
    let rig = Rig::start(&plan(&[("it", "")]), FakeServer::default(), RuntimeOptions::default());
    rig.handle.settled().await;
    for _ in 0..5 {
        rig.handle.refresh("it").await.expect("there is such a source");
    }
    let refresh = rig.handle.refresh("it");
    let replace = async {
        rig.runtime.apply(&plan(&[("it", "request_timeout: 9")]), &upstream_context(&rig.fake_server))
    };
    let (refreshed, _) = tokio::join!(refresh, replace);
    assert!(refreshed.is_ok());
    rig.runtime.shutdown(Duration::ZERO).await;
}
