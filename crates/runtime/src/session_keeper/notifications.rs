//! Dispatches server notifications: marks lists for a refresh, publishes resource updates and log messages.

use crate::{events::EventKind, lists_to_refresh::ListsToRefresh, status_publisher::StatusPublisher};
use wharf_mcp::{News, Raw, session::List};

pub(super) fn handle(publisher: &StatusPublisher, lists_to_refresh: &ListsToRefresh, news: News) {
    match news {
        News::Renewed => lists_to_refresh.mark_all(),
        News::ToolsChanged => lists_to_refresh.mark(List::Tools),
        News::PromptsChanged => lists_to_refresh.mark(List::Prompts),
        News::ResourcesChanged => {
            lists_to_refresh.mark(List::Resources);
            lists_to_refresh.mark(List::Templates);
        }
        News::ResourceUpdated(uri) => publisher.publish(EventKind::ResourceUpdated(uri)),
        News::ElicitationComplete(params) => publisher.publish(EventKind::ElicitationComplete(params)),
        News::Log(params) => log(publisher, &params, false),
        News::LogOfCall(params) => log(publisher, &params, true),
    }
}

/// Writes a server's log message to our log and publishes it as an event.
fn log(publisher: &StatusPublisher, params: &Raw, of_call: bool) {
    let text = |key: &str| params.member(key).and_then(|it| it.decode::<String>().ok());
    let level = text("level").unwrap_or_else(|| "info".to_owned());
    let data = params.member("data").unwrap_or_else(Raw::empty_object);
    let logger = text("logger");
    let shown = publisher.redact(data.as_str());
    let (source, mcp_level) = (&**publisher.name(), level.as_str());
    match mcp_level {
        "debug" => tracing::debug!(target: "wharf::server", source, logger, "{shown}"),
        "warning" => tracing::warn!(target: "wharf::server", source, logger, "{shown}"),
        "error" => tracing::error!(target: "wharf::server", source, logger, "{shown}"),
        "critical" | "alert" | "emergency" => {
            tracing::error!(target: "wharf::server", source, logger, mcp.level = mcp_level, "{shown}");
        }
        _ => tracing::info!(target: "wharf::server", source, logger, "{shown}"),
    }
    if publisher.bus().has_listeners() {
        let data = Raw::parse(shown).unwrap_or_else(|_| Raw::empty_object());
        publisher.publish(EventKind::Log { level, logger, data, of_call });
    }
}
