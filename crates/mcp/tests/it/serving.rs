//! Tests our server with our client, over every transport and in both eras.

use crate::eras::options;
use futures_util::SinkExt;
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::net::TcpListener;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};
use wharf_mcp::{
    Host, News, Opener, Opening, Options, Raw, Request, RpcError, Session, http, link_over,
    serve::{
        self, About, Client, Handler, HandlerFuture, Incoming, LogLevel, Service,
        http::{HttpOptions, HttpService, SseService},
    },
    session::{Era, EraHint, HostFuture, List},
    sse, ws,
};

/// Server with one tool per feature under test.
pub(crate) struct DemoHandler;

impl Handler for DemoHandler {
    fn about(&self) -> About {
        let capabilities = json!({ "tools": { "listChanged": true }, "logging": {} });
        About::new("show", "1", capabilities.into())
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        Box::pin(async move {
            let params = request.params.unwrap_or_else(Raw::empty_object);
            match request.method.as_str() {
                "tools/list" => Ok(json!({ "tools": [{ "name": "echo", "inputSchema": {} }] }).into()),
                "tools/call" => call(&params, client).await,
                unknown => Err(RpcError::method_not_found(unknown)),
            }
        })
    }
}

async fn call(params: &Raw, client: Client) -> Result<Raw, RpcError> {
    let name: String = params.member("name").unwrap().decode().unwrap();
    match name.as_str() {
        "echo" => Ok(json!({ "content": [{ "type": "text", "text": "echo" }], "x-unknown": 1 }).into()),
        "progress" => {
            for step in 1..=20 {
                client.progress(f64::from(step), Some(20.0), None).await;
            }
            client.log(LogLevel::Info, None, Raw::empty_object()).await;
            Ok(json!({ "content": [] }).into())
        }
        "ask" if client.terms().era == Era::Legacy => {
            let answer = client.ask("sampling/createMessage", None).await?;
            Ok(json!({ "content": [], "answer": answer }).into())
        }
        "ask" => match params.member("inputResponses") {
            Some(answers) => Ok(json!({ "content": [], "answer": answers.member("q") }).into()),
            None => Ok(json!({
                "resultType": "input_required",
                "inputRequests": { "q": { "method": "sampling/createMessage" } },
            })
            .into()),
        },
        "clumsy" => panic!("the handler fails"),
        "slow" => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            Ok(Raw::empty_object())
        }
        unknown => Err(RpcError::new(RpcError::INVALID_PARAMS, format!("no tool `{unknown}`"))),
    }
}

/// Host that answers every request with the method's name.
struct EchoHost;

impl Host for EchoHost {
    fn capabilities(&self) -> Raw {
        json!({ "sampling": {} }).into()
    }

    fn answer(&self, method: &str, _params: Option<Raw>) -> HostFuture {
        let said = json!({ "said": method });
        Box::pin(async { Ok(said.into()) })
    }
}

/// Connects to a service over in-memory pipes.
pub(crate) struct Pipes<H>(pub(crate) Service<H>);

impl<H: Handler> Opener for Pipes<H> {
    fn open(&self) -> Opening<'_> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let service = self.0.clone();
        spawn(async move {
            let (read, write) = tokio::io::split(theirs);
            let _ = serve::over_streams(service, read, write).await;
        });
        let (read, write) = tokio::io::split(ours);
        Box::pin(async { Ok(link_over(read, write)) })
    }
}

#[expect(clippy::disallowed_methods, reason = "servers of a test end with its runtime")]
pub(crate) fn spawn(server: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(server));
}

/// Serves all HTTP transports on one port and returns the port.
pub(crate) async fn serve_http<H: Handler>(service: Service<H>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let streamable = HttpService::new(service.clone(), HttpOptions::default());
    let legacy = SseService::new(service, HttpOptions::default(), "/messages");
    spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let (streamable, legacy) = (streamable.clone(), legacy.clone());
            let answer = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let (streamable, legacy) = (streamable.clone(), legacy.clone());
                async move {
                    Ok::<_, std::convert::Infallible>(match request.uri().path() {
                        "/mcp" => streamable.respond(request).await,
                        _ => legacy.respond(request).await,
                    })
                }
            });
            let io = hyper_util::rt::TokioIo::new(stream);
            spawn(async move {
                let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, answer).await;
            });
        }
    });
    port
}

async fn serve_ws(service: Service<DemoHandler>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(socket) = tokio_tungstenite::accept_async(stream).await {
                spawn(serve::over_websocket(service.clone(), None, socket));
            }
        }
    });
    port
}

