//! Tests resumption of broken streams of our HTTP server.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, watch},
    time,
};
use wharf_mcp::{
    News, Raw,
    serve::{
        About, Client, Handler, HandlerFuture, Incoming, Service,
        http::{Body, HttpOptions, HttpService},
    },
};

const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// Server with one tool that sends a progress notification per permit and responds after the fourth.
#[derive(Clone)]
struct Steps {
    go: Arc<Semaphore>,
    /// Number of running calls.
    running: watch::Sender<u32>,
    /// Length of each progress message, in bytes.
    length: usize,
}

struct RunningCall(watch::Sender<u32>);

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.send_modify(|it| *it -= 1);
    }
}

impl Handler for Steps {
    fn about(&self) -> About {
        let capabilities = json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true } });
        About::new("steps", "1", capabilities.into())
    }

    fn handle(&self, _request: Incoming, client: Client) -> HandlerFuture {
        let Steps { go, running, length } = self.clone();
        Box::pin(async move {
            running.send_modify(|it| *it += 1);
            let _running = RunningCall(running);
            for step in 1..=4 {
                go.acquire().await.unwrap().forget();
                client.progress(f64::from(step), None, Some(&"x".repeat(length))).await;
            }
            go.acquire().await.unwrap().forget();
            Ok(json!({ "content": [] }).into())
        })
    }
}

/// Server with one session.
struct TestServer {
    steps: Steps,
    service: Service<Steps>,
    http: HttpService,
    session: String,
}

/// Event stream, read one event at a time.
struct EventStream(Body);

impl TestServer {
    async fn open(length: usize) -> TestServer {
        let steps = Steps { go: Arc::new(Semaphore::new(0)), running: watch::Sender::new(0), length };
        let service = Service::new(steps.clone());
        let http = HttpService::new(service.clone(), HttpOptions::default());
        let mut server = TestServer { steps, service, http, session: String::new() };
        let initialize =
            r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
        let response = server.send("POST", None, initialize).await;
        server.session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        server
    }

    async fn send(&self, method: &str, last: Option<&str>, body: &str) -> http::Response<Body> {
        self.send_accepting("*/*", method, last, body).await
    }

    async fn send_accepting(
        &self,
        accept: &str,
        method: &str,
        last: Option<&str>,
        body: &str,
    ) -> http::Response<Body> {
        let mut request = http::Request::builder().method(method).uri("/mcp");
        request = request.header("content-type", "application/json").header("accept", accept);
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        self.http.respond(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await
    }

    fn go(&self, steps: usize) {
        self.steps.go.add_permits(steps);
    }

    /// Starts a call and lets it take its first step, so that the response becomes a stream.
    async fn call(&self) -> EventStream {
        self.go(1);
        let call = r#"{"id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":7}}}"#;
        let called = time::timeout(STEP_TIMEOUT, self.send("POST", None, call)).await;
        EventStream(called.expect("a stream in time").into_body())
    }

    async fn listen(&self, last: Option<&str>) -> EventStream {
        let response = self.send("GET", last, "").await;
        assert_eq!(response.status(), 200);
        EventStream(response.into_body())
    }

    async fn wait_for_running(&self, count: u32) {
        let mut running = self.steps.running.subscribe();
        let waiting = running.wait_for(|it| *it == count);
        drop(time::timeout(STEP_TIMEOUT, waiting).await.expect("in time").unwrap());
    }
}

impl EventStream {
    /// Returns the id of the next event and a one-word summary; `None` at the end.
    async fn next(&mut self) -> Option<(String, String)> {
        let frame = time::timeout(STEP_TIMEOUT, self.0.frame()).await.expect("an event in time")?;
        let text = String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap();
        let (id, data) = text.strip_prefix("id: ").unwrap_or_else(|| panic!("{text}")).split_once('\n')?;
        let data = Raw::parse(data.strip_prefix("data: ").unwrap().trim().to_owned()).unwrap();
        let text = |it: &Raw| it.as_str().trim_matches('"').to_owned();
        let step = data.member("params").and_then(|it| it.member("progress"));
        let word = step.or_else(|| data.member("method")).map_or("answer".to_owned(), |it| text(&it));
        Some((id.to_owned(), word))
    }

