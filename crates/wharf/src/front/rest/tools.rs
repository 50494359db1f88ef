//! The tools, as REST shows them.

use super::{Answer, items};
use crate::front::{json_response, problem::Problem};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use wharf_mcp::serve::http::Body;
use wharf_runtime::{Handle, catalog::ToolEntry, project};

/// All tools, or those of one `source`, or those whose name or description has the words of `q`.
pub(super) fn list(handle: &Handle, query: Option<&str>) -> Response<Body> {
    let wanted: Vec<(String, String)> =
        url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect();
    let fits = |tool: &ToolEntry| {
        wanted.iter().all(|(key, value)| match key.as_str() {
            "source" => tool.source == *value,
            "q" => {
                let text = format!("{} {}", tool.name, tool.description.as_deref().unwrap_or_default());
                text.to_lowercase().contains(&value.to_lowercase())
            }
            _ => true,
        })
    };
    items(handle.tools().iter().filter(|it| fits(it)).map(|it| tool(it)).collect())
}

pub(super) fn get(handle: &Handle, id: &str) -> Answer {
    let catalog = handle.catalog();
    let unknown = || Problem::new(StatusCode::NOT_FOUND, format!("there is no tool '{id}'"));
    let entry = catalog.tool(id).ok_or_else(unknown)?;
    Ok(json_response(StatusCode::OK, &tool(entry)))
}

fn tool(entry: &ToolEntry) -> Value {
    let mut tool = project::tool(entry);
    tool["tool_id"] = json!(entry.id());
    tool["for_models"] = json!(entry.for_models);
    tool
}
