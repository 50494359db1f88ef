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
        About, Client, Handler, Incoming, Service, Serving,
        http::{Body, HttpOptions, HttpService},
    },
};

const LONG: Duration = Duration::from_secs(20);

/// Server with one tool that sends a progress notification per permit and responds after the fourth.
#[derive(Clone)]
struct Steps {
    go: Arc<Semaphore>,
    /// Number of running calls.
    out: watch::Sender<u32>,
    /// Length of each progress message, in bytes.
    length: usize,
}

struct Out(watch::Sender<u32>);

impl Drop for Out {
    fn drop(&mut self) {
        self.0.send_modify(|it| *it -= 1);
    }
}

impl Handler for Steps {
    fn about(&self) -> About {
        let capabilities = json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true } });
        About::new("steps", "1", capabilities.into())
    }

    fn handle(&self, _request: Incoming, client: Client) -> Serving {
        let Steps { go, out, length } = self.clone();
        Box::pin(async move {
            out.send_modify(|it| *it += 1);
            let _out = Out(out);
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
struct Place {
    steps: Steps,
    service: Service<Steps>,
    http: HttpService<Steps>,
    session: String,
}

/// Event stream, read one event at a time.
struct Stream(Body);

impl Place {
    async fn open(length: usize) -> Place {
        let steps = Steps { go: Arc::new(Semaphore::new(0)), out: watch::Sender::new(0), length };
        let service = Service::new(steps.clone());
        let http = HttpService::new(service.clone(), HttpOptions::default());
        let mut place = Place { steps, service, http, session: String::new() };
        let initialize =
            r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
        let response = place.send("POST", None, initialize).await;
        place.session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        place
    }

    async fn send(&self, method: &str, last: Option<&str>, body: &str) -> http::Response<Body> {
        let mut request = http::Request::builder().method(method).uri("/mcp");
        request = request.header("content-type", "application/json");
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
    async fn call(&self) -> Stream {
        self.go(1);
        let call = r#"{"id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":7}}}"#;
        let called = time::timeout(LONG, self.send("POST", None, call)).await;
        Stream(called.expect("a stream in time").into_body())
    }

    async fn listen(&self, last: Option<&str>) -> Stream {
        let response = self.send("GET", last, "").await;
        assert_eq!(response.status(), 200);
        Stream(response.into_body())
    }

    async fn is_out(&self, count: u32) {
        let mut out = self.steps.out.subscribe();
        let waiting = out.wait_for(|it| *it == count);
        drop(time::timeout(LONG, waiting).await.expect("in time").unwrap());
    }
}

impl Stream {
    /// Returns the id of the next event and a one-word summary; `None` at the end.
    async fn next(&mut self) -> Option<(String, String)> {
        let frame = time::timeout(LONG, self.0.frame()).await.expect("an event in time")?;
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
async fn a_call_goes_on_while_nobody_listens() {
    let place = Place::open(1).await;
    let mut stream = place.call().await;
    let (id, word) = stream.next().await.unwrap();
    assert_eq!(word, "1.0");
    drop(stream);
    place.go(2);
    let mut back = place.listen(Some(&id)).await;
    let (second, word) = back.next().await.unwrap();
    assert_eq!(word, "2.0");
    assert_eq!(back.next().await.unwrap().1, "3.0");
    // The stream breaks again, and the client has seen fewer events than were sent.
    drop(back);
    place.go(2);
    assert_eq!(place.listen(Some(&second)).await.rest().await, ["3.0", "4.0", "answer"]);
    // Resume again from the same event, as a client that lost the response would.
    assert_eq!(place.listen(Some(&second)).await.rest().await, ["3.0", "4.0", "answer"]);
    place.is_out(0).await;
}

/// Tests a client that knows about its broken connection while the server does not.
#[tokio::test]
async fn a_stream_is_taken_from_whoever_holds_it() {
    let place = Place::open(1).await;
    let mut stream = place.call().await;
    let (id, _) = stream.next().await.unwrap();
    place.go(1);
    assert_eq!(stream.next().await.unwrap().1, "2.0");
    let (old, back) = tokio::join!(stream.rest(), place.listen(Some(&id)));
    assert_eq!(old, [] as [&str; 0]);
    place.go(3);
    assert_eq!(back.rest().await, ["2.0", "3.0", "4.0", "answer"]);
}

#[tokio::test]
async fn streams_are_not_mixed() {
    let place = Place::open(1).await;
    let mut one = place.call().await;
    // The first call waits for its second permit, so it gets this one before the other call starts.
    place.go(1);
    let (mut two, mut standing) = (place.call().await, place.listen(None).await);
    place.service.announce(News::ToolsChanged);
    let ids = [one.next().await, two.next().await, standing.next().await].map(|it| it.unwrap().0);
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    drop((one, two, standing));
    place.service.announce(News::PromptsChanged);
    place.go(8);
    assert_eq!(place.listen(Some(&ids[0])).await.rest().await, ["2.0", "3.0", "4.0", "answer"]);
    assert_eq!(place.listen(Some(&ids[1])).await.rest().await, ["2.0", "3.0", "4.0", "answer"]);
    let mut standing = place.listen(Some(&ids[2])).await;
    assert_eq!(standing.next().await.unwrap().1, "notifications/prompts/list_changed");
    // The stream stays open and delivers new notifications.
    assert!(standing.is_silent());
    place.service.announce(News::ToolsChanged);
    assert_eq!(standing.next().await.unwrap().1, "notifications/tools/list_changed");
}

/// Only one of several GET streams gets a notification; another takes over when that one is gone.
#[tokio::test]
async fn nothing_is_said_twice() {
    let place = Place::open(1).await;
    let (mut old, mut new) = (place.listen(None).await, place.listen(None).await);
    place.service.announce(News::ToolsChanged);
    assert!(old.is_silent());
    assert_eq!(new.next().await.unwrap().1, "notifications/tools/list_changed");
    drop(new);
    place.service.announce(News::PromptsChanged);
    assert_eq!(old.next().await.unwrap().1, "notifications/prompts/list_changed");
}

#[tokio::test]
async fn what_is_not_known_is_gone_on_with_from_now() {
    let place = Place::open(1).await;
    for last in ["99-1", "0-0", "nonsense", "18446744073709551616-1", ""] {
        let mut stream = place.listen(Some(last)).await;
        assert!(stream.is_silent(), "{last}");
        place.service.announce(News::ToolsChanged);
        assert_eq!(stream.next().await.unwrap().1, "notifications/tools/list_changed", "{last}");
    }
}

/// Events that exceed the replay buffer are dropped, but never the response.
#[tokio::test]
async fn the_answer_is_kept_when_there_is_no_room() {
    let place = Place::open(60 << 10).await;
    let mut stream = place.call().await;
    let (id, _) = stream.next().await.unwrap();
    drop(stream);
    place.go(4);
    place.is_out(0).await;
    assert_eq!(place.listen(Some(&id)).await.rest().await, ["4.0", "answer"]);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_come_back_is_not_waited_for() {
    let place = Place::open(1).await;
    let mut stream = place.call().await;
    let (id, _) = stream.next().await.unwrap();
    place.is_out(1).await;
    drop(stream);
    time::sleep(Duration::from_secs(59)).await;
    assert_eq!(*place.steps.out.borrow(), 1);
    time::sleep(Duration::from_secs(2)).await;
    assert_eq!(*place.steps.out.borrow(), 0);
    assert!(place.listen(Some(&id)).await.is_silent());
}

#[tokio::test]
async fn a_call_that_drifts_can_be_cancelled() {
    let place = Place::open(1).await;
    for cancel in [true, false] {
        let mut stream = place.call().await;
        let (id, _) = stream.next().await.unwrap();
        drop(stream);
        if cancel {
            let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#;
            assert_eq!(place.send("POST", None, cancelled).await.status(), 202);
            assert_eq!(place.listen(Some(&id)).await.rest().await, ["answer"]);
        } else {
            assert_eq!(place.send("DELETE", None, "").await.status(), 204);
        }
        place.is_out(0).await;
    }
}

/// A cancelled request gets no response.
#[tokio::test]
async fn a_cancelled_request_is_not_answered() {
    let place = Place::open(1).await;
    let call = r#"{"id":2,"method":"tools/call","params":{"name":"t"}}"#;
    let (response, _) = tokio::join!(place.send("POST", None, call), async {
        place.is_out(1).await;
        let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#;
        assert_eq!(place.send("POST", None, cancelled).await.status(), 202);
    });
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(Stream(response.into_body()).rest().await, [] as [&str; 0]);
}

#[tokio::test]
async fn what_is_plain_json_has_no_name() {
    let place = Place::open(1).await;
    let response = place.send("POST", None, r#"{"id":3,"method":"ping"}"#).await;
    assert_eq!(response.headers()["content-type"], "application/json");
}
