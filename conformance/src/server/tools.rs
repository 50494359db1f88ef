//! Tool implementations.

use crate::{
    fixtures::{Answer, FixtureData, invalid},
    questions::{ask, missing},
};
use conformance::questions::Answers;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;
use wharf_mcp::{
    News,
    serve::{Client, LogLevel},
};

/// Pause that lets a client see the messages before it.
const NOTIFICATION_PAUSE: Duration = Duration::from_millis(50);

pub(crate) async fn call(data: &FixtureData, params: &Value, client: &Client) -> Answer {
    let name = params["name"].as_str().unwrap_or_default();
    if let Some(result) = data.suite.tool_result(name, &params["arguments"]) {
        return Ok(result);
    }
    match name {
        "test_tool_with_logging" | "test_logging_tool" => Ok(log(client).await),
        "test_tool_with_progress" => Ok(progress(client).await),
        "test_reconnection" => {
            sleep(NOTIFICATION_PAUSE).await;
            Ok(text("Reconnection test completed successfully."))
        }
        "test_missing_capability" if !client.offers("sampling") => Err(missing("sampling")),
        "test_missing_capability" => Ok(text("The client can sample.")),
        "test_trigger_tool_change" => Ok(announce(data, News::ToolsChanged)),
        "test_trigger_prompt_change" => Ok(announce(data, News::PromptsChanged)),
        "test_streaming_elicitation" => {
            client.progress(0.0, Some(1.0), None).await;
            call_with_questions(data, name, params, client).await
        }
        _ => call_with_questions(data, name, params, client).await,
    }
}

/// Runs a tool that needs client input.
async fn call_with_questions(data: &FixtureData, name: &str, params: &Value, client: &Client) -> Answer {
    let script = data.suite.questions.of(name);
    let script = script.ok_or_else(|| invalid("the tool is unknown", json!({ "name": name })))?;
    match ask(script, name, params, client).await? {
        Answers::Missing(result) => Ok(result),
        Answers::Given(given) => Ok(text(&script.summary(&given))),
    }
}

async fn log(client: &Client) -> Value {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        client.log(LogLevel::Info, Some("conformance-server"), json!(line).into()).await;
        sleep(NOTIFICATION_PAUSE).await;
    }
    text("Three lines were logged.")
}

async fn progress(client: &Client) -> Value {
    for done in [0.0, 50.0, 100.0] {
        client.progress(done, Some(100.0), None).await;
        sleep(NOTIFICATION_PAUSE).await;
    }
    text("All was done.")
}

fn announce(data: &FixtureData, news: News) -> Value {
    // A failed send means that there is no subscriber, which is not an error.
    let _ = data.announce.send(news);
    text("It was announced.")
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
