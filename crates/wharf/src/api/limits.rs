//! The limits that hold at this gateway, as `GET /api/v1/session` shows them.

use crate::{api::body::MAX_BODY_BYTES, app::App, journal::DEFAULT_RECORD_LIMIT};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_mcp::serve::http::HttpOptions;

/// Limits from wharf.toml or their defaults. A limit that is `None` does not hold.
pub(crate) struct GatewayLimits {
    /// Maximum number of concurrent calls.
    pub(super) max_calls: Option<usize>,
    /// Maximum number of open MCP streams of each transport.
    pub(super) max_streams: usize,
    shown: Value,
}

impl GatewayLimits {
    pub(crate) fn of(app: &App) -> GatewayLimits {
        let (max_calls, results, journal) = (app.server.max_calls, &app.results, app.retention());
        let max_streams = app.server.max_streams.unwrap_or(HttpOptions::default().stream_limit);
        let seconds = |time: Option<Duration>| time.map(|it| it.as_secs());
        let shown = json!({
            "max_calls": max_calls,
            "max_streams": max_streams,
            "max_processes": app.upstream_context.processes.limit(),
            "idle_stop": seconds(app.options.idle_stop),
            "max_body_bytes": MAX_BODY_BYTES,
            "record_limit": app.record_limit.unwrap_or(DEFAULT_RECORD_LIMIT),
            "journal_keep": seconds(journal.keep),
            "journal_max_bytes": journal.max_bytes,
            "conversations_keep": seconds(app.agent_policy.keep),
            "results_per_principal": results.per_principal,
            "results_total": results.total,
        });
        GatewayLimits { max_calls, max_streams, shown }
    }

    /// Returns the limits as JSON: times in seconds, sizes in bytes.
    pub(super) fn to_json(&self) -> &Value {
        &self.shown
    }
}