/// Checks every feature of the server over one transport in one era.
async fn check(service: &Service<DemoHandler>, opener: &dyn Opener, era: Era) {
    let options = Options { host: Arc::new(EchoHost), era: EraHint::Only(era), ..options() };
    let mut connected = Session::connect(opener, &options).await.unwrap();
    let session = connected.session.clone();
    assert_eq!(session.terms().era, era);
    assert_eq!(session.list(List::Tools).await.unwrap().items.len(), 1);

    let echo = session.request(Request::call_tool("echo", None)).await.unwrap();
    assert_eq!(echo.member("x-unknown").unwrap().as_str(), "1");

    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorder = seen.clone();
    let request = Request::call_tool("progress", None)
        .on_progress(move |at| recorder.lock().unwrap().push(at.progress));
    session.request(request).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), (1..=20).map(f64::from).collect::<Vec<_>>());

    let asked = session.request(Request::call_tool("ask", None)).await.unwrap();
    assert_eq!(asked.member("answer").unwrap().as_str(), r#"{"said":"sampling/createMessage"}"#);

    let refused = session.request(Request::call_tool("nothing", None)).await.unwrap_err();
    assert_eq!(refused.rpc_code(), Some(RpcError::INVALID_PARAMS));
    let failed = session.request(Request::call_tool("clumsy", None)).await.unwrap_err();
    assert_eq!(failed.rpc_code(), Some(RpcError::INTERNAL));
    let unknown = session.request(Request::new("no/such")).await.unwrap_err();
    assert_eq!(unknown.rpc_code(), Some(RpcError::METHOD_NOT_FOUND));

    let slow = session.request(Request::call_tool("slow", None));
    assert!(tokio::time::timeout(Duration::from_millis(50), slow).await.is_err());

    // Announce until received, because a subscription starts asynchronously.
    let received = async {
        loop {
            service.announce(News::ToolsChanged);
            let next = tokio::time::timeout(Duration::from_millis(20), connected.news.next()).await;
            if let Ok(Some(News::ToolsChanged)) = next {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), received).await.unwrap();
    drop((session, connected.session));
    connected.task.join().await;
}

#[tokio::test]
async fn every_transport_serves_both_eras() {
    let service = Service::new(DemoHandler);
    let port = serve_http(service.clone()).await;
    let client = http::HttpClient::new(Duration::from_secs(2)).unwrap();
    let url = |path: &str| format!("http://127.0.0.1:{port}/{path}").parse().unwrap();
    let streamable = http::HttpEndpoint::new(url("mcp"), client.clone());
    let legacy = sse::SseEndpoint::new(url("sse"), client);
    let socket =
        ws::WsEndpoint::new(format!("ws://127.0.0.1:{}/", serve_ws(service.clone()).await).parse().unwrap());
    let pipes = Pipes(service.clone());
    let openers: [(&str, &dyn Opener); 4] =
        [("pipes", &pipes), ("streamable", &streamable), ("sse", &legacy), ("ws", &socket)];
    for (name, opener) in openers {
        for era in [Era::Legacy, Era::Modern] {
            let shown = tokio::time::timeout(Duration::from_secs(20), check(&service, opener, era)).await;
            assert!(shown.is_ok(), "{name} {era:?} hangs");
        }
    }
}

#[tokio::test]
async fn a_half_closed_client_still_gets_its_answers() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    let serving = serve::over_streams(Service::new(DemoHandler), read, write);
    let talking = async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut read, mut write) = tokio::io::split(ours);
        write
            .write_all(b"{\"id\":1,\"method\":\"ping\"}\nnoise\n{\"id\":2,\"method\":\"tools/list\"}\n{")
            .await
            .unwrap();
        write.shutdown().await.unwrap();
        let mut received = String::new();
        read.read_to_string(&mut received).await.unwrap();
        received
    };
    let (served, received) = tokio::join!(serving, talking);
    served.unwrap();
    assert!(received.contains(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), "{received}");
    assert!(received.contains(r#""id":2,"error":{"code":-32602"#), "{received}");
}

#[tokio::test]
async fn a_websocket_whose_writes_fail_is_closed() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (gone, nowhere) = tokio::io::duplex(64);
    drop(gone);
    let theirs = tokio::io::join(theirs, nowhere);
    let theirs = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
    let serving = serve::over_websocket(Service::new(DemoHandler), None, theirs);
    let mut ours = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
    ours.send(Message::text(r#"{"id":1,"method":"ping"}"#)).await.unwrap();
    // `ours` stays open: the server must stop because its own writes fail.
    tokio::time::timeout(Duration::from_secs(10), serving).await.expect("it does not wait for more");
}
