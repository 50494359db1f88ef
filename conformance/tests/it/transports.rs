//! Tests our client against our server over every transport and in every era. The same calls give the same results.

use crate::server::{SERVER, Server};
use serde_json::{Value, json};
use std::{sync::Arc, sync::Mutex, time::Duration};
use wharf_mcp::{
    Host, Opener, Options, Raw, Request, Session,
    http::{self, HttpClient},
    model::{CallResult, Item, Tool},
    session::{ClientInfo, Era, HostFuture, List, NoHost},
    sse, stdio, ws,
};

/// Answers server requests.
struct AcceptingHost;

impl Host for AcceptingHost {
    fn capabilities(&self) -> Raw {
        json!({ "roots": {}, "sampling": {}, "elicitation": {} }).into()
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> HostFuture {
        let answer = match method {
            "elicitation/create" => {
                let content =
                    json!({ "name": "Ada", "username": "ada", "email": "a@b.c", "ok": true, "color": "red" });
                json!({ "action": "accept", "content": content })
            }
            "sampling/createMessage" => {
                json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Paris" } })
            }
            "roots/list" => json!({ "roots": [{ "uri": "file:///srv" }] }),
            _ => return NoHost.answer(method, params),
        };
        Box::pin(async move { Ok(answer.into()) })
    }
}

#[tokio::test]
async fn every_transport_works_in_every_era() {
    for (eras, expected_era) in [("legacy", Era::Legacy), ("modern", Era::Modern), ("dual", Era::Modern)] {
        let era = ["--era", eras];
        let client = HttpClient::new(Duration::from_secs(5)).unwrap();
        let start = |transport| Server::start(&[&era[..], &["--transport", transport]].concat());
        let mut command = stdio::Command::new(SERVER, "/");
        command.args = [era[0], era[1], "--transport", "stdio"].map(Into::into).into();
        check(&format!("{eras} stdio"), &command, expected_era).await;
        let server = start("http");
        let endpoint = http::HttpEndpoint::new(server.url.parse().unwrap(), client.clone());
        check(&format!("{eras} http"), &endpoint, expected_era).await;
        let server = start("sse");
        let endpoint = sse::SseEndpoint::new(server.url.parse().unwrap(), client.clone());
        check(&format!("{eras} sse"), &endpoint, expected_era).await;
        let server = start("ws");
        check(&format!("{eras} ws"), &ws::WsEndpoint::new(server.url.parse().unwrap()), expected_era).await;
    }
}

async fn check(what: &str, opener: &dyn Opener, expected_era: Era) {
    let mut options = Options::new(ClientInfo { name: "test".into(), version: "0".into() });
    options.host = Arc::new(AcceptingHost);
    let connected =
        Session::connect(opener, &options).await.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    let session = &connected.session;
    assert_eq!(session.terms().era, expected_era, "{what}");
    let tools = session.list(List::Tools).await.unwrap().read::<Tool>();
    let tools: Vec<Tool> = tools.into_iter().filter_map(Item::valid).collect();
    assert!(tools.len() > 20, "{what}: {} tools", tools.len());
    // This tool fails by design.
    for tool in tools.iter().filter(|tool| tool.name != "protocol_error_job") {
        let text =
            call(session, tool).await.unwrap_or_else(|failure| panic!("{what} {}: {failure}", tool.name));
        for (name, expected) in [
            ("test_simple_text", "This is a simple text response for testing."),
            ("test_sampling", "LLM response: Paris"),
            ("test_input_required_result_elicitation", "Hello, Ada!"),
            ("test_input_required_result_request_state", "state-ok"),
            ("slow_compute", "Computed the job."),
            ("confirm_delete", "The user chose \"accept\"."),
            ("test_tool_with_task", "Hello, Ada!"),
        ] {
            assert!(tool.name != name || text == expected, "{what} {name}: {text}");
        }
    }
    let progress = Arc::new(Mutex::new(Vec::new()));
    let seen = progress.clone();
    let request = Request::call_tool("test_tool_with_progress", None);
    session
        .request(request.on_progress(move |progress_notification| {
            seen.lock().unwrap().push(progress_notification.progress)
        }))
        .await
        .unwrap();
    assert_eq!(*progress.lock().unwrap(), [0.0, 50.0, 100.0], "{what}");
    let unknown = session.request(Request::read_resource("test://nowhere")).await.unwrap_err();
    assert_eq!(unknown.rpc_code(), Some(-32602), "{what}");
    drop(connected.session);
    connected.task.join().await;
}

async fn call(session: &Session, tool: &Tool) -> Result<String, wharf_mcp::Failure> {
    let schema: Value = tool.input_schema.decode_or_default();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let arguments: Raw = Value::from_iter(required.map(|name| (name, json!("a")))).into();
    let request = Request::call_tool(&tool.name, Some(&arguments));
    let request = request.header_params(tool.header_params(Some(&arguments)));
    let result = session.request(request.task_support(tool.task_support)).await?;
    let content: Value = CallResult::read(&result).raw.decode_or_default();
    Ok(content["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}
