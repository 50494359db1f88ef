//! Tests handshake-era sessions that continue on another service with the same session store.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use wharf_mcp::{
    RpcError,
    serve::{
        About, Client, Handler, Incoming, Service, Serving,
        http::{HttpOptions, HttpService, Keeping, KeptSession, Ledger, OutOfReach, Owner},
    },
};

/// Handler with resources whose `tools/list` result reports the client's log level.
struct Quiet;

impl Handler for Quiet {
    fn about(&self) -> About {
        let capabilities = json!({ "tools": {}, "logging": {}, "resources": { "subscribe": true } });
        About::new("quiet", "1", capabilities.into())
    }

    fn handle(&self, request: Incoming, client: Client) -> Serving {
        Box::pin(async move {
            match request.method.as_str() {
                "tools/list" => {
                    let level = client.logs().filter(|(_, said)| *said).map(|(level, _)| level.name());
                    Ok(json!({ "tools": [], "level": level, "client": client.terms().info }).into())
                }
                unknown => Err(RpcError::method_not_found(unknown)),
            }
        })
    }
}

/// In-memory session store that can be made unreachable and counts accesses.
#[derive(Debug, Default)]
struct Shelf {
    sessions: Mutex<BTreeMap<String, KeptSession>>,
    away: AtomicBool,
    asked: AtomicUsize,
}

impl Shelf {
    fn with<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut BTreeMap<String, KeptSession>) -> T,
    ) -> Keeping<'_, T> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let done = match self.away.load(Ordering::Relaxed) {
            true => Err(OutOfReach),
            false => Ok(what(&mut self.sessions.lock().unwrap())),
        };
        Box::pin(std::future::ready(done))
    }
}

impl Ledger for Shelf {
    fn key(&self, name: &str) -> String {
        format!("key of {name}")
    }

    fn begun<'a>(&'a self, key: &'a str, session: KeptSession) -> Keeping<'a, ()> {
        self.with(|it| _ = it.insert(key.to_owned(), session))
    }

    fn changed<'a>(&'a self, key: &'a str, session: KeptSession) -> Keeping<'a, ()> {
        self.with(|it| _ = it.insert(key.to_owned(), session))
    }

    fn find<'a>(&'a self, key: &'a str) -> Keeping<'a, Option<KeptSession>> {
        self.with(|it| it.get(key).cloned())
    }

    fn ended<'a>(&'a self, key: &'a str) -> Keeping<'a, ()> {
        self.with(|it| _ = it.remove(key))
    }
}

/// One of two services that share a session store.
struct House {
    service: Service<Quiet>,
    http: HttpService<Quiet>,
}

impl House {
    fn two(shelf: &Arc<Shelf>) -> [House; 2] {
        [(), ()].map(|()| {
            let service = Service::new(Quiet);
            let ledger: Arc<dyn Ledger> = shelf.clone();
            let options = HttpOptions { ledger: Some(ledger), ..HttpOptions::default() };
            House { http: HttpService::new(service.clone(), options), service }
        })
    }

    /// Sends a request as `owner`; returns the status, and the session id or else the body.
    async fn send(&self, owner: &str, method: &str, session: &str, body: &str) -> (u16, String) {
        let request = http::Request::builder().method(method).uri("/mcp").extension(Owner(owner.into()));
        let request = request.header("content-type", "application/json");
        let request = if session.is_empty() { request } else { request.header("mcp-session-id", session) };
        let response =
            self.http.respond(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await;
        let named = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, named.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned()))
    }

    async fn begin(&self) -> String {
        let (status, session) = self.send("me", "POST", "", INITIALIZE).await;
        assert_eq!((status, session.len()), (200, 32));
        session
    }

    fn watched(&self) -> String {
        self.service.watched().borrow().iter().cloned().collect::<Vec<_>>().join(" ")
    }
}

const INITIALIZE: &str = r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const LIST: &str = r#"{"id":2,"method":"tools/list"}"#;
const LEVEL: &str = r#"{"id":3,"method":"logging/setLevel","params":{"level":"warning"}}"#;

fn subscription(method: &str, uri: &str) -> String {
    json!({ "id": 4, "method": format!("resources/{method}"), "params": { "uri": uri } }).to_string()
}

#[tokio::test]
async fn a_session_goes_on_as_it_was() {
    let shelf = Arc::<Shelf>::default();
    let [here, there] = House::two(&shelf);
    let session = here.begin().await;
    assert_eq!(here.send("me", "POST", &session, LEVEL).await.0, 200);
    assert_eq!(here.send("me", "POST", &session, &subscription("subscribe", "a:b")).await.0, 200);

    let (status, body) = there.send("me", "POST", &session, LIST).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(r#""level":"warning""#) && body.contains(r#""name":"c""#), "{body}");
    assert_eq!(there.watched(), "a:b");
    for (owner, id) in [("you", session.as_str()), ("me", "0123456789abcdef0123456789abcdef"), ("me", "?")] {
        assert_eq!(there.send(owner, "POST", id, LIST).await.0, 404, "{owner} {id}");
        assert_eq!(there.send(owner, "DELETE", id, "").await.0, 404, "{owner} {id}");
    }

    // A change made by the other service is visible here after the cached session is invalidated.
    assert_eq!(there.send("me", "POST", &session, &subscription("unsubscribe", "a:b")).await.0, 200);
    assert_eq!(there.send("me", "POST", &session, &subscription("subscribe", "c:d")).await.0, 200);
    here.http.doubt(Some(&shelf.key(&session)));
    assert_eq!(here.send("me", "POST", &session, LIST).await.0, 200);
    assert_eq!((here.watched(), there.watched()), ("c:d".to_owned(), "c:d".to_owned()));

    // Without an invalidation of this session, the store is not accessed.
    let asked = shelf.asked.load(Ordering::Relaxed);
    for house in [&here, &there] {
        house.http.doubt(Some("another"));
        assert_eq!(house.send("me", "POST", &session, LIST).await.0, 200);
    }
    assert_eq!(shelf.asked.load(Ordering::Relaxed), asked);

    assert_eq!(there.send("me", "DELETE", &session, "").await.0, 204);
    here.http.doubt(Some(&shelf.key(&session)));
    assert_eq!(here.send("me", "POST", &session, LIST).await.0, 404);
    assert_eq!(there.send("me", "POST", &session, LIST).await.0, 404);
}

#[tokio::test]
async fn without_the_ledger_sessions_go_on_where_they_are() {
    let shelf = Arc::<Shelf>::default();
    let [here, there] = House::two(&shelf);
    let kept = here.begin().await;
    shelf.away.store(true, Ordering::Relaxed);
    let late = here.begin().await;
    here.http.doubt(None);
    for session in [&kept, &late] {
        assert_eq!(here.send("me", "POST", session, LIST).await.0, 200);
        assert_eq!(there.send("me", "POST", session, LIST).await.0, 503, "nobody knows");
    }
    shelf.away.store(false, Ordering::Relaxed);
    here.http.doubt(None);
    for session in [&kept, &late] {
        assert_eq!(here.send("me", "POST", session, LIST).await.0, 200, "it is written down now");
        assert_eq!(there.send("me", "POST", session, LIST).await.0, 200);
    }
}
