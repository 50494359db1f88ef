//! Runs two sources, the one under test and an unaffected neighbour, in a `wharf` runtime.

use hostile::{
    matrix::{Class, Row},
    options::Transport,
    probe::{Mark, TrialSetup},
};
use std::{collections::BTreeMap, fmt::Write, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::{self, Instant};
use wharf_config::{Env, Grants, Plan, load};
use wharf_mcp::{
    http::HttpClient,
    model::{Block, CallResult, Item},
};
use wharf_runtime::{
    Call, Fault, FaultKind, Handle, Redactor, Runtime, RuntimeOptions, UpstreamContext,
    catalog::Discovery,
    sent_word,
    upstream::{Installs, ProcessLimit},
};

/// Grace period for running calls at shutdown.
const GRACE: Duration = Duration::from_millis(100);

pub(crate) struct TrialRuntime {
    runtime: Runtime,
    handle: Handle,
    plan: Plan,
    ground: UpstreamContext,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) class: Class,
    pub(crate) message: String,
    pub(crate) hint: String,
    pub(crate) phase: String,
    pub(crate) sent: String,
    pub(crate) said: String,
}

impl TrialRuntime {
    /// Starts the neighbour only; [`TrialRuntime::start_source`] starts the source under test.
    pub(crate) fn new(row: &Row, setup: &TrialSetup, neighbour: &str) -> Result<TrialRuntime, String> {
        let env = Env {
            grants: Grants { commands: vec![setup.program.clone()], ..Grants::default() },
            variables: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            ..Env::bare()
        };
        let (plan, diagnostics) = load(agent_file(row, setup, neighbour), &env);
        let plan = plan.ok_or_else(|| format!("{diagnostics:?}"))?;
        let http =
            HttpClient::new(Duration::from_secs(row.connect_timeout())).map_err(|it| it.to_string())?;
        let ground = UpstreamContext {
            scratch: setup.folder.path().join("scratch"),
            http,
            credentials: None,
            redactor: Arc::new(Redactor::of(&plan)),
            supervisor: Some(PathBuf::from("/proc/self/exe")),
            builtins: None,
            processes: ProcessLimit::default(),
            installs: Installs::default(),
            recorded: None,
            faults: None,
        };
        let mut first = plan.clone();
        first.sources.retain(|source| source.name.expose() == "neighbour");
        let runtime = Runtime::start(&first, &ground, RuntimeOptions::default());
        Ok(TrialRuntime { handle: runtime.handle(), runtime, plan, ground })
    }

    /// Starts the source under test.
    pub(crate) fn start_source(&self) {
        self.runtime.apply(&self.plan, &self.ground);
    }

    pub(crate) async fn call(&self, nonce: &str) -> Outcome {
        self.call_one("tried", nonce).await
    }

    pub(crate) async fn call_neighbour(&self, nonce: &str) -> Result<(), String> {
        let outcome = self.call_one("neighbour", nonce).await;
        if outcome.class == Class::Ok { Ok(()) } else { Err(format!("the neighbour: {}", outcome.message)) }
    }

    /// Calls the source under test, and the neighbour repeatedly at the same time. Also returns the neighbour's
    /// outcome and its slowest call in milliseconds.
    pub(crate) async fn call_both(&self, pause: Duration) -> (Outcome, (String, u64)) {
        let (mut neighbour_outcome, mut slowest) = ("OK".to_owned(), Duration::ZERO);
        let call_neighbours = async {
            loop {
                let started = Instant::now();
                if let Err(error) = self.call_neighbour("beside").await {
                    neighbour_outcome = error;
                }
                slowest = slowest.max(started.elapsed());
                time::sleep(pause).await;
            }
        };
        let outcome = tokio::select! {
            outcome = self.call_first() => outcome,
            () = call_neighbours => unreachable!("the neighbour is called for ever"),
        };
        (outcome, (neighbour_outcome, slowest.as_millis() as u64))
    }

