//! Tests the switch to another plan.

use super::{
    puppet::Puppet,
    rig::{Rig, ground, plan, told},
};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;
use wharf_runtime::{Applied, Call, Tuning};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&it| it.to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_has_not_changed_goes_on_and_so_do_calls_of_what_is_gone() {
    let first = plan(&[("kept", ""), ("changed", ""), ("gone", "")]);
    let rig = Rig::start(&first, Puppet::default(), Tuning::default());
    rig.handle.settled().await;
    assert_eq!(rig.puppet.opens(), 3);
    let mut calls = JoinSet::new();
    for tool in ["kept__slow", "changed__slow", "gone__slow"] {
        let handle = rig.handle.clone();
        let call = Call::new(tool).arguments(json!({ "ms": 5_000, "nonce": tool }));
        calls.spawn(async move { told(&handle.call(call).await) });
    }
    rig.puppet.hears("tools/call", 3).await;

    let later = Puppet::default();
    let second = plan(&[("new", ""), ("kept", ""), ("changed", "request_timeout: 7")]);
    let applied = rig.runtime.apply(&second, &ground(&later));
    let expected = Applied {
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
    assert_eq!((rig.puppet.opens(), later.opens()), (3, 2));
    let mut answers = calls.join_all().await;
    answers.sort_unstable();
    assert_eq!(answers, ["ok changed__slow", "ok gone__slow", "ok kept__slow"]);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn many_plans_at_once_leave_the_last() {
    let rig = Rig::start(&plan(&[("s0", "")]), Puppet::default(), Tuning::default());
    let ground = ground(&rig.puppet);
    for number in 1..=100 {
        rig.runtime.apply(&plan(&[(&format!("s{number}"), "")]), &ground);
    }
    let catalog = rig.handle.settled().await;
    assert!(catalog.tools.iter().all(|it| it.source == "s100"), "{:?}", catalog.tools);
    assert_eq!(rig.call("s100__echo", json!({ "nonce": "last" })).await, "ok last");
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// A caller waits for lists that will never be read, because the source was replaced.
#[tokio::test(start_paused = true)]
async fn whoever_waits_for_the_lists_of_a_replaced_source_is_let_go() {
    let rig = Rig::start(&plan(&[("it", "")]), Puppet::default(), Tuning::default());
    rig.handle.settled().await;
    for _ in 0..5 {
        rig.handle.refresh("it").await.expect("there is such a source");
    }
    let refresh = rig.handle.refresh("it");
    let replace = async { rig.runtime.apply(&plan(&[("it", "request_timeout: 9")]), &ground(&rig.puppet)) };
    let (refreshed, _) = tokio::join!(refresh, replace);
    assert!(refreshed.is_ok());
    rig.runtime.shutdown(Duration::ZERO).await;
}
