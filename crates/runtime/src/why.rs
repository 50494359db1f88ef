//! Explains whether a tool can be called: every layer that decides about it, in the order of a call, and the first one
//! that stops it.

mod layers;
mod recent_calls;

use crate::{Handle, catalog::Catalog};
use layers::{find_subject, layers};
pub use recent_calls::{RecentCall, RecentCalls};
use serde_json::{Value, json};

/// Maximum number of similar names.
const MAX_SIMILAR: usize = 3;

/// Explanation of a tool.
#[derive(Clone, Debug)]
pub struct ToolExplanation {
    /// `source:tool`, or the name as asked for.
    pub tool_id: String,
    /// Whether the source or the tool is unknown.
    pub is_unknown: bool,
    /// The layers, in the order of a call.
    pub layers: Vec<ToolLayer>,
    /// Names that are like the one asked for.
    pub similar: Vec<String>,
    /// The latest calls, if a journal knows them.
    pub recent: Option<RecentCalls>,
}

/// One layer that decides about a tool.
#[derive(Clone, Debug)]
pub struct ToolLayer {
    /// Name of the layer.
    pub name: &'static str,
    /// Whether the layer lets the tool pass.
    pub is_ok: bool,
    /// Code of the reason. A note if the layer lets the tool pass.
    pub code: Option<&'static str>,
    /// Description.
    pub detail: String,
    /// Advice.
    pub hint: Option<String>,
    /// Place in the agent file.
    pub at: Option<String>,
}

/// For whom a tool is explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// A client of the gateway, or a person.
    #[default]
    Client,
    /// The model of the agent, for which `allow` and `deny` count.
    Agent,
}

/// Explains a tool by any of its names. Starts nothing and changes nothing.
pub fn explain_tool(handle: &Handle, name: &str, audience: Audience) -> ToolExplanation {
    let catalog = handle.catalog();
    let subject = find_subject(handle, &catalog, name);
    let layers = layers(&subject, audience);
    let stopped = layers.iter().find(|it| !it.is_ok).and_then(|it| it.code);
    let is_unknown = matches!(stopped, Some("source_unknown" | "not_listed"));
    let similar = if is_unknown { similar_names(&catalog, name) } else { Vec::new() };
    ToolExplanation { tool_id: subject.tool_id(name), is_unknown, layers, similar, recent: None }
}

impl ToolExplanation {
    /// Returns the first layer that stops the tool.
    pub fn stopped_by(&self) -> Option<&ToolLayer> {
        self.layers.iter().find(|it| !it.is_ok)
    }

    /// Returns `callable`, `stopped`, or `failing` for a tool that can be called but fails more often than not.
    pub fn verdict(&self) -> &'static str {
        let is_failing = self.recent.as_ref().is_some_and(RecentCalls::is_failing);
        match self.stopped_by() {
            Some(_) => "stopped",
            None if is_failing => "failing",
            None => "callable",
        }
    }

    /// Adds a layer that the runtime does not know, behind the layer called `after`. Does nothing for an unknown tool.
    pub fn add_layer(&mut self, after: &str, layer: ToolLayer) {
        if let Some(at) = self.layers.iter().position(|it| it.name == after) {
            self.layers.insert(at + 1, layer);
        }
    }

    /// Converts the explanation to JSON.
    pub fn to_json(&self) -> Value {
        let stopped = self.stopped_by().map(|it| {
            json!({ "layer": it.name, "code": it.code, "message": it.detail, "hint": it.hint, "at": it.at })
        });
        let layers = self.layers.iter().map(|it| {
            json!({ "layer": it.name, "ok": it.is_ok, "code": it.code, "detail": it.detail, "at": it.at })
        });
        json!({
            "tool_id": self.tool_id,
            "verdict": self.verdict(),
            "stopped_by": stopped,
            "layers": layers.collect::<Vec<_>>(),
            "similar": self.similar,
            "recent": self.recent.as_ref().map(RecentCalls::to_json),
        })
    }
}

fn similar_names(catalog: &Catalog, name: &str) -> Vec<String> {
    let likeness = |text: &str| strsim::jaro_winkler(name, text);
    let mut all: Vec<(f64, String)> = catalog
        .tools
        .iter()
        .map(|it| (likeness(&it.id()).max(likeness(&it.name)).max(likeness(&it.wire_name)), it.id()))
        .filter(|(likeness, _)| *likeness > 0.8)
        .collect();
    all.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
    all.into_iter().take(MAX_SIMILAR).map(|(_, id)| id).collect()
}
