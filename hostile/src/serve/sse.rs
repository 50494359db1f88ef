//! The HTTP+SSE transport of 2024-11-05: one event stream to the client, and an endpoint that it posts to.

use super::{Server, Tasks, http};
use crate::{
    asked::Asked,
    deed::Deed,
    mouth::{Framing, Line, Mouth, Out},
};
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};

/// Open event streams, by the number in the path that their clients post to.
#[derive(Default)]
pub(crate) struct Streams(Mutex<(u64, HashMap<u64, Arc<Line>>)>);

impl Streams {
    fn open(&self, line: &Arc<Line>) -> u64 {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.0 += 1;
        let number = streams.0;
        streams.1.insert(number, line.clone());
        number
    }

    fn close(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&number);
    }

    fn find(&self, number: u64) -> Option<Arc<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.get(&number).cloned()
    }
}

pub(super) async fn run(server: Arc<Server>, line: Arc<Line>, host: String) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut tasks = Tasks::new();
    while let Some(request) = http::read(&line, &mut buffer).await? {
        if request.method == "GET" {
            return stream(&server, &line, &host).await;
        }
        let number = request.path.rsplit('/').next().and_then(|it| it.parse().ok()).unwrap_or(0);
        let stream = server.streams.find(number);
        match (stream, Asked::read(&server.orders, &host, &request.body)) {
            (Some(stream), Some(asked)) => post(&server, &line, &stream, asked, &mut tasks).await?,
            _ => line.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await?,
        }
    }
    // Keeps the responses on the event stream running after the POST connection has ended.
    std::future::pending().await
}

/// Opens an event stream and sends the endpoint, unless a mode replaces that.
async fn stream(server: &Server, line: &Arc<Line>, host: &str) -> io::Result<()> {
    let number = server.streams.open(line);
    let nobody = Asked::nothing(&server.orders, host);
    let greeting = server.greeting(&nobody);
    let spoken = async {
        if greeting.is_empty() {
            let place = format!("{}event: endpoint\ndata: /post/{number}\n\n", http::EVENTS);
            line.write(place.as_bytes()).await?;
        } else {
            let framing = Framing::Events(None);
            let mut mouth = Mouth { out: Out::Line(line.clone()), framing, post: None };
            server.perform(&mut mouth, greeting, &nobody).await?;
        }
        let mut nothing = Vec::new();
        while line.fill(&mut nothing).await? > 0 {}
        Ok(())
    };
    let spoken = spoken.await;
    server.streams.close(number);
    spoken
}

async fn post(
    server: &Arc<Server>,
    line: &Arc<Line>,
    stream: &Arc<Line>,
    asked: Asked,
    tasks: &mut Tasks,
) -> io::Result<()> {
    let deeds = server.decide(&asked);
    if !deeds.iter().any(|deed| matches!(deed, Deed::Reply(_))) {
        line.write(http::ACCEPTED).await?;
    }
    let (out, framing) = (Out::Line(stream.clone()), Framing::Events(None));
    let mut mouth = Mouth { out, framing, post: Some(line.clone()) };
    let server = server.clone();
    tasks.start(async move { server.perform(&mut mouth, deeds, &asked).await });
    Ok(())
}
