//! Reads the latest calls of a tool from the journal, for `wharf why`.

use std::time::{Duration, UNIX_EPOCH};
use wharf_runtime::{
    Handle,
    why::{RecentCall, RecentCalls, ToolExplanation},
};
use wharf_store::{CallFilter, CallRow, Store};

/// Number of calls that are read.
const MAX_CALLS: usize = 100;

/// Adds the latest calls to an explanation. A journal that cannot be read adds nothing, because the rest of the explanation
/// needs no database.
pub(crate) async fn add_recent_calls(explanation: &mut ToolExplanation, store: &Store, handle: &Handle) {
    let Some((source, tool)) = explanation.tool_id.split_once(':').filter(|_| !explanation.is_unknown) else {
        return;
    };
    let filter = CallFilter {
        source: Some(source.to_owned()),
        tool_name: Some(tool.to_owned()),
        ..CallFilter::default()
    };
    if let Ok(page) = store.list_calls(&filter, None, MAX_CALLS).await {
        let calls = page.calls.iter().map(recent_call).collect();
        explanation.recent = Some(RecentCalls { calls, breaker: handle.breaker_transitions(source) });
    }
}

fn recent_call(row: &CallRow) -> RecentCall {
    let failure = (&*row.status != "success").then(|| {
        let text = |it: &Option<std::sync::Arc<str>>| it.as_deref().unwrap_or_default().to_owned();
        (text(&row.error_type), text(&row.error))
    });
    RecentCall {
        at: UNIX_EPOCH + Duration::from_micros(u64::try_from(row.execution_start).unwrap_or_default()),
        took_ms: row.execution_duration_ms,
        request_id: row.request_id.to_string(),
        failure,
    }
}
