//! Formats the explanation of a tool: the answer first, then every layer and the latest calls.

use super::cached::NOT_CHECKED;
use crate::content::printable;
use serde_json::Value;

/// Formats an explanation, which a gateway may have sent.
pub(super) fn to_text(explanation: &Value) -> String {
    let text = |value: &Value, key: &str| printable(value[key].as_str().unwrap_or_default());
    let id = text(explanation, "tool_id");
    let stopped = &explanation["stopped_by"];
    let mut out = match explanation["verdict"].as_str() {
        Some("callable") => format!("{id} can be called\n"),
        Some("failing") => format!("{id} can be called, but fails\n"),
        _ => {
            let hint = stopped["hint"].as_str().map(|it| format!("help: {}\n", printable(it)));
            let (layer, code, message) =
                (text(stopped, "layer"), text(stopped, "code"), text(stopped, "message"));
            format!("{id} is stopped by {layer}/{code}: {message}\n{}", hint.unwrap_or_default())
        }
    };
    let items = |key: &str| explanation[key].as_array().into_iter().flatten();
    let similar: Vec<String> = items("similar").filter_map(Value::as_str).map(printable).collect();
    if !similar.is_empty() {
        out.push_str(&format!("similar: {}\n", similar.join(", ")));
    }
    for layer in items("layers") {
        let state = match (layer["ok"] == true, layer["code"].as_str()) {
            (true, Some(NOT_CHECKED)) => "-   ",
            (true, _) => "ok  ",
            (false, _) => "FAIL",
        };
        let at = layer["at"].as_str().map(|at| format!(" ({})", printable(at))).unwrap_or_default();
        out.push_str(&format!("  {state}  {:<12}  {}{at}\n", text(layer, "layer"), text(layer, "detail")));
    }
    out + &recent_text(&explanation["recent"])
}

/// Formats the latest calls. Nothing if there are none.
fn recent_text(recent: &Value) -> String {
    let Some(calls @ 1..) = recent["calls"].as_u64() else { return String::new() };
    let plural = if calls == 1 { "" } else { "s" };
    let mut out = format!(
        "latest {calls} call{plural}: {} failed, p50 {:.1} ms\n",
        recent["failed"],
        recent["p50_ms"].as_f64().unwrap_or_default()
    );
    for failure in recent["last_failures"].as_array().into_iter().flatten() {
        let text = |key: &str| printable(failure[key].as_str().unwrap_or_default());
        let message = text("message").lines().next().unwrap_or_default().to_owned();
        out.push_str(&format!("  {}  {}: {message} ({})\n", text("at"), text("type"), text("request_id")));
    }
    for change in recent["breaker"].as_array().into_iter().flatten() {
        let text = |key: &str| printable(change[key].as_str().unwrap_or_default());
        out.push_str(&format!("  {}  circuit breaker {}\n", text("at"), text("state")));
    }
    out
}
