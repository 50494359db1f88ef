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
        About, Client, Handler, HandlerFuture, Incoming, Service,
        http::{HttpOptions, HttpService, Owner, SessionStore, StoreFuture, StoreUnavailable, StoredSession},
    },
};

/// Handler with resources whose `tools/list` result reports the client's log level.
struct ReportingHandler;

impl Handler for ReportingHandler {
    fn about(&self) -> About {
        let capabilities = json!({ "tools": {}, "logging": {}, "resources": { "subscribe": true } });
        About::new("quiet", "1", capabilities.into())
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        Box::pin(async move {
            match request.method.as_str() {
                "tools/list" => {
                    let level =
                        client.logs().filter(|(_, explicit)| *explicit).map(|(level, _)| level.name());
                    Ok(json!({ "tools": [], "level": level, "client": client.terms().info }).into())
                }
                unknown => Err(RpcError::method_not_found(unknown)),
            }
        })
    }
}

/// In-memory session store that can be made unreachable and counts accesses.
#[derive(Debug, Default)]
struct SharedStore {
    sessions: Mutex<BTreeMap<String, StoredSession>>,
    is_unavailable: AtomicBool,
    accesses: AtomicUsize,
}

impl SharedStore {
    fn with<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut BTreeMap<String, StoredSession>) -> T,
    ) -> StoreFuture<'_, T> {
        self.accesses.fetch_add(1, Ordering::Relaxed);
        let done = match self.is_unavailable.load(Ordering::Relaxed) {
            true => Err(StoreUnavailable),
            false => Ok(what(&mut self.sessions.lock().unwrap())),
        };
        Box::pin(std::future::ready(done))
    }
}

impl SessionStore for SharedStore {
    fn key(&self, name: &str) -> String {
        format!("key of {name}")
    }

    fn create_session<'a>(&'a self, key: &'a str, session: StoredSession) -> StoreFuture<'a, ()> {
        self.with(|it| _ = it.insert(key.to_owned(), session))
    }

    fn update_session<'a>(&'a self, key: &'a str, session: StoredSession) -> StoreFuture<'a, ()> {
        self.with(|it| _ = it.insert(key.to_owned(), session))
    }

    fn find<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<StoredSession>> {
        self.with(|it| it.get(key).cloned())
    }

    fn remove_session<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.with(|it| _ = it.remove(key))
    }
}

/// One of two services that share a session store.
struct Replica {
    service: Service<ReportingHandler>,
    http: HttpService,
}

impl Replica {
    fn two(store: &Arc<SharedStore>) -> [Replica; 2] {
        [(), ()].map(|()| {
            let service = Service::new(ReportingHandler);
            let session_store: Arc<dyn SessionStore> = store.clone();
            let options = HttpOptions { session_store: Some(session_store), ..HttpOptions::default() };
            Replica { http: HttpService::new(service.clone(), options), service }
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
async fn a_session_continues_on_another_replica() {
    let store = Arc::<SharedStore>::default();
    let [here, there] = Replica::two(&store);
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
    here.http.invalidate(Some(&store.key(&session)));
    assert_eq!(here.send("me", "POST", &session, LIST).await.0, 200);
    assert_eq!((here.watched(), there.watched()), ("c:d".to_owned(), "c:d".to_owned()));

    // Without an invalidation of this session, the store is not accessed.
    let accesses = store.accesses.load(Ordering::Relaxed);
    for replica in [&here, &there] {
        replica.http.invalidate(Some("another"));
        assert_eq!(replica.send("me", "POST", &session, LIST).await.0, 200);
    }
    assert_eq!(store.accesses.load(Ordering::Relaxed), accesses);

    assert_eq!(there.send("me", "DELETE", &session, "").await.0, 204);
    here.http.invalidate(Some(&store.key(&session)));
    assert_eq!(here.send("me", "POST", &session, LIST).await.0, 404);
    assert_eq!(there.send("me", "POST", &session, LIST).await.0, 404);
}

#[tokio::test]
async fn sessions_continue_locally_while_the_store_is_unavailable() {
    let store = Arc::<SharedStore>::default();
    let [here, there] = Replica::two(&store);
    let kept = here.begin().await;
    store.is_unavailable.store(true, Ordering::Relaxed);
    let late = here.begin().await;
    here.http.invalidate(None);
    for session in [&kept, &late] {
        assert_eq!(here.send("me", "POST", session, LIST).await.0, 200);
        assert_eq!(there.send("me", "POST", session, LIST).await.0, 503, "nobody knows");
    }
    store.is_unavailable.store(false, Ordering::Relaxed);
    here.http.invalidate(None);
    for session in [&kept, &late] {
        assert_eq!(here.send("me", "POST", session, LIST).await.0, 200, "it is written down now");
        assert_eq!(there.send("me", "POST", session, LIST).await.0, 200);
    }
}
