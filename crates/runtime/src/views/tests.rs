//! Tests the public JSON shapes, field by field.

use super::*;
use crate::{
    BreakerPolicy, FaultKind, Redactor,
    circuit_breaker::BreakerState,
    fault::Stage,
    source_status::{ConnectionState, Health, SessionState, SourceStatus},
};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use wharf_config::{Env, load};
use wharf_mcp::Sent;

/// Returns 2025-12-31T10:30:15Z.
fn fixed_time() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_767_177_015)
}

fn record(outcome: Outcome) -> CallRecord {
    let arguments = json!({ "title": "Buy groceries", "priority": 2, "tags": ["shopping", "errands"] });
    CallRecord {
        via: "",
        handle: None,
        passed: Vec::new(),
        stages: crate::call::Stages::default(),
        request_id: "req_abc123".into(),
        thread_id: Some("thread_xyz789".to_owned()),
        principal: None,
        tool: "todo__create_todo".to_owned(),
        wire_name: Some("create_todo".into()),
        source: Some("todo".into()),
        arguments: Some(arguments.into()),
        started: fixed_time(),
        took: Duration::from_millis(345),
        outcome,
        unchecked: None,
        trace: None,
        limit: None,
        redactor: Arc::new(Redactor::default()),
    }
}

fn value(raw: &Raw) -> Value {
    raw.decode().expect("JSON that can be decoded")
}

fn todo() -> Value {
    json!({ "id": 42, "title": "Buy groceries", "status": "active", "created_at": "2025-12-31T10:30:15Z" })
}

fn answered() -> CallRecord {
    let content = json!([{ "type": "text", "text": todo().to_string() }]);
    record(Outcome::Answered(json!({ "content": content, "structuredContent": todo() }).into()))
}

fn refused() -> CallRecord {
    let content = json!([{ "type": "text", "text": "no todo has the id 7" }]);
    record(Outcome::Refused(json!({ "content": content, "isError": true }).into()))
}

fn failed(kind: FaultKind) -> CallRecord {
    let fault = Fault::local(kind, Stage::Call, "no answer in time", None);
    record(Outcome::Failed(Arc::new(Fault { sent: Sent::Unknown, ..fault })))
}

#[test]
fn call_context_has_all_fields() {
    let expected = json!({
        "request_id": "req_abc123",
        "thread_id": "thread_xyz789",
        "tool_name": "create_todo",
        "parameters": { "title": "Buy groceries", "priority": 2, "tags": ["shopping", "errands"] },
        "execution_start": "2025-12-31T10:30:15Z",
        "execution_duration": 0.345,
        "result": todo(),
        "status": "success"
    });
    assert_eq!(context(&answered()).as_str(), expected.to_string());
}

/// A context has either `result` or `error`, as its status indicates.
#[test]
fn a_context_has_a_result_or_an_error() {
    for (record, status, error) in [
        (refused(), "failure", "no todo has the id 7"),
        (failed(FaultKind::Connection), "failure", "MCPConnectionError: no answer in time"),
        (failed(FaultKind::Timeout), "timeout", "MCPTimeoutError: no answer in time"),
    ] {
        let context = value(&context(&record));
        assert_eq!((&context["status"], &context["error"]), (&json!(status), &json!(error)));
        assert!(context.get("result").is_none(), "{context:#}");
    }
}

#[test]
fn context_without_a_thread_omits_thread_id() {
    let record = CallRecord { thread_id: None, ..answered() };
    assert!(context(&record).member("thread_id").is_none());
}

#[test]
fn text_result_is_parsed_as_json_or_kept_as_string() {
    let with = |content: Value| {
        let record = record(Outcome::Answered(json!({ "content": content }).into()));
        value(&context(&record))["result"].clone()
    };
    assert_eq!(with(json!([{ "type": "text", "text": "{\"id\": 1}" }])), json!({ "id": 1 }));
    assert_eq!(with(json!([{ "type": "text", "text": "done" }])), json!("done"));
    assert_eq!(with(json!([])), json!([]));
    let two = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    assert_eq!(with(two.clone()), two);
}

#[test]
fn secrets_do_not_reach_a_context() {
    let text = "tools:\n  - {name: a, description: b, type: mcp, server: x, transport: http, url: https://h/, headers: {A: 'Bearer \"hunter2\"'}}\n";
    let (plan, _) = load(text, &Env::bare());
    let redactor = Arc::new(Redactor::of(&plan.expect("a plan")));
    let secret_text = "Bearer \"hunter2\" it was";
    let arguments = Some(json!({ "said": secret_text }).into());
    let outcome = Outcome::Answered(json!({ "content": [{ "type": "text", "text": secret_text }] }).into());
    let record = CallRecord { redactor, arguments, ..record(outcome) };
    let text = context(&record).as_str().to_owned();
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(value(&context(&record))["parameters"]["said"], "*** it was");
}

#[test]
fn execution_result_has_all_fields() {
    let expected = json!({
        "success": true,
        "content": [{ "type": "text", "text": todo().to_string() }],
        "is_error": false,
        "error": null,
        "execution_time_ms": 345.0,
        "metadata": { "request_id": "req_abc123", "tool_name": "create_todo", "source": "todo" }
    });
    assert_eq!(execution(&answered()).as_str(), expected.to_string());
    assert_eq!(get_text(&answered()), todo().to_string());
    let refusal = value(&execution(&refused()));
    assert_eq!((&refusal["success"], &refusal["is_error"]), (&json!(false), &json!(true)));
    assert_eq!(refusal["error"], "no todo has the id 7");
    assert_eq!(get_text(&failed(FaultKind::Timeout)), "");
}

