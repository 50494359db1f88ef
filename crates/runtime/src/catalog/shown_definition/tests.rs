//! Applies overrides to one tool and checks what clients see and what the server receives.

use super::super::offered_tool::{OfferedTool, QuarantineCause};
use serde_json::{Value, json};
use wharf_config::{Env, Overrides, load};
use wharf_mcp::Raw;

const TOOL: &str = r##"{
    "name": "search", "description": "Searches.", "_meta": {"wharf/aliases": {"org": "owner", "text": "query"}},
    "inputSchema": {"type": "object", "required": ["owner", "query"], "properties": {
        "owner": {"$ref": "#/$defs/name"}, "query": {"type": "string"}, "perPage": {"type": "integer", "maximum": 100},
        "cursor": {"type": "string"}}, "$defs": {"name": {"type": "string", "minLength": 2}}}}"##;

/// Reads the overrides of an entry. `overrides` is the YAML of `search`, on one line.
fn overrides(search: &str) -> Overrides {
    let mut env = Env::bare();
    env.variables.insert("ORG".into(), "the-secret-org".into());
    let text = format!(
        "tools:\n  - name: a\n    description: b\n    type: mcp\n    server: builtin:todo\n    overrides:\n      search: {search}\n"
    );
    let (plan, diagnostics) = load(text, &env);
    let mut plan = plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false)));
    plan.sources.remove(0).overrides
}

fn shown(search: &str) -> OfferedTool {
    OfferedTool::read(&Raw::parse(TOOL).expect("JSON"), &overrides(search))
}

fn schema(tool: &OfferedTool) -> Value {
    tool.tool.as_ref().expect("a tool").input_schema.decode_or_default()
}

/// Returns what the server receives for what a client sends.
fn sent(tool: &OfferedTool, arguments: Value) -> Value {
    let arguments: Raw = arguments.into();
    tool.server_arguments(Some(&arguments)).unwrap_or(arguments).decode_or_default()
}

#[test]
fn every_kind_of_argument_change_is_applied() {
    let tool = shown(
        "{name: find, title: Find, description: Finds., annotations: {readOnlyHint: true}, arguments: {owner: \
         {fixed: '${ORG}'}, query: {name: q, description: What}, perPage: {default: 20}, cursor: {hidden: true}}}",
    );
    assert_eq!(tool.quarantined, None);
    let shown: Value = tool.raw.decode_or_default();
    assert_eq!(
        (&shown["title"], &shown["description"], &shown["annotations"]),
        (&json!("Find"), &json!("Finds."), &json!({ "readOnlyHint": true }))
    );
    assert_eq!(tool.renamed.as_deref(), Some("find"));
    assert_eq!(
        schema(&tool),
        json!({
            "type": "object",
            "required": ["q"],
            "properties": {
                "q": { "type": "string", "description": "What" },
                "perPage": { "type": "integer", "maximum": 100, "default": 20 },
            },
            "$defs": { "name": { "type": "string", "minLength": 2 } },
        })
    );
    assert_eq!(
        sent(&tool, json!({ "q": "x" })),
        json!({ "query": "x", "perPage": 20, "owner": "the-secret-org" })
    );
    assert_eq!(
        sent(&tool, json!({ "perPage": 5, "text": "x" })),
        json!({ "perPage": 5, "query": "x", "owner": "the-secret-org" })
    );
    let mapping = tool.mapping.as_ref().expect("a mapping");
    let wrong = json!({ "owner": "me", "query": "x", "cursor": "1", "org": "me" });
    let rejected: Vec<String> =
        mapping.rejected(&wrong.into()).iter().map(|it| format!("{} {}", it.pointer, it.message)).collect();
    assert_eq!(
        rejected,
        [
            "/cursor is hidden by agent.yaml",
            "/owner is fixed by agent.yaml",
            "/query is named 'q' by agent.yaml",
            "/org is fixed by agent.yaml",
        ]
    );
    assert!(!tool.raw.as_str().contains("the-secret-org") && tool.listed.as_str().contains("owner"));
}

