//! `/openapi.json`, generated from the route table.
//!
//! It is written by hand, not with a library's macros, because the router and the document then share one table and
//! cannot diverge. A library would also describe Rust types, which REST does not use: it builds JSON from the
//! runtime's views.

use super::routes::{About, Operation, ROUTES};
use serde_json::{Map, Value, json};

/// Schemas, parameters and security schemes.
const COMPONENTS: &str = include_str!("openapi/components.json");

/// Statuses that every operation can return: malformed request, foreign host or origin, URI too long, headers too
/// large.
const COMMON_STATUSES: &[u16] = &[400, 403, 414, 431];

/// Builds the document.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for operation in ROUTES {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = describe(operation);
    }
    let components: Value = serde_json::from_str(COMPONENTS).unwrap_or_default();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "wharf",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every tool of every MCP server behind one API. An error is a problem document \
                (RFC 9457); a tool's own error is a 200 with `success: false`.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": components,
    })
}

fn describe(operation: &Operation) -> Value {
    let About { id, summary, parameters, body, .. } = operation.about;
    let needs = match operation.role {
        Some(role) => format!("Needs the role `{}` or one above it.", role.as_str()),
        None => "Needs no token.".to_owned(),
    };
    let parameters: Vec<Value> =
        parameters.iter().map(|it| json!({ "$ref": format!("#/components/parameters/{it}") })).collect();
    let mut described = json!({
        "operationId": id,
        "summary": summary,
        "description": needs,
        "tags": [tag(operation.path)],
        "parameters": parameters,
        "responses": responses(operation),
        "security": operation.role.map_or_else(|| json!([]), |_| json!([{ "token": [] }])),
    });
    if let Some(body) = body {
        described["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema(body) } } });
    }
    described
}

fn responses(operation: &Operation) -> Value {
    let mut responses = Map::new();
    for (status, kind, name) in operation.about.answers {
        let response =
            responses.entry(status.to_string()).or_insert_with(|| json!({ "description": reason(*status) }));
        if !kind.is_empty() {
            let kind = kind.split(';').next().unwrap_or_default();
            response["content"][kind] = json!({ "schema": schema(name) });
        }
    }
    let unknown = operation.role.map(|_| 401);
    for status in COMMON_STATUSES.iter().chain(operation.about.problems).copied().chain(unknown) {
        let response =
            responses.entry(status.to_string()).or_insert_with(|| json!({ "description": reason(status) }));
        response["content"]["application/problem+json"] = json!({ "schema": schema("Problem") });
    }
    for (status, response) in &mut responses {
        if let Some((name, about)) = header(status, operation.about.id) {
            response["headers"][name] = json!({ "description": about, "schema": { "type": "string" } });
        }
    }
    responses.sort_keys();
    Value::Object(responses)
}

/// The header that a response of this status may have in addition to the common ones.
fn header(status: &str, id: &str) -> Option<(&'static str, &'static str)> {
    match (status, id) {
        ("401", _) => Some(("WWW-Authenticate", "The authentication scheme")),
        ("405", _) => Some(("Allow", "The allowed methods")),
        ("429" | "503", _) => Some(("Retry-After", "Seconds to wait before a retry")),
        ("200", "callTool") => {
            Some(("Idempotency-Replayed", "`true` if this is the stored result of an earlier call"))
        }
        ("200", "mcp") => Some(("Mcp-Session-Id", "The session that `initialize` opened")),
        _ => None,
    }
}

fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The reason phrase of a status.
fn reason(status: u16) -> &'static str {
    let status = http::StatusCode::from_u16(status).ok();
    status.and_then(|it| it.canonical_reason()).unwrap_or("Another status")
}

/// The tag that groups an operation.
fn tag(path: &str) -> &str {
    match path.strip_prefix("/api/v1/") {
        Some(rest) => rest.split('/').next().unwrap_or_default(),
        None if matches!(path, "/mcp" | "/sse" | "/messages" | "/ws") => "mcp",
        None => "operations",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::routes::{RouteMatch, find};

    /// Every reference resolves, and every component is referenced.
    #[test]
    fn every_component_is_defined_and_referenced() {
        let document = document();
        let text = document.to_string();
        for kind in ["schemas", "parameters"] {
            let there = document["components"][kind].as_object().expect("components");
            let prefix = format!("#/components/{kind}/");
            let mut meant: Vec<&str> =
                text.split(&prefix).skip(1).filter_map(|it| it.split('"').next()).collect();
            meant.sort_unstable();
            meant.dedup();
            let mut there: Vec<&str> = there.keys().map(String::as_str).collect();
            there.sort_unstable();
            assert_eq!(meant, there, "{kind}");
        }
    }

    /// The router finds every described operation and no others, and every operation id is unique.
    #[test]
    fn router_and_document_have_the_same_operations() {
        let document = document();
        let mut ids = Vec::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                let method = method.to_ascii_uppercase().parse().expect("a method");
                let id = operation["operationId"].as_str().expect("an id");
                let address = path.replace(['{', '}'], "");
                match find(&method, &address) {
                    RouteMatch::Operation(found, _) => assert_eq!(found.about.id, id),
                    other => panic!("{method} {path}: {other:?}"),
                }
                ids.push(id.to_owned());
            }
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((count, ids.len()), (ROUTES.len(), ROUTES.len()));
        for operation in ROUTES {
            let parameters = operation.about.parameters.iter();
            let in_path: Vec<&str> = parameters
                .map(|it| &document["components"]["parameters"][it])
                .filter(|it| it["in"] == "path")
                .map(|it| it["name"].as_str().expect("a name"))
                .collect();
            let words = operation.path.split('{').skip(1).filter_map(|it| it.split('}').next());
            assert_eq!(in_path, Vec::from_iter(words), "{}", operation.path);
        }
    }
}