#[test]
fn tool_result_has_all_fields() {
    let result = tool_result(&answered());
    let expected = json!({
        "success": true,
        "content": [{ "type": "text", "text": todo().to_string() }],
        "error": null,
        "metadata": {
            "request_id": "req_abc123",
            "tool": "todo__create_todo",
            "wire_name": "create_todo",
            "source": "todo",
            "duration_ms": 345.0,
            "structured_content": todo(),
        },
    });
    assert_eq!(result.as_str(), expected.to_string());
    let refusal = value(&tool_result(&refused()));
    assert_eq!(refusal["error"]["type"], "ToolError");
    assert_eq!(refusal["error"]["message"], "no todo has the id 7");
    let failure = &value(&tool_result(&failed(FaultKind::Timeout)))["error"];
    assert_eq!(
        (&failure["type"], &failure["phase"], &failure["sent"]),
        (&json!("MCPTimeoutError"), &json!("call"), &json!("unknown"))
    );
}

#[test]
fn breaker_view_has_all_fields() {
    let at = UNIX_EPOCH + Duration::from_secs(1_767_177_000);
    let open = BreakerState::Open { until: tokio::time::Instant::now() };
    let circuit_breaker = BreakerSnapshot {
        state: open,
        failures: 5,
        policy: BreakerPolicy::default(),
        last_failure: Some(at),
        last_change: at,
    };
    let expected = json!({
        "service_name": "mcp",
        "state": "OPEN",
        "failure_count": 5,
        "failure_threshold": 5,
        "last_failure_time": "2025-12-31T10:30:00Z",
        "recovery_timeout": "PT30S",
        "last_state_change": "2025-12-31T10:30:00Z"
    });
    assert_eq!(format!("{:#}", breaker("mcp", &circuit_breaker)), format!("{expected:#}"));
    assert_eq!(
        breaker("mcp", &BreakerSnapshot { state: BreakerState::HalfOpen, ..circuit_breaker })["state"],
        "HALF-OPEN"
    );
}

#[test]
fn connection_view_has_all_fields() {
    let text = "tools:\n  - {name: TodoDatabaseServer, description: b, type: mcp, server: builtin:todo}\n";
    let (plan, _) = load(text, &Env::bare());
    let source = Arc::new(plan.expect("a plan").sources.remove(0));
    let status = SourceStatus {
        session: SessionState::Connected,
        health: Health::Healthy,
        pid: Some(4_711),
        last_seen: Some(UNIX_EPOCH + Duration::from_secs(1_767_177_000)),
        opened_at: Some(UNIX_EPOCH + Duration::from_secs(1_767_176_000)),
        took: Some(Duration::from_millis(1_230)),
        era: Some(Era::Legacy),
        version: Some("2025-11-25".to_owned()),
        sessions: 3,
        ..SourceStatus::default()
    };
    let circuit_breaker = BreakerSnapshot {
        state: BreakerState::Closed { failures: 0 },
        failures: 0,
        policy: BreakerPolicy::default(),
        last_failure: None,
        last_change: fixed_time(),
    };
    let state = SourceState {
        source,
        status,
        connection: ConnectionState::Connected,
        circuit_breaker,
        unanswered: 0,
    };
    let expected = json!({
        "transport_type": "builtin",
        "server_name": "TodoDatabaseServer",
        "process": { "pid": 4711, "returncode": null },
        "connection_state": "connected",
        "session_state": "connected",
        "health": "healthy",
        "last_health_check": "2025-12-31T10:30:00Z",
        "discovered_tools": [],
        "initialization_time": 1.23,
        "started_at": "2025-12-31T10:13:20Z",
        "sessions": 3,
        "era": "legacy",
        "protocol_version": "2025-11-25",
    });
    assert_eq!(format!("{:#}", connection(&state, std::iter::empty())), format!("{expected:#}"));
}

/// Numbers keep all their digits, and unknown content stays unchanged.
#[test]
fn numbers_keep_all_their_digits() {
    let huge = r#"{"n":12345678901234567890123,"f":1e99999,"z":0.10}"#;
    let odd = r#"{"type":"hologram","size":1e99999}"#;
    let result = format!(r#"{{"content":[{odd}],"structuredContent":{huge}}}"#);
    let outcome = Outcome::Answered(Raw::parse(result).expect("JSON"));
    let arguments = Some(Raw::parse(huge).expect("JSON"));
    let record = CallRecord { arguments, ..record(outcome) };
    let context = context(&record);
    let [parameters, result] = context.pick(["parameters", "result"]);
    assert_eq!(parameters.expect("parameters").as_str(), huge);
    assert_eq!(result.expect("a result").as_str(), huge);
    let result = tool_result(&record);
    let metadata = result.member("metadata").expect("metadata");
    assert_eq!(metadata.member("structured_content").expect("structure").as_str(), huge);
    assert!(result.as_str().contains(&format!(r#""raw":{odd}"#)), "{result:?}");
    assert!(execution(&record).as_str().contains(odd));
}

/// Readers of the context could not decode deeply nested JSON.
#[test]
fn deeply_nested_json_text_stays_text() {
    let text = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let content = json!({ "content": [{ "type": "text", "text": text }] });
    assert_eq!(value(&result_value(&content.into())), json!(text));
}

#[test]
fn a_text_that_is_a_number_keeps_its_digits() {
    for text in ["12345678901234567890123", "1e99999", "0.10"] {
        let content = json!({ "content": [{ "type": "text", "text": text }] });
        assert_eq!(result_value(&content.into()).as_str(), text);
    }
}