#[test]
fn server_receives_the_bytes_that_the_client_sent() {
    let tool = shown("{arguments: {query: {name: q}}}");
    let arguments =
        Raw::parse(r#"{"owner":"ab","q":12345678901234567890123, "cursor":1e400}"#).expect("JSON");
    let sent = tool.server_arguments(Some(&arguments)).expect("mapped arguments");
    assert_eq!(sent.member("query").expect("query").as_str(), "12345678901234567890123");
    assert_eq!(sent.member("cursor").expect("cursor").as_str(), "1e400");
}

#[test]
fn arguments_can_swap_their_names() {
    let tool = shown("{arguments: {query: {name: owner}, owner: {name: query}}}");
    assert_eq!(tool.quarantined, None);
    assert_eq!(sent(&tool, json!({ "query": "o", "owner": "q" })), json!({ "owner": "o", "query": "q" }));
    let mapping = tool.mapping.as_ref().expect("a mapping");
    assert!(mapping.rejected(&json!({ "query": "o", "owner": "q" }).into()).is_empty());
}

#[test]
fn secret_default_is_sent_but_not_shown() {
    let tool = shown("{arguments: {owner: {default: '${ORG}'}}}");
    assert_eq!(schema(&tool)["required"], json!(["query"]));
    assert!(!tool.raw.as_str().contains("secret"));
    assert_eq!(sent(&tool, json!({ "query": "x" })), json!({ "query": "x", "owner": "the-secret-org" }));
}

#[test]
fn misfits_are_quarantined_with_the_line_of_the_file() {
    for (search, reason) in [
        ("{arguments: {owner: {hidden: true}}}", "'owner' is hidden, but the server requires it"),
        ("{arguments: {org: {fixed: x}}}", "'org' is fixed, but the tool has no such argument"),
        (
            "{arguments: {perPage: {fixed: many}}}",
            "the fixed value of 'perPage' does not fit the server's schema: is a string, but an integer is expected",
        ),
        (
            "{arguments: {perPage: {default: '${ORG}'}}}",
            "the default of 'perPage' does not fit the server's schema",
        ),
        ("{arguments: {owner: {fixed: o}}}", "the fixed value of 'owner' does not fit the server's schema: "),
        ("{arguments: {query: {name: cursor}}}", "two arguments would be named 'cursor'"),
    ] {
        let tool = shown(search);
        let quarantine = tool.quarantined.as_ref().unwrap_or_else(|| panic!("{search} fits"));
        assert_eq!(quarantine.cause, QuarantineCause::Override);
        assert!(quarantine.reason.starts_with("agent.yaml:7:"), "{}", quarantine.reason);
        assert!(quarantine.reason.contains(reason), "{}", quarantine.reason);
        assert!(!quarantine.reason.contains("secret"), "{}", quarantine.reason);
    }
}

#[test]
fn exact_names_beat_globs_and_disabled_tools_are_marked() {
    let plan = "tools:\n  - {name: a, description: b, type: mcp, server: 'builtin:todo', overrides: {'*': {enabled: false}, \
                search: {title: Found}, 's*': {annotations: {readOnlyHint: true}}}}\n";
    let overrides = load(plan, &Env::bare()).0.expect("a plan").sources.remove(0).overrides;
    let tool = |name: &str| {
        let raw = Raw::parse(TOOL).expect("JSON").with("name", &json!(name).into());
        OfferedTool::read(&raw, &overrides)
    };
    assert!(tool("search").is_enabled && !tool("other").is_enabled && !tool("second").is_enabled);
}

#[test]
fn definition_hash_is_that_of_the_server() {
    let plain = OfferedTool::read(&Raw::parse(TOOL).expect("JSON"), &Overrides::default());
    assert_eq!(plain.definition_hash, shown("{description: other}").definition_hash);
}
