//! Finds the calls of a trial: those of a recording, or the latest ones of the journal.

use crate::{app::App, cassette_file::read_cassette, command_error::CommandError, exit::Exit};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path};
use wharf_config::{Glob, LockedServer};
use wharf_store::{CallFilter, CallRow, Location, Store, StoreError};

/// Number of calls of the journal that are tried if no number is given.
const DEFAULT_CALLS: usize = 20;

/// Maximum number of calls of the journal to look at.
const MAX_CALLS: usize = 10_000;

/// Number of calls that are read from the journal at once.
const PAGE_SIZE: usize = 500;

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
    let calls = latest_calls(&store, source, count).await;
    store.close().await;
    calls.map_err(unavailable)
}

/// Reads the latest calls of the journal, the oldest first, until `count` of them are complete and unredacted. Those in
/// between that are redacted are returned too, so that the trial can name them.
async fn latest_calls(store: &Store, source: &str, count: usize) -> Result<Vec<TrialCall>, StoreError> {
    let filter = CallFilter { source: Some(source.to_owned()), ..CallFilter::default() };
    let (mut calls, mut usable, mut seen) = (Vec::new(), 0, 0);
    let mut after = None;
    loop {
        let page = store.list_calls(&filter, after.as_ref(), PAGE_SIZE).await?;
        for row in &page.calls {
            if usable == count || seen == MAX_CALLS {
                break;
            }
            seen += 1;
            let Some(call) = complete_call(row) else { continue };
            usable += usize::from(!is_redacted(&call.arguments));
            calls.push(call);
        }
        after = page.next;
        if after.is_none() || usable == count || seen == MAX_CALLS {
            calls.reverse();
            return Ok(calls);
        }
    }
}

/// Returns a call of the journal unless its arguments were cut.
fn complete_call(row: &CallRow) -> Option<TrialCall> {
    let arguments: Value = serde_json::from_str(&row.parameters).ok()?;
    let is_cut = arguments.get("cut").is_some_and(|it| it.get("beginning").is_some());
    (!is_cut).then(|| TrialCall { tool: row.tool_name.to_string(), arguments })
}

fn is_redacted(arguments: &Value) -> bool {
    let text = arguments.to_string();
    text.contains(REDACTED) || text.contains(PLACEHOLDER)
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
        let why = match (may_repeat, is_redacted(&call.arguments)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn cut_and_redacted_calls_do_not_take_the_place_of_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&Location::Sqlite(folder.path().join("a.db"))).await.expect("a store");
        // The complete ones are the first of a thousand and the last but two.
        let call = |number: i64, parameters: &str| CallRow {
            request_id: format!("call-{number}").into(),
            execution_start: number,
            source: "time".into(),
            tool_name: "now".into(),
            parameters: parameters.into(),
            status: "success".into(),
            ..CallRow::default()
        };
        let cut = r#"{"cut":{"beginning":"{","bytes":9}}"#;
        let mut calls = vec![call(0, r#"{"n":0}"#)];
        calls.extend((1..1_000).map(|it| call(it, cut)));
        calls.extend([call(1_000, r#"{"n":1000}"#), call(1_001, r#"{"key":"***"}"#), call(1_002, cut)]);
        store.record_calls(calls).await.expect("they are recorded");
        let found = async |count: usize| -> Vec<Value> {
            let calls = latest_calls(&store, "time", count).await.expect("calls");
            calls.into_iter().map(|it| it.arguments).collect()
        };
        let (first, last, redacted) = (json!({ "n": 0 }), json!({ "n": 1000 }), json!({ "key": "***" }));
        assert_eq!(found(1).await, [last.clone(), redacted.clone()]);
        assert_eq!(found(2).await, [first.clone(), last.clone(), redacted.clone()]);
        assert_eq!(found(20).await, [first, last, redacted]);
        assert_eq!(latest_calls(&store, "other", 2).await.expect("calls"), []);
        store.close().await;
    }
}
