//! Prompt contents.

use crate::{
    fixtures::{Answer, FixtureData, invalid},
    questions::ask,
};
use conformance::questions::Answers;
use serde_json::{Value, json};
use wharf_mcp::serve::Client;

pub(crate) async fn get(data: &FixtureData, params: &Value, client: &Client) -> Answer {
    let name = params["name"].as_str().unwrap_or_default();
    if let Some(prompt) = data.suite.prompt(name, &params["arguments"]) {
        return Ok(prompt);
    }
    let script = data.suite.questions.of(name).filter(|_| name.ends_with("_prompt"));
    let script = script.ok_or_else(|| invalid("the prompt is unknown", json!({ "name": name })))?;
    Ok(match ask(script, name, params, client).await? {
        Answers::Missing(result) => result,
        Answers::Given(given) => {
            let content = json!({ "type": "text", "text": given.to_string() });
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
    })
}
