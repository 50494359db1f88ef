//! The hostile server: one task reads messages, and each response runs in a task of its own where needed.

mod http;
mod sse;
mod stdio;
mod ws;

use crate::{
    action::Action,
    action_log::ActionLog,
    modes::Stage,
    options::{ServerOptions, Transport},
    performer::{Performer, SharedConnection},
    received::ReceivedMessage,
    schedule::FaultSchedule,
};
pub(crate) use http::EVENTS;
use serde_json::json;
use std::{future::Future, io, net::SocketAddr, sync::Arc};
use tokio::{net::TcpListener, task::JoinSet};

/// State shared by all connections of a server.
pub(crate) struct Server {
    pub(crate) options: ServerOptions,
    pub(crate) schedule: FaultSchedule,
    pub(crate) action_log: ActionLog,
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
    fn new(options: &ServerOptions) -> Arc<Server> {
        Arc::new(Server {
            options: options.clone(),
            schedule: FaultSchedule::new(options),
            action_log: ActionLog::open(options),
            streams: sse::Streams::default(),
        })
    }

    /// Decides how to react to a message: with the actions of a mode, or as a good server would.
    pub(crate) fn decide(&self, received: &ReceivedMessage) -> Vec<Action> {
        let stage = stage(received);
        let faulty_mode = stage.and_then(|stage| self.schedule.faulty_mode(stage));
        if let Some(mode) = faulty_mode {
            return (mode.actions)(received, &self.schedule);
        }
        match stage {
            Some(Stage::Call) => {
                vec![
                    Action::Note("recv"),
                    Action::Note("exec"),
                    Action::Note("resp"),
                    Action::send(received.answer()),
                ]
            }
            Some(Stage::List) if self.schedule.hides_tools() => {
                vec![Action::send(received.result(json!({ "tools": [] })))]
            }
            _ if !received.is_request() || received.method() == "subscriptions/listen" => Vec::new(),
            _ => vec![Action::send(received.answer())],
        }
    }

    /// Returns the actions to perform before the client sends anything.
    pub(crate) fn startup_actions(&self, received: &ReceivedMessage) -> Vec<Action> {
        let faulty_mode = self.schedule.faulty_mode(Stage::Spawn);
        faulty_mode.map(|mode| (mode.actions)(received, &self.schedule)).unwrap_or_default()
    }

    pub(crate) async fn perform(
        &self,
        performer: &mut Performer,
        actions: Vec<Action>,
        received: &ReceivedMessage,
    ) -> io::Result<()> {
        performer.perform(actions, received, &self.action_log).await
    }
}

/// Maps a message to its stage.
fn stage(received: &ReceivedMessage) -> Option<Stage> {
    match received.method() {
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
pub async fn over_stdio(options: &ServerOptions) {
    stdio::run(Server::new(options)).await;
}

/// Listens and serves connections until the returned value is dropped.
pub async fn listen(options: &ServerOptions) -> io::Result<Listening> {
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    let server = Server::new(options);
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
                    connections.spawn(serve(server.clone(), SharedConnection::new(stream), host.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(server: Arc<Server>, line: Arc<SharedConnection>, host: String) {
    // An error only means that the client or this server closed the connection.
    let _ = match server.options.transport {
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
