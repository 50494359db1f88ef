//! The HTTP+SSE transport of 2024-11-05: one event stream to the client, and an endpoint that it posts to.

use super::{Server, Tasks, http};
use crate::{
    action::Action,
    performer::{Framing, Output, Performer, SharedConnection},
    received::ReceivedMessage,
};
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};

/// Open event streams, by the number in the path that their clients post to.
#[derive(Default)]
pub(crate) struct Streams(Mutex<(u64, HashMap<u64, Arc<SharedConnection>>)>);

impl Streams {
    fn open(&self, line: &Arc<SharedConnection>) -> u64 {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.0 += 1;
        let number = streams.0;
        streams.1.insert(number, line.clone());
        number
    }

    fn close(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&number);
    }

    fn find(&self, number: u64) -> Option<Arc<SharedConnection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.get(&number).cloned()
    }
}

pub(super) async fn run(server: Arc<Server>, line: Arc<SharedConnection>, host: String) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut tasks = Tasks::new();
    while let Some(request) = http::read(&line, &mut buffer).await? {
        if request.method == "GET" {
            return stream(&server, &line, &host).await;
        }
        let number = request.path.rsplit('/').next().and_then(|it| it.parse().ok()).unwrap_or(0);
        let stream = server.streams.find(number);
        match (stream, ReceivedMessage::read(&server.options, &host, &request.body)) {
            (Some(stream), Some(received)) => post(&server, &line, &stream, received, &mut tasks).await?,
            _ => line.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await?,
        }
    }
    // Keeps the responses on the event stream running after the POST connection has ended.
    std::future::pending().await
}

/// Opens an event stream and sends the endpoint, unless a mode replaces that.
async fn stream(server: &Server, line: &Arc<SharedConnection>, host: &str) -> io::Result<()> {
    let number = server.streams.open(line);
    let no_message = ReceivedMessage::nothing(&server.options, host);
    let startup_actions = server.startup_actions(&no_message);
    let outcome = async {
        if startup_actions.is_empty() {
            let endpoint_event = format!("{}event: endpoint\ndata: /post/{number}\n\n", http::EVENTS);
            line.write(endpoint_event.as_bytes()).await?;
        } else {
            let framing = Framing::Events(None);
            let mut performer =
                Performer { out: Output::SharedConnection(line.clone()), framing, post: None };
            server.perform(&mut performer, startup_actions, &no_message).await?;
        }
        let mut nothing = Vec::new();
        while line.fill(&mut nothing).await? > 0 {}
        Ok(())
    };
    let outcome = outcome.await;
    server.streams.close(number);
    outcome
}

async fn post(
    server: &Arc<Server>,
    line: &Arc<SharedConnection>,
    stream: &Arc<SharedConnection>,
    received: ReceivedMessage,
    tasks: &mut Tasks,
) -> io::Result<()> {
    let actions = server.decide(&received);
    if !actions.iter().any(|action| matches!(action, Action::Reply(_))) {
        line.write(http::ACCEPTED).await?;
    }
    let (out, framing) = (Output::SharedConnection(stream.clone()), Framing::Events(None));
    let mut performer = Performer { out, framing, post: Some(line.clone()) };
    let server = server.clone();
    tasks.start(async move { server.perform(&mut performer, actions, &received).await });
    Ok(())
}
