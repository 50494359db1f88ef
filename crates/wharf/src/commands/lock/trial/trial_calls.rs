//! Finds the calls of a trial: those of a recording, or the latest ones of the journal.

use crate::{app::App, cassette_file::read_cassette, command_error::CommandError, exit::Exit};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path};
use wharf_config::{Glob, LockedServer};
use wharf_store::{CallFilter, Location, Store, StoreError};

/// Number of calls of the journal that are tried if no number is given.
const DEFAULT_CALLS: usize = 20;

/// Maximum number of calls of the journal to look at.
const MAX_CALLS: usize = 10_000;

/// Text that stands for a secret in the journal.
const REDACTED: &str = "***";

/// Beginning of what stands for a secret in a recording.
const PLACEHOLDER: &str = "«";

/// A call to send to both versions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TrialCall {
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// Tools that are not called, with the reason and the number of calls.
pub(super) type Skipped = BTreeMap<(String, &'static str), usize>;

/// Reads the calls of a server.
pub(super) async fn read_calls(
    app: &App,
    source: &str,
    cassette: Option<&Path>,
    count: Option<usize>,
) -> Result<Vec<TrialCall>, CommandError> {
    if let Some(cassette) = cassette {
        let calls = read_cassette(cassette)?.calls.into_iter().filter(|it| it.source == source);
        return Ok(calls.map(|it| TrialCall { tool: it.tool, arguments: it.arguments }).collect());
    }
    let count = count.unwrap_or(DEFAULT_CALLS);
    let is_there = |it: &&Location| !matches!(it, Location::Sqlite(path) if !path.exists());
    let Some(location) = app.database.as_ref().filter(is_there) else { return Ok(Vec::new()) };
    let unavailable =
        |error: StoreError| CommandError::new("MCPError", &error.to_string(), Exit::Unavailable);
    let store = Store::open(location).await.map_err(unavailable)?;
    let filter = CallFilter { source: Some(source.to_owned()), ..CallFilter::default() };
    let page = store.list_calls(&filter, None, count.min(MAX_CALLS)).await;
    store.close().await;
    let rows = page.map_err(unavailable)?.calls;
    let calls = rows.iter().rev().filter_map(|it| {
        let arguments: Value = serde_json::from_str(&it.parameters).ok()?;
        let is_cut = arguments.get("cut").is_some_and(|it| it.get("beginning").is_some());
        (!is_cut).then(|| TrialCall { tool: it.tool_name.to_string(), arguments })
    });
    Ok(calls.collect())
}

/// Separates the calls that may be repeated from those that are skipped. Equal calls are made once.
pub(super) fn choose_calls(
    calls: Vec<TrialCall>,
    source: &str,
    locked: &LockedServer,
    repeatable: &[Glob],
    also: &[String],
) -> (Vec<TrialCall>, Skipped) {
    let also: Vec<Glob> = also.iter().map(Glob::new).collect();
    let mut chosen: Vec<TrialCall> = Vec::new();
    let mut skipped = Skipped::new();
    for call in calls {
        let id = format!("{source}:{}", call.tool);
        let is_read_only =
            |it: &wharf_config::LockedItem| it.definition["annotations"]["readOnlyHint"] == true;
        let may_repeat = locked.tools.get(&call.tool).is_some_and(is_read_only)
            || repeatable.iter().chain(&also).any(|it| it.matches(&id));
        let text = call.arguments.to_string();
        let why = match (may_repeat, text.contains(REDACTED) || text.contains(PLACEHOLDER)) {
            (false, _) => Some("may have effects"),
            (true, true) => Some("arguments are redacted"),
            (true, false) => None,
        };
        match why {
            Some(why) => *skipped.entry((call.tool, why)).or_default() += 1,
            None if chosen.contains(&call) => {}
            None => chosen.push(call),
        }
    }
    (chosen, skipped)
}
