//! Prompt contents.

use crate::{
    fixtures::{Answer, FixtureData, invalid},
    questions::Answers,
    tools::{embedded, picture},
};
use serde_json::{Value, json};
use wharf_mcp::serve::Client;

pub(crate) async fn get(data: &FixtureData, params: &Value, client: &Client) -> Answer {
    let name = params["name"].as_str().unwrap_or_default();
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default().to_owned();
    Ok(match name {
        "test_simple_prompt" => prompt_result([text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            prompt_result([text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))])
        }
        "test_prompt_with_embedded_resource" => prompt_result([
            embedded(&argument("resourceUri"), "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ]),
        "test_prompt_with_image" => prompt_result([picture(), text("Please analyze the image above.")]),
        _ => {
            let script = data.questions.of(name).filter(|_| name.ends_with("_prompt"));
            let script = script.ok_or_else(|| invalid("the prompt is unknown", json!({ "name": name })))?;
            match script.answers(name, params, client).await? {
                Answers::Missing(result) => result,
                Answers::Given(given) => prompt_result([text(&given.to_string())]),
            }
        }
    })
}

fn prompt_result<const N: usize>(contents: [Value; N]) -> Value {
    let messages = contents.map(|content| json!({ "role": "user", "content": content }));
    json!({ "messages": Vec::from(messages) })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
