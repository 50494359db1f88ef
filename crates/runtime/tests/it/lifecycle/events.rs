//! Tests which events observers receive, and their order.

use super::rig::Rig;
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time;
use wharf_runtime::{Event, EventKind, Observer, RuntimeOptions};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct RecordingObserver(Mutex<Vec<String>>);

impl Observer for RecordingObserver {
    fn on_event(&self, event: &Event) {
        let what = match &event.what {
            EventKind::Session(it) => it.as_str().to_owned(),
            EventKind::Connection(it) => it.as_str().to_owned(),
            EventKind::Health(it) => it.as_str().to_owned(),
            EventKind::Breaker(it) => it.as_str().to_owned(),
            EventKind::Listed { tools } => tools.to_string(),
            EventKind::Log { level, data, .. } => format!("{level} {}", data.as_str()),
            EventKind::Begun { tool_id, .. } => tool_id.clone(),
            EventKind::Progress { progress, .. } => progress.progress.to_string(),
            EventKind::Called(record) => format!("{} {}", record.tool, record.status().as_str()),
            other => format!("{other:?}"),
        };
        self.0.lock().expect("no panic while locked").push(format!("{} {what}", event.what.as_str()));
    }
}

#[tokio::test(start_paused = true)]
async fn observer_receives_all_events_in_order() {
    let observer = Arc::new(RecordingObserver::default());
    let rig = Rig::one(
        "request_timeout: 1",
        RuntimeOptions { observers: vec![observer.clone()], ..RuntimeOptions::default() },
    );
    rig.handle.settled().await;
    rig.call("it__progress", json!({ "ms": 10, "times": 2, "nonce": "n" })).await;
    rig.fake_server.say("notifications/message", json!({ "level": "warning", "data": "careful" }));
    time::sleep(SECOND).await;
    rig.fake_server.offer(&["echo", "silent"]);
    rig.fake_server.say("notifications/tools/list_changed", json!({}));
    time::sleep(SECOND).await;
    for _ in 0..5 {
        rig.call("it__silent", json!({})).await;
    }
    rig.call("it__echo", json!({})).await;
    time::sleep(30 * SECOND).await;
    rig.call("it__echo", json!({})).await;
    time::sleep(SECOND).await;
    rig.runtime.shutdown(Duration::ZERO).await;
    let recorded = observer.0.lock().expect("no panic while locked").join("\n");
    assert_eq!(recorded, EXPECTED_EVENTS.trim());
}

#[tokio::test(start_paused = true)]
async fn event_stream_ends_with_the_runtime_despite_a_handle() {
    let rig = Rig::one("", RuntimeOptions::default());
    let handle = rig.handle.clone();
    let mut events = handle.events();
    rig.runtime.shutdown(Duration::ZERO).await;
    while events.next().await.is_some() {}
    drop(handle);
}

const EXPECTED_EVENTS: &str = "
session connecting
connection connecting
session connected
connection connected
health healthy
listed 8
begun it:progress
progress 1
progress 2
call it__progress success
log warning \"careful\"
listed 2
begun it:silent
health degraded
call it__silent timeout
begun it:silent
call it__silent timeout
begun it:silent
health unhealthy
call it__silent timeout
begun it:silent
call it__silent timeout
begun it:silent
breaker OPEN
connection degraded
call it__silent timeout
begun it:echo
call it__echo failure
session disconnected
begun it:echo
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
