//! A runtime whose sources are hostile servers, started as `wharf` starts servers.

use crate::trial::{HOSTILE, OURS};
use hostile::probe::Mark;
use serde_json::json;
use std::{collections::BTreeMap, fmt::Write, path::PathBuf, sync::Arc};
use tempfile::TempDir;
use wharf_config::{Env, Grants, Plan, load};
use wharf_mcp::{
    Raw,
    model::{Block, CallResult, Item},
};
use wharf_runtime::{Call, CallRecord, Handle, Outcome, Runtime, RuntimeOptions, UpstreamContext, sent_word};

/// One source of the plan.
pub(crate) enum Entry<'a> {
    /// A child process: name, command line, further configuration keys.
    Stdio(&'a str, &'a str, &'a str),
    /// A remote server: name, transport, URL.
    Remote(&'a str, &'a str, &'a str),
}

pub(crate) struct Rig {
    pub(crate) runtime: Runtime,
    pub(crate) handle: Handle,
    /// Marker for finding the server processes.
    pub(crate) mark: Mark,
    pub(crate) folder: TempDir,
}

impl Rig {
    /// Starts the runtime. In command lines, `$FOLDER` is the folder of the rig.
    pub(crate) fn start(entries: &[Entry<'_>], tuning: RuntimeOptions) -> Rig {
        let folder = TempDir::new().expect("a folder");
        let mark = Mark::new(&folder.path().file_name().expect("a name").to_string_lossy());
        let plan = plan(entries, &folder, &mark);
        let ground = UpstreamContext::plain(folder.path().join("scratch")).expect("an HTTP client");
        let ground = UpstreamContext { supervisor: Some(PathBuf::from(OURS)), ..ground };
        let runtime = Runtime::start(&plan, &ground, tuning);
        Rig { handle: runtime.handle(), runtime, mark, folder }
    }

    pub(crate) async fn call(&self, tool: &str, nonce: &str) -> String {
        call(&self.handle, tool, nonce).await
    }
}

pub(crate) async fn call(handle: &Handle, tool: &str, nonce: &str) -> String {
    let arguments: Raw = json!({ "nonce": nonce }).into();
    describe_outcome(&*handle.call(Call::new(tool).arguments(arguments)).await)
}

/// Formats an outcome: `ok TEXT`, `refused TEXT`, or the error type, phase and whether the request was sent.
pub(crate) fn describe_outcome(record: &CallRecord) -> String {
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

fn plan(entries: &[Entry<'_>], folder: &TempDir, mark: &Mark) -> Plan {
    let mut text = String::from("tools:\n");
    for entry in entries {
        let head = |name: &str| format!("  - {{name: {name}, description: d, type: mcp, server: x, ");
        let _ = match entry {
            Entry::Stdio(name, line, keys) => {
                let line = line.replace("$FOLDER", &folder.path().display().to_string());
                let args: Vec<&str> = line.split_whitespace().collect();
                let (head, mark) = (head(name), format!("{{{}: {:?}}}", Mark::NAME, mark.value()));
                writeln!(text, "{head}command: {HOSTILE:?}, args: {args:?}, env: {mark}, {keys}}}")
            }
            Entry::Remote(name, transport, url) => {
                writeln!(text, "{}transport: {transport}, url: {url:?}}}", head(name))
            }
        };
    }
    let env = Env {
        grants: Grants { commands: vec![PathBuf::from(HOSTILE)], ..Grants::default() },
        variables: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        ..Env::bare()
    };
    let (plan, diagnostics) = load(&text, &env);
    plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false)))
}

/// Returns options with this observer.
pub(crate) fn observed_by(observer: Arc<dyn wharf_runtime::Observer>) -> RuntimeOptions {
    RuntimeOptions { observers: vec![observer], ..RuntimeOptions::default() }
}