    /// Returns summaries of all remaining events.
    async fn rest(mut self) -> Vec<String> {
        let mut words = Vec::new();
        while let Some((_, word)) = self.next().await {
            words.push(word);
        }
        words
    }

    fn is_silent(&mut self) -> bool {
        let mut frame = std::pin::pin!(self.0.frame());
        let waker = std::task::Waker::noop();
        frame.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending()
    }
}

#[tokio::test]
async fn a_detached_call_continues_and_is_resumed() {
    let server = TestServer::open(1).await;
    let mut stream = server.call().await;
    let (id, word) = stream.next().await.unwrap();
    assert_eq!(word, "1.0");
    drop(stream);
    server.go(2);
    let mut resumed = server.listen(Some(&id)).await;
    let (second, word) = resumed.next().await.unwrap();
    assert_eq!(word, "2.0");
    assert_eq!(resumed.next().await.unwrap().1, "3.0");
    // The stream breaks again, and the client has seen fewer events than were sent.
    drop(resumed);
    server.go(2);
    assert_eq!(server.listen(Some(&second)).await.rest().await, ["3.0", "4.0", "answer"]);
    // Resume again from the same event, as a client that lost the response would.
    assert_eq!(server.listen(Some(&second)).await.rest().await, ["3.0", "4.0", "answer"]);
    server.wait_for_running(0).await;
}

/// Tests a client that knows about its broken connection while the server does not.
#[tokio::test]
async fn resuming_takes_the_stream_from_its_holder() {
    let server = TestServer::open(1).await;
    let mut stream = server.call().await;
    let (id, _) = stream.next().await.unwrap();
    server.go(1);
    assert_eq!(stream.next().await.unwrap().1, "2.0");
    let (old, resumed) = tokio::join!(stream.rest(), server.listen(Some(&id)));
    assert_eq!(old, [] as [&str; 0]);
    server.go(3);
    assert_eq!(resumed.rest().await, ["2.0", "3.0", "4.0", "answer"]);
}

#[tokio::test]
async fn a_resumed_stream_replays_only_its_own_events() {
    let server = TestServer::open(1).await;
    let mut one = server.call().await;
    // The first call waits for its second permit, so it gets this one before the other call starts.
    server.go(1);
    let (mut two, mut notifications) = (server.call().await, server.listen(None).await);
    server.service.announce(News::ToolsChanged);
    let ids = [one.next().await, two.next().await, notifications.next().await].map(|it| it.unwrap().0);
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    drop((one, two, notifications));
    server.service.announce(News::PromptsChanged);
    server.go(8);
    assert_eq!(server.listen(Some(&ids[0])).await.rest().await, ["2.0", "3.0", "4.0", "answer"]);
    assert_eq!(server.listen(Some(&ids[1])).await.rest().await, ["2.0", "3.0", "4.0", "answer"]);
    let mut notifications = server.listen(Some(&ids[2])).await;
    assert_eq!(notifications.next().await.unwrap().1, "notifications/prompts/list_changed");
    // The stream stays open and delivers new notifications.
    assert!(notifications.is_silent());
    server.service.announce(News::ToolsChanged);
    assert_eq!(notifications.next().await.unwrap().1, "notifications/tools/list_changed");
}

/// Only one of several GET streams gets a notification; another takes over when that one is gone.
#[tokio::test]
async fn a_notification_goes_to_one_get_stream() {
    let server = TestServer::open(1).await;
    let (mut old, mut new) = (server.listen(None).await, server.listen(None).await);
    server.service.announce(News::ToolsChanged);
    assert!(old.is_silent());
    assert_eq!(new.next().await.unwrap().1, "notifications/tools/list_changed");
    drop(new);
    server.service.announce(News::PromptsChanged);
    assert_eq!(old.next().await.unwrap().1, "notifications/prompts/list_changed");
}

#[tokio::test]
async fn unknown_last_event_id_resumes_from_now() {
    let server = TestServer::open(1).await;
    for last in ["99-1", "0-0", "nonsense", "18446744073709551616-1", ""] {
        let mut stream = server.listen(Some(last)).await;
        assert!(stream.is_silent(), "{last}");
        server.service.announce(News::ToolsChanged);
        assert_eq!(stream.next().await.unwrap().1, "notifications/tools/list_changed", "{last}");
    }
}

/// Events that exceed the replay buffer are dropped, but never the response.
#[tokio::test]
async fn the_response_survives_a_full_replay_buffer() {
    let server = TestServer::open(60 << 10).await;
    let mut stream = server.call().await;
    let (id, _) = stream.next().await.unwrap();
    drop(stream);
    server.go(4);
    server.wait_for_running(0).await;
    assert_eq!(server.listen(Some(&id)).await.rest().await, ["4.0", "answer"]);
}

#[tokio::test(start_paused = true)]
async fn a_detached_call_is_dropped_after_its_timeout() {
    let server = TestServer::open(1).await;
    let mut stream = server.call().await;
    let (id, _) = stream.next().await.unwrap();
    server.wait_for_running(1).await;
    drop(stream);
    time::sleep(Duration::from_secs(59)).await;
    assert_eq!(*server.steps.running.borrow(), 1);
    time::sleep(Duration::from_secs(2)).await;
    assert_eq!(*server.steps.running.borrow(), 0);
    assert!(server.listen(Some(&id)).await.is_silent());
}

#[tokio::test]
async fn a_detached_call_can_be_cancelled() {
    let server = TestServer::open(1).await;
    for cancel in [true, false] {
        let mut stream = server.call().await;
        let (id, _) = stream.next().await.unwrap();
        drop(stream);
        if cancel {
            let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#;
            assert_eq!(server.send("POST", None, cancelled).await.status(), 202);
            assert_eq!(server.listen(Some(&id)).await.rest().await, ["answer"]);
        } else {
            assert_eq!(server.send("DELETE", None, "").await.status(), 204);
        }
        server.wait_for_running(0).await;
    }
}

/// A cancelled request gets no response.
#[tokio::test]
async fn a_cancelled_request_is_not_answered() {
    let server = TestServer::open(1).await;
    let call = r#"{"id":2,"method":"tools/call","params":{"name":"t"}}"#;
    let (response, _) = tokio::join!(server.send("POST", None, call), async {
        server.wait_for_running(1).await;
        let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#;
        assert_eq!(server.send("POST", None, cancelled).await.status(), 202);
    });
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(EventStream(response.into_body()).rest().await, [] as [&str; 0]);
}

#[tokio::test]
async fn plain_json_responses_are_not_resumable() {
    let server = TestServer::open(1).await;
    let response = server.send("POST", None, r#"{"id":3,"method":"ping"}"#).await;
    assert_eq!(response.headers()["content-type"], "application/json");
}

/// The stream of a slow call begins before its first message, so that the call can be resumed from then on.
#[tokio::test(start_paused = true)]
async fn a_slow_call_of_a_client_that_prefers_a_stream_is_resumable() {
    let server = TestServer::open(1).await;
    let call = r#"{"id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":7}}}"#;
    let response = server.send_accepting("text/event-stream, application/json", "POST", None, call).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body();
    let opening = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(opening, "id: 1-0\nretry: 1000\ndata: \n\n");
    drop(stream);
    server.go(5);
    assert_eq!(server.listen(Some("1-0")).await.rest().await, ["1.0", "2.0", "3.0", "4.0", "answer"]);
}
