//! Tests which events observers receive, and their order.

use super::rig::Rig;
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time;
use wharf_runtime::{Event, Happening, Observer, Tuning};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl Observer for Ear {
    fn heard(&self, event: &Event) {
        let what = match &event.what {
            Happening::Session(it) => it.as_str().to_owned(),
            Happening::Connection(it) => it.as_str().to_owned(),
            Happening::Health(it) => it.as_str().to_owned(),
            Happening::Breaker(it) => it.as_str().to_owned(),
            Happening::Listed { tools } => tools.to_string(),
            Happening::Log { level, data, .. } => format!("{level} {}", data.as_str()),
            Happening::Progress { progress, .. } => progress.progress.to_string(),
            Happening::Called(record) => format!("{} {}", record.tool, record.status().as_str()),
            other => format!("{other:?}"),
        };
        self.0.lock().expect("nobody panics with it").push(format!("{} {what}", event.what.as_str()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_everything_in_order() {
    let ear = Arc::new(Ear::default());
    let rig = Rig::one("request_timeout: 1", Tuning { observers: vec![ear.clone()], ..Tuning::default() });
    rig.handle.settled().await;
    rig.call("it__progress", json!({ "ms": 10, "times": 2, "nonce": "n" })).await;
    rig.puppet.say("notifications/message", json!({ "level": "warning", "data": "careful" }));
    time::sleep(SECOND).await;
    rig.puppet.offer(&["echo", "silent"]);
    rig.puppet.say("notifications/tools/list_changed", json!({}));
    time::sleep(SECOND).await;
    for _ in 0..5 {
        rig.call("it__silent", json!({})).await;
    }
    rig.call("it__echo", json!({})).await;
    time::sleep(30 * SECOND).await;
    rig.call("it__echo", json!({})).await;
    time::sleep(SECOND).await;
    rig.runtime.shutdown(Duration::ZERO).await;
    let heard = ear.0.lock().expect("nobody panics with it").join("\n");
    assert_eq!(heard, HEARD.trim());
}

#[tokio::test(start_paused = true)]
async fn a_listener_is_let_go_with_the_runtime_even_if_it_holds_a_handle() {
    let rig = Rig::one("", Tuning::default());
    let handle = rig.handle.clone();
    let mut events = handle.events();
    rig.runtime.shutdown(Duration::ZERO).await;
    while events.next().await.is_some() {}
    drop(handle);
}

const HEARD: &str = "
session connecting
connection connecting
session connected
connection connected
health healthy
listed 8
progress 1
progress 2
call it__progress success
log warning \"careful\"
listed 2
health degraded
call it__silent timeout
call it__silent timeout
health unhealthy
call it__silent timeout
call it__silent timeout
breaker OPEN
connection degraded
call it__silent timeout
call it__echo failure
session disconnected
breaker HALF-OPEN
session connecting
session connected
health healthy
breaker CLOSED
connection connected
call it__echo success
listed 2
session disconnected
connection disconnected
";
