//! Tests the limits per client of our server over stdio and WebSocket.

use crate::serving::spawn;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    sync::Semaphore,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};
use wharf_mcp::{
    RpcError,
    serve::{self, About, Client, Handler, HandlerFuture, Incoming, Service},
};

const SUBSCRIPTIONS: u64 = 64;
const REQUESTS: usize = 256;

/// Handler that counts started requests and answers each when the semaphore has a permit.
#[derive(Clone)]
struct Gated {
    begun: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Gated {
    fn new(open: usize) -> Gated {
        Gated { begun: Arc::default(), gate: Arc::new(Semaphore::new(open)) }
    }
}

impl Handler for Gated {
    fn about(&self) -> About {
        About::new("gated", "1", json!({ "tools": { "listChanged": true } }).into())
    }

    fn handle(&self, _request: Incoming, _client: Client) -> HandlerFuture {
        let Gated { begun, gate } = self.clone();
        Box::pin(async move {
            begun.fetch_add(1, Ordering::AcqRel);
            let open = gate.acquire_owned().await;
            open.map_err(|_| RpcError::new(RpcError::INTERNAL, "closed"))?.forget();
            Ok(json!({}).into())
        })
    }
}

/// Client that enforces no limits of its own.
enum RawClient {
    Stdio(BufReader<ReadHalf<DuplexStream>>, WriteHalf<DuplexStream>),
    WebSocket(Box<WebSocketStream<DuplexStream>>),
}

impl RawClient {
    fn over_stdio(service: Service<Gated>) -> RawClient {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        spawn(async move {
            let (read, write) = tokio::io::split(theirs);
            let _ = serve::over_streams(service, read, write).await;
        });
        let (read, write) = tokio::io::split(ours);
        RawClient::Stdio(BufReader::new(read), write)
    }

    async fn over_websocket(service: Service<Gated>) -> RawClient {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        spawn(async move {
            let socket = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
            serve::over_websocket(service, None, socket).await;
        });
        RawClient::WebSocket(Box::new(WebSocketStream::from_raw_socket(ours, Role::Client, None).await))
    }

    async fn send(&mut self, message: &Value) {
        match self {
            RawClient::Stdio(_, write) => write.write_all(format!("{message}\n").as_bytes()).await.unwrap(),
            RawClient::WebSocket(socket) => socket.send(Message::text(message.to_string())).await.unwrap(),
        }
    }

    async fn next(&mut self) -> Value {
        let text = match self {
            RawClient::Stdio(read, _) => {
                let mut line = String::new();
                read.read_line(&mut line).await.unwrap();
                line
            }
            RawClient::WebSocket(socket) => {
                socket.next().await.unwrap().unwrap().into_text().unwrap().to_string()
            }
        };
        serde_json::from_str(&text).unwrap()
    }
}

fn listen(id: u64) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": "subscriptions/listen",
        "params": {
            "notifications": { "toolsListChanged": true },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

#[tokio::test]
async fn subscriptions_of_one_connection_are_bounded() {
    let service = || Service::new(Gated::new(0));
    for mut client in [RawClient::over_stdio(service()), RawClient::over_websocket(service()).await] {
        for id in 1..=SUBSCRIPTIONS {
            client.send(&listen(id)).await;
            assert_eq!(client.next().await["method"], "notifications/subscriptions/acknowledged", "{id}");
        }
        client.send(&listen(SUBSCRIPTIONS + 1)).await;
        let refused = client.next().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(SUBSCRIPTIONS + 1), &json!(-32600)));
        let why = refused["error"]["message"].as_str().unwrap();
        assert!(why.contains("too many subscriptions") && why.contains("64"), "{why}");
        // A cancelled subscription frees capacity for another.
        let params = json!({ "requestId": 1 });
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
            .await;
        let mut id = SUBSCRIPTIONS + 2;
        loop {
            client.send(&listen(id)).await;
            if client.next().await["method"] == "notifications/subscriptions/acknowledged" {
                break;
            }
            id += 1;
            assert!(id < 1_000, "there is no room again");
        }
    }
}

fn batch(count: usize) -> Value {
    (1..=count).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })).collect()
}

fn initialize() -> Value {
    let params = json!({ "protocolVersion": "2025-03-26", "capabilities": {} });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

#[tokio::test]
async fn a_batch_respects_the_request_limit() {
    for over_websocket in [false, true] {
        let handler = Gated::new(0);
        let service = Service::new(handler.clone());
        let mut client = match over_websocket {
            true => RawClient::over_websocket(service).await,
            false => RawClient::over_stdio(service),
        };
        client.send(&initialize()).await;
        assert!(client.next().await["result"].is_object());
        // An oversized batch is rejected as a whole, before any request starts.
        for count in [REQUESTS + 1, 1_000] {
            client.send(&batch(count)).await;
            let refused = client.next().await;
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)));
            let why = refused["error"]["message"].as_str().unwrap();
            assert!(why.contains("at most 256 messages"), "{why}");
            assert_eq!(handler.begun.load(Ordering::Acquire), 0);
        }
        // Two smaller batches together stay within the limit; the remaining requests wait.
        client.send(&batch(200)).await;
        client.send(&batch(200)).await;
        while handler.begun.load(Ordering::Acquire) < REQUESTS {
            tokio::task::yield_now().await;
        }
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(handler.begun.load(Ordering::Acquire), REQUESTS);
        handler.gate.add_permits(1_000);
        for _ in 0..400 {
            assert!(client.next().await["result"].is_object());
        }
    }
}
