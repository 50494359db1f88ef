//! Dispatches server notifications: marks lists for a refresh, publishes resource updates and log messages.

use crate::{board::Board, events::Happening, stale::Stale};
use wharf_mcp::{News, Raw, session::List};

pub(super) fn hear(board: &Board, stale: &Stale, news: News) {
    match news {
        News::Renewed => stale.mark_all(),
        News::ToolsChanged => stale.mark(List::Tools),
        News::PromptsChanged => stale.mark(List::Prompts),
        News::ResourcesChanged => {
            stale.mark(List::Resources);
            stale.mark(List::Templates);
        }
        News::ResourceUpdated(uri) => board.tell(Happening::ResourceUpdated(uri)),
        News::Log(params) => log(board, &params, false),
        News::LogOfCall(params) => log(board, &params, true),
    }
}

/// Writes a server's log message to our log and publishes it as an event.
fn log(board: &Board, params: &Raw, of_call: bool) {
    let text = |key: &str| params.member(key).and_then(|it| it.decode::<String>().ok());
    let level = text("level").unwrap_or_else(|| "info".to_owned());
    let data = params.member("data").unwrap_or_else(Raw::empty_object);
    let logger = text("logger");
    let shown = board.redact(data.as_str());
    let (source, mcp_level) = (&**board.name(), level.as_str());
    match mcp_level {
        "debug" => tracing::debug!(target: "wharf::server", source, logger, "{shown}"),
        "warning" => tracing::warn!(target: "wharf::server", source, logger, "{shown}"),
        "error" => tracing::error!(target: "wharf::server", source, logger, "{shown}"),
        "critical" | "alert" | "emergency" => {
            tracing::error!(target: "wharf::server", source, logger, mcp.level = mcp_level, "{shown}");
        }
        _ => tracing::info!(target: "wharf::server", source, logger, "{shown}"),
    }
    if board.bus().has_listeners() {
        let data = Raw::parse(shown).unwrap_or_else(|_| Raw::empty_object());
        board.tell(Happening::Log { level, logger, data, of_call });
    }
}
