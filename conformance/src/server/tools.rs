//! Tool implementations.

use crate::{
    fixtures::{Answer, FixtureData, PICTURE, SOUND, invalid},
    questions::Answers,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;
use wharf_mcp::{
    News, RpcError,
    serve::{Client, LogLevel},
};

/// Pause that lets a client see the messages before it.
const NOTIFICATION_PAUSE: Duration = Duration::from_millis(50);

pub(crate) async fn call(data: &FixtureData, params: &Value, client: &Client) -> Answer {
    let name = params["name"].as_str().unwrap_or_default();
    match name {
        "test_simple_text" | "json_schema_2020_12_tool" | "test_x_mcp_header" => {
            Ok(text("This is a simple text response for testing."))
        }
        "greet" => Ok(text(&format!("Hello, {}!", word(&params["arguments"]["name"])))),
        "test_image_content" => Ok(content(json!([picture()]))),
        "test_audio_content" => {
            Ok(content(json!([{ "type": "audio", "data": SOUND, "mimeType": "audio/wav" }])))
        }
        "test_embedded_resource" => Ok(content(json!([embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )]))),
        "test_multiple_content_types" => Ok(content(json!([
            { "type": "text", "text": "Multiple content types test:" },
            picture(),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]))),
        "test_error_handling" => {
            let mut result = text("This tool intentionally returns an error for testing");
            result["isError"] = true.into();
            Ok(result)
        }
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
            ask(data, name, params, client).await
        }
        _ => ask(data, name, params, client).await,
    }
}

/// Runs a tool that needs client input.
async fn ask(data: &FixtureData, name: &str, params: &Value, client: &Client) -> Answer {
    let script =
        data.questions.of(name).ok_or_else(|| invalid("the tool is unknown", json!({ "name": name })))?;
    match script.answers(name, params, client).await? {
        Answers::Missing(result) => Ok(result),
        Answers::Given(given) => Ok(text(&summary(name, &given))),
    }
}

fn summary(name: &str, given: &Value) -> String {
    let sampled_text = |key: &str| given[key]["content"]["text"].as_str().unwrap_or("nothing").to_owned();
    match name {
        "test_elicitation" => {
            let user = &given["user"];
            format!("User response: action: {}, content: {}", word(&user["action"]), user["content"])
        }
        "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
            let user = &given["user"];
            format!("Elicitation completed: action={}, content={}", word(&user["action"]), user["content"])
        }
        "test_sampling" => format!("LLM response: {}", sampled_text("model")),
        "test_input_required_result_elicitation" => {
            format!("Hello, {}!", word(&given["user_name"]["content"]["name"]))
        }
        "test_input_required_result_sampling" => sampled_text("capital_question"),
        "test_input_required_result_request_state" => "state-ok".into(),
        _ => given.to_string(),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("none")
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

/// Builds the error for a missing client capability.
pub(crate) fn missing(capability: &str) -> RpcError {
    let data = json!({ "requiredCapabilities": { capability: {} } });
    let what = format!("the client does not offer `{capability}`");
    RpcError { data: Some(data.into()), ..RpcError::new(RpcError::MISSING_CAPABILITY, what) }
}

pub(crate) fn picture() -> Value {
    json!({ "type": "image", "data": PICTURE, "mimeType": "image/png" })
}

pub(crate) fn embedded(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}

fn text(text: &str) -> Value {
    content(json!([{ "type": "text", "text": text }]))
}

fn content(blocks: Value) -> Value {
    json!({ "content": blocks })
}
