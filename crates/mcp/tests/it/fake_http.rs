//! Scripted HTTP server on a plain socket. It uses no HTTP library.
//!
//! A script has one rule per line, `KEY: ANSWER`; the key is the HTTP method and, for a POST, the JSON-RPC method. A
//! repeated key returns its answers in order, the last one forever. Answers: `json BODY`, `sse TEXT` (with `\n`, then
//! the stream ends), `sse+ TEXT` (the stream stays open), `push TEXT` (202, and the text goes to the open stream),
//! `last BODY` (JSON, then the connection closes without notice), `CODE BODY`, each optionally after `[Header: value]`.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc},
    time::{Duration, timeout},
};
use url::Url;

#[derive(Clone, Default)]
pub(crate) struct FakeHttp {
    rules: Arc<Mutex<HashMap<String, Vec<String>>>>,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    open_stream: Arc<Mutex<Option<mpsc::UnboundedSender<String>>>>,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    close: Arc<Notify>,
    port: u16,
}

/// Received request: its script key and its head.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) key: String,
    pub(crate) head: String,
}

impl FakeHttp {
    #[expect(clippy::disallowed_methods, reason = "the fake ends with the test's runtime")]
    pub(crate) async fn start(script: &str) -> FakeHttp {
        let mut rules = HashMap::<String, Vec<String>>::new();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (key, answer) = line.split_once(": ").unwrap();
            rules.entry(key.to_owned()).or_default().insert(0, answer.to_owned());
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let fake = FakeHttp { rules: Arc::new(Mutex::new(rules)), port, ..FakeHttp::default() };
        let server = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                server.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(server.clone().serve(stream));
            }
        });
        fake
    }

    pub(crate) fn url(&self) -> Url {
        format!("http://127.0.0.1:{}/mcp", self.port).parse().unwrap()
    }

    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }

    /// Returns how many connections clients have opened.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Closes the idle connections, and waits until the clients of this thread can notice it.
    pub(crate) async fn close_idle_connections(&self) {
        let before = self.closed.load(Ordering::Relaxed);
        self.close.notify_waiters();
        while self.closed.load(Ordering::Relaxed) == before {
            tokio::task::yield_now().await;
        }
        // The runtime looks for events of sockets each time.
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until a stream is open.
    pub(crate) async fn wait_for_stream(&self) {
        while self.open_stream.lock().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the client has closed the open stream.
    pub(crate) async fn wait_for_closed_stream(&self) {
        let stream = self.open_stream.lock().unwrap().clone().expect("a stream is open");
        timeout(Duration::from_secs(10), stream.closed()).await.expect("the client closes the stream");
    }

    pub(crate) fn keys(&self) -> String {
        self.received().iter().map(|received| received.key.clone()).collect::<Vec<_>>().join(", ")
    }

    async fn serve(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                let read = tokio::select! {
                    read = stream.read_line(&mut head) => read.unwrap_or(0),
                    () = self.close.notified() => 0,
                };
                if read == 0 {
                    drop(stream);
                    self.closed.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).await.unwrap();
            if !self.answer(head, &body, &mut stream).await {
                return;
            }
        }
    }

    /// Answers one request; returns whether the connection can be reused.
    async fn answer(&self, head: String, body: &[u8], stream: &mut BufReader<TcpStream>) -> bool {
        let message: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let verb = head.split(' ').next().unwrap();
        let key = format!("{verb} {}", message["method"].as_str().unwrap_or_default()).trim().to_owned();
        let answer = self.next_answer(&key);
        self.received.lock().unwrap().push(ReceivedRequest { key, head });
        let (header, answer) = match answer.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((header, answer)) => (format!("{header}\r\n"), answer.to_owned()),
            None => (String::new(), answer),
        };
        let (verb, text) = answer.split_once(' ').unwrap_or((&answer, ""));
        let text = text.replace("$id", &message["id"].to_string()).replace("$port", &self.port.to_string());
        let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
        let response = match verb {
            "json" | "last" => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{header}Content-Length: {}\r\n\r\n{text}",
                text.len()
            ),
            "sse" => {
                format!("{events}{header}Connection: close\r\n\r\n{}", text.replace("\\n", "\n"))
            }
            "sse+" => format!("{events}{header}\r\n{}", text.replace("\\n", "\n")),
            "push" => {
                let stream = self.open_stream.lock().unwrap().clone();
                stream.unwrap().send(format!("data: {text}\n\n")).unwrap();
                "HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n".into()
            }
            code => {
                format!("HTTP/1.1 {code} X\r\n{header}Content-Length: {}\r\n\r\n{text}", text.len())
            }
        };
        let _ = stream.write_all(response.as_bytes()).await;
        if verb == "sse+" {
            self.keep_open(stream).await;
        }
        verb != "last" && !verb.starts_with("sse")
    }

    async fn keep_open(&self, stream: &mut BufReader<TcpStream>) {
        let (push, mut pushed) = mpsc::unbounded_channel();
        *self.open_stream.lock().unwrap() = Some(push);
        loop {
            tokio::select! {
                _ = stream.read_u8() => return,
                Some(text) = pushed.recv() => stream.write_all(text.as_bytes()).await.unwrap(),
            }
        }
    }

    fn next_answer(&self, key: &str) -> String {
        let mut rules = self.rules.lock().unwrap();
        match rules.get_mut(key) {
            Some(answers) if answers.len() > 1 => answers.pop().unwrap(),
            Some(answers) => answers[0].clone(),
            None => "405 ".into(),
        }
    }
}
