//! Tool implementations.

use crate::handler::{SdkHandler, complete_result, from_json, missing, to_json};
use conformance::questions::Answers;
use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam,
    },
    service::{RequestContext, RoleServer},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Pause that lets a client see the messages before it.
const NOTIFICATION_PAUSE: Duration = Duration::from_millis(50);

pub(crate) async fn call(
    handler: &SdkHandler,
    name: &str,
    params: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(result) = handler.suite.tool_result(name, &params["arguments"]) {
        return complete_result::<CallToolResult>(result).map(Into::into);
    }
    match name {
        "test_tool_with_logging" | "test_logging_tool" => Ok(log(context).await),
        "test_tool_with_progress" => {
            for done in [0.0, 50.0, 100.0] {
                report(context, done, 100.0).await;
                sleep(NOTIFICATION_PAUSE).await;
            }
            Ok(text("All was done."))
        }
        "test_reconnection" => {
            sleep(NOTIFICATION_PAUSE).await;
            Ok(text("Reconnection test completed successfully."))
        }
        "test_missing_capability" => {
            match to_json(&context.client_capabilities()).get("sampling").is_some_and(|it| !it.is_null()) {
                true => Ok(text("The client can sample.")),
                false => Err(missing(&json!({ "sampling": {} }))),
            }
        }
        "test_trigger_tool_change" => {
            for subscription in handler.subscriptions() {
                let _ = subscription.notify_tool_list_changed().await;
            }
            Ok(text("It was announced."))
        }
        "test_trigger_prompt_change" => {
            for subscription in handler.subscriptions() {
                let _ = subscription.notify_prompt_list_changed().await;
            }
            Ok(text("It was announced."))
        }
        _ => call_with_questions(handler, name, params, context).await,
    }
}

/// Runs a tool that needs client input.
async fn call_with_questions(
    handler: &SdkHandler,
    name: &str,
    params: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if name == "test_streaming_elicitation" {
        report(context, 0.0, 1.0).await;
    }
    match handler.ask(name, params, context).await? {
        Answers::Missing(result) => from_json::<InputRequiredResult>(result).map(Into::into),
        Answers::Given(given) => {
            let script = handler.suite.questions.of(name);
            Ok(text(&script.map(|script| script.summary(&given)).unwrap_or_default()))
        }
    }
}

/// Logs three lines. In the stateless era a client asks for them with each request.
async fn log(context: &RequestContext<RoleServer>) -> CallToolResponse {
    let is_wanted = context.meta.protocol_version().is_none() || context.meta.log_level().is_some();
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if is_wanted {
            let line = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
            let _ = context.peer.notify_logging_message(line).await;
        }
        sleep(NOTIFICATION_PAUSE).await;
    }
    text("Three lines were logged.")
}

/// Reports progress if the client asked for it.
async fn report(context: &RequestContext<RoleServer>, done: f64, total: f64) {
    if let Some(token) = context.meta.get_progress_token() {
        let progress = ProgressNotificationParam::new(token, done).with_total(total);
        let _ = context.peer.notify_progress(progress).await;
    }
}

pub(crate) fn text(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}
