//! Callers on every interface. Each calls as fast as possible until the gateway stops responding.

use super::gateway::{Gateway, TOKEN, ask};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::{sync::watch, task::JoinSet, time::timeout};
use wharf_mcp::{
    Opener, Raw, Request, Session,
    http::{HttpClient, HttpEndpoint},
    session::{ClientInfo, Connected, Era, EraHint, Options},
    ws,
};

/// Titles of the created todos, and the interface used.
pub(super) type Acknowledged = BTreeMap<String, Interface>;

const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of callers per interface.
const CALLERS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Interface {
    Rest,
    Legacy,
    Modern,
    WebSocket,
}

pub(super) struct Callers(JoinSet<Ended>);

/// Calls acknowledged to one caller, and the reason why it stopped.
pub(super) type Ended = (Acknowledged, String);

/// Interfaces with at least one response.
pub(super) type Answered = watch::Receiver<BTreeSet<Interface>>;

impl Interface {
    pub(super) const ALL: [Interface; 4] =
        [Interface::Rest, Interface::Legacy, Interface::Modern, Interface::WebSocket];

    /// Returns the name in the journal.
    pub(super) fn name(self) -> &'static str {
        match self {
            Interface::Rest => "rest",
            Interface::Legacy | Interface::Modern | Interface::WebSocket => "mcp",
        }
    }
}

/// Starts all callers.
pub(super) fn start_callers(gateway: &Gateway, kill: usize) -> (Callers, Answered) {
    let (tell, answered) = watch::channel(BTreeSet::new());
    let mut callers = JoinSet::new();
    for interface in Interface::ALL {
        for caller in 0..CALLERS {
            let (address, tell) = (gateway.address.clone(), tell.clone());
            callers.spawn(async move {
                call(interface, &address, &format!("{kill}-{interface:?}-{caller}"), tell).await
            });
        }
    }
    (Callers(callers), answered)
}

impl Callers {
    /// Waits for all callers to stop. Returns the acknowledged calls and the reasons for stopping.
    pub(super) async fn finish(self) -> (Acknowledged, Vec<String>) {
        let all = timeout(STEP_TIMEOUT, self.0.join_all()).await.expect("nobody is kept waiting");
        let (acknowledged, reasons): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        (acknowledged.into_iter().flatten().collect(), reasons)
    }
}

async fn call(
    interface: Interface,
    address: &str,
    name: &str,
    tell: watch::Sender<BTreeSet<Interface>>,
) -> Ended {
    let mut answered = Acknowledged::new();
    let connected = match interface {
        Interface::Rest => None,
        _ => match connect(interface, address).await {
            Ok(connected) => Some(connected),
            Err(failure) => return (answered, format!("{name} could not connect: {failure}")),
        },
    };
    let (mut numbers, mut refused) = (0.., String::new());
    let reason = loop {
        let title = format!("{name}-{}", numbers.next().unwrap_or_default());
        let done = match &connected {
            None => over_rest(address, &title).await,
            Some(connected) => over_mcp(&connected.session, &title).await,
        };
        match done {
            Err(reason) => break format!("{title}: {reason}{refused}"),
            // A refusal is tolerated: a slow database on a busy machine is not the subject of this test.
            Ok(Err(refusal)) => refused = format!("; before that: {refusal}"),
            Ok(Ok(())) => {
                answered.insert(title, interface);
                tell.send_if_modified(|interfaces| interfaces.insert(interface));
            }
        }
    };
    if let Some(Connected { session, task, .. }) = connected {
        drop(session);
        task.join().await;
    }
    (answered, reason)
}

/// Success or refusal, or an outer error if there was no response.
type Answer = Result<Result<(), String>, String>;

async fn over_rest(address: &str, title: &str) -> Answer {
    let body = json!({ "arguments": { "title": title }, "request_id": title }).to_string();
    let answer = ask(address, "POST", "/api/v1/tools/todo:create_todo/call", &body).await?;
    Ok(if answer["success"] == true { Ok(()) } else { Err(answer.to_string()) })
}

async fn over_mcp(session: &Session, title: &str) -> Answer {
    let arguments = Raw::from(json!({ "title": title }));
    let request = Request::call_tool("todo__create_todo", Some(&arguments));
    let answer = session.request(request).await.map_err(|it| it.to_string())?;
    let answer: Value = answer.decode().map_err(|it| format!("{it:?}"))?;
    let is_done = answer["structuredContent"]["title"] == title;
    Ok(if is_done { Ok(()) } else { Err(answer.to_string()) })
}

async fn connect(interface: Interface, address: &str) -> Result<Connected, String> {
    let token = format!("Bearer {TOKEN}").parse().expect("a header");
    let url = |rest: &str| rest.parse().expect("a URL");
    let opener: Box<dyn Opener> = match interface {
        Interface::WebSocket => {
            let mut endpoint = ws::WsEndpoint::new(url(&format!("ws://{address}/ws")));
            endpoint.headers.insert("authorization", token);
            Box::new(endpoint)
        }
        _ => {
            let client = HttpClient::new(STEP_TIMEOUT).expect("a client");
            let mut endpoint = HttpEndpoint::new(url(&format!("http://{address}/mcp")), client);
            endpoint.headers.insert("authorization", token);
            Box::new(endpoint)
        }
    };
    let era = if interface == Interface::Modern { Era::Modern } else { Era::Legacy };
    let client = ClientInfo { name: "a caller".into(), version: "1".into() };
    let options = Options { era: EraHint::Only(era), ..Options::new(client) };
    Session::connect(&*opener, &options).await.map_err(|it| it.to_string())
}