    /// Makes the first call as `wharf` does: if listing the tools failed, returns that failure without another
    /// attempt.
    async fn call_first(&self) -> Outcome {
        let mut catalogs = self.handle.catalogs();
        let heard = |it: &Discovery| !matches!(it, Discovery::Pending);
        let read = catalogs.wait_for(|it| it.discovery("tried").is_some_and(heard)).await;
        let failed = match read.as_ref().ok().and_then(|it| it.discovery("tried")) {
            Some(Discovery::Failed(fault)) => Some(fault.clone()),
            _ => None,
        };
        drop(read);
        match failed {
            Some(fault) => Outcome::failed(&fault),
            None => self.call("first").await,
        }
    }

    async fn call_one(&self, source: &str, nonce: &str) -> Outcome {
        let call = Call::new(format!("{source}:echo")).arguments(serde_json::json!({ "nonce": nonce }));
        let record = self.handle.call(call).await;
        match (record.fault(), record.result()) {
            (Some(fault), _) => Outcome::failed(fault),
            (None, Some(result)) => Outcome::of(&CallResult::read(&result), nonce),
            (None, None) => Outcome::new(Class::Protocol, String::new(), "neither a result nor a fault"),
        }
    }

    pub(crate) async fn close(self) {
        self.runtime.shutdown(GRACE).await;
    }
}

impl Outcome {
    fn new(class: Class, said: String, message: &str) -> Outcome {
        let (hint, phase, sent) = (String::new(), String::new(), String::new());
        Outcome { class, message: message.to_owned(), hint, phase, sent, said }
    }

    fn of(result: &CallResult, nonce: &str) -> Outcome {
        let said = text(result);
        match result.is_error {
            true => Outcome::new(Class::ToolError, said.clone(), &said),
            false if said.contains("forged") => Outcome::new(Class::Protocol, said, "somebody else's answer"),
            false => Outcome::new(Class::Ok, said, nonce),
        }
    }

    fn failed(fault: &Fault) -> Outcome {
        Outcome {
            class: match fault.kind {
                FaultKind::Connection => Class::Connection,
                FaultKind::Timeout => Class::Timeout,
                FaultKind::Protocol => Class::Protocol,
                FaultKind::BreakerOpen => Class::BreakerOpen,
                _ => Class::NotFound,
            },
            message: fault.message(),
            hint: fault.hint.clone().unwrap_or_default(),
            phase: fault.phase.as_str().to_owned(),
            sent: sent_word(fault.sent).to_owned(),
            said: String::new(),
        }
    }
}

fn text(result: &CallResult) -> String {
    let blocks = result.content.iter().map(|block| match block {
        Item::Valid(Block::Text(text)) => text.clone(),
        Item::Valid(other) => format!("{other:?}"),
        Item::Invalid(_, why) => format!("[{why}]"),
    });
    blocks.collect::<Vec<_>>().join("\n")
}

fn agent_file(row: &Row, setup: &TrialSetup, neighbour: &str) -> String {
    let mut text = String::from("tools:\n  - {name: tried, description: d, type: mcp, server: x, ");
    let _ = match row.transport {
        Transport::Stdio => write!(
            text,
            "command: {:?}, args: {:?}, env: {{{}: {:?}}}",
            setup.program.display().to_string(),
            setup.args,
            Mark::NAME,
            setup.mark.value(),
        ),
        Transport::Http => write!(text, "transport: http, url: {:?}", setup.url),
        Transport::Sse => write!(text, "transport: sse, url: {:?}", setup.url),
        Transport::Ws => write!(text, "transport: websocket, url: {:?}", setup.url),
    };
    let (request, total, connect) = (row.request_timeout(), row.total_timeout(), row.connect_timeout());
    let _ = writeln!(
        text,
        ", request_timeout: {request}, max_total_timeout: {total}, connect_timeout: {connect}}}"
    );
    let _ = writeln!(
        text,
        "  - {{name: neighbour, description: d, type: mcp, server: x, transport: http, url: {neighbour:?}}}"
    );
    text
}
