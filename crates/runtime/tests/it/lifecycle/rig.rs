//! Runs a runtime on in-memory servers and formats the outcome of a call as one line.

use super::fake_server::FakeServer;
use serde_json::Value;
use std::{path::Path, sync::Arc};
use tokio::runtime;
use wharf_config::{Env, Plan, load};
use wharf_mcp::model::{Block, CallResult, Item};
use wharf_runtime::{
    Call, CallRecord, Handle, Outcome, Runtime, RuntimeOptions, SourceState, UpstreamContext, sent_word,
};

pub(crate) struct Rig {
    pub(crate) runtime: Runtime,
    pub(crate) handle: Handle,
    pub(crate) fake_server: FakeServer,
}

impl Rig {
    /// Starts one source, `it`, with additional keys.
    pub(crate) fn one(keys: &str, options: RuntimeOptions) -> Rig {
        Rig::start(&plan(&[("it", keys)]), FakeServer::default(), options)
    }

    pub(crate) fn start(plan: &Plan, fake_server: FakeServer, options: RuntimeOptions) -> Rig {
        let runtime = Runtime::start(plan, &upstream_context(&fake_server), options);
        Rig { handle: runtime.handle(), runtime, fake_server }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> String {
        summary(&self.handle.call(Call::new(tool).arguments(arguments)).await)
    }

    /// Returns the state of the only source.
    pub(crate) fn state(&self) -> SourceState {
        self.handle.sources().remove(0)
    }
}

/// Builds a plan of in-memory servers from their names and additional keys.
pub(crate) fn plan(entries: &[(&str, &str)]) -> Plan {
    let entry = |(name, keys): &(&str, &str)| {
        format!("  - {{name: {name}, description: d, type: mcp, server: \"builtin:todo\", {keys}}}\n")
    };
    let text = format!("tools:\n{}", entries.iter().map(entry).collect::<String>());
    let (plan, diagnostics) = load(&text, &Env::bare());
    plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false)))
}

pub(crate) fn upstream_context(fake_server: &FakeServer) -> UpstreamContext {
    let upstream_context = UpstreamContext::plain(Path::new("unused")).expect("an HTTP client");
    UpstreamContext { builtins: Some(Arc::new(fake_server.clone())), ..upstream_context }
}

/// Formats an outcome: `ok TEXT`, `refused TEXT`, or the error's name, its stage and whether the request was sent.
pub(crate) fn summary(record: &Arc<CallRecord>) -> String {
    match &record.outcome {
        Outcome::Answered(result) => format!("ok {}", text(&CallResult::read(result))),
        Outcome::Refused(result) => format!("refused {}", text(&CallResult::read(result))),
        Outcome::Failed(fault) => {
            format!("{} {} {}", fault.kind.as_str(), fault.phase.as_str(), sent_word(fault.sent))
        }
    }
}

fn text(result: &CallResult) -> String {
    let words = result.content.iter().map(|it| match it {
        Item::Valid(Block::Text(text)) => text.as_str(),
        _ => "?",
    });
    words.collect()
}

/// Returns the number of tasks besides the test itself.
pub(crate) fn tasks() -> usize {
    runtime::Handle::current().metrics().num_alive_tasks()
}
