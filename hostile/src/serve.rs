//! The hostile server: one task reads messages, and each response runs in a task of its own where needed.

mod http;
mod sse;
mod stdio;
mod ws;

use crate::{
    asked::Asked,
    deed::Deed,
    ledger::Ledger,
    modes::Stage,
    mouth::{Line, Mouth},
    orders::{Orders, Transport},
    temper::Temper,
};
pub(crate) use http::EVENTS;
use serde_json::json;
use std::{future::Future, io, net::SocketAddr, sync::Arc};
use tokio::{net::TcpListener, task::JoinSet};

/// State shared by all connections of a server.
pub(crate) struct Server {
    pub(crate) orders: Orders,
    pub(crate) temper: Temper,
    pub(crate) ledger: Ledger,
    streams: sse::Streams,
}

/// A listening server.
#[derive(Debug)]
pub struct Listening {
    /// Address it listens on.
    pub address: SocketAddr,
    tasks: JoinSet<()>,
}

impl Server {
    fn new(orders: &Orders) -> Arc<Server> {
        Arc::new(Server {
            orders: orders.clone(),
            temper: Temper::new(orders),
            ledger: Ledger::open(orders),
            streams: sse::Streams::default(),
        })
    }

    /// Decides how to react to a message: with the actions of a mode, or as a good server would.
    pub(crate) fn decide(&self, asked: &Asked) -> Vec<Deed> {
        let stage = stage(asked);
        let strike = stage.and_then(|stage| self.temper.strike(stage));
        if let Some(mode) = strike {
            return (mode.deeds)(asked, &self.temper);
        }
        match stage {
            Some(Stage::Call) => {
                vec![Deed::Note("recv"), Deed::Note("exec"), Deed::Note("resp"), Deed::say(asked.answer())]
            }
            Some(Stage::List) if self.temper.is_bare() => {
                vec![Deed::say(asked.result(json!({ "tools": [] })))]
            }
            _ if !asked.wants_answer() || asked.method() == "subscriptions/listen" => Vec::new(),
            _ => vec![Deed::say(asked.answer())],
        }
    }

    /// Returns the actions to perform before the client sends anything.
    pub(crate) fn greeting(&self, asked: &Asked) -> Vec<Deed> {
        let strike = self.temper.strike(Stage::Spawn);
        strike.map(|mode| (mode.deeds)(asked, &self.temper)).unwrap_or_default()
    }

    pub(crate) async fn perform(&self, mouth: &mut Mouth, deeds: Vec<Deed>, asked: &Asked) -> io::Result<()> {
        mouth.perform(deeds, asked, &self.ledger).await
    }
}

/// Maps a message to its stage.
fn stage(asked: &Asked) -> Option<Stage> {
    match asked.method() {
        "server/discover" => Some(Stage::Discover),
        "initialize" => Some(Stage::Init),
        "notifications/initialized" => Some(Stage::Notify),
        "notifications/cancelled" => Some(Stage::Cancel),
        "tools/list" => Some(Stage::List),
        "tools/call" => Some(Stage::Call),
        _ => None,
    }
}

/// Serves over stdin and stdout until they close.
pub async fn over_stdio(orders: &Orders) {
    stdio::run(Server::new(orders)).await;
}

/// Listens and serves connections until the returned value is dropped.
pub async fn listen(orders: &Orders) -> io::Result<Listening> {
    let listener = TcpListener::bind(orders.listen).await?;
    let address = listener.local_addr()?;
    let server = Server::new(orders);
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(listener, server));
    Ok(Listening { address, tasks })
}

impl Listening {
    /// Serves until the process ends.
    pub async fn wait(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn accept(listener: TcpListener, server: Arc<Server>) {
    let mut connections = JoinSet::new();
    let host = listener.local_addr().map(|it| it.to_string()).unwrap_or_default();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(server.clone(), Line::new(stream), host.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(server: Arc<Server>, line: Arc<Line>, host: String) {
    // An error only means that the client or this server closed the connection.
    let _ = match server.orders.transport {
        Transport::Stdio => Ok(()),
        Transport::Http => http::run(server, line, host).await,
        Transport::Sse => sse::run(server, line, host).await,
        Transport::Ws => ws::run(server, line, host).await,
    };
}

/// Tasks of one connection; dropping the value aborts them.
pub(crate) struct Tasks(JoinSet<io::Result<()>>);

impl Tasks {
    pub(crate) fn new() -> Tasks {
        Tasks(JoinSet::new())
    }

    pub(crate) fn start(&mut self, work: impl Future<Output = io::Result<()>> + Send + 'static) {
        while self.0.try_join_next().is_some() {}
        self.0.spawn(work);
    }
}
