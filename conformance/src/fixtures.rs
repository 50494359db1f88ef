//! Lists and fixed answers, as they are in the folder `fixtures`.

use crate::questions::Questions;
use serde_json::{Value, json};

/// Everything that a server offers to the suite.
pub struct SuiteFixtures {
    /// Tools, as `tools/list` returns them.
    pub tools: Vec<Value>,
    /// Prompts, as `prompts/list` returns them.
    pub prompts: Vec<Value>,
    /// Resources and resource templates, each as its list returns them.
    pub resources: Value,
    /// Questions that tools and prompts ask.
    pub questions: Questions,
    answers: Value,
}

impl SuiteFixtures {
    /// Reads the folder `fixtures` as it was when this was compiled.
    pub fn load() -> serde_json::Result<SuiteFixtures> {
        Ok(SuiteFixtures {
            tools: serde_json::from_str(include_str!("../fixtures/tools.json"))?,
            prompts: serde_json::from_str(include_str!("../fixtures/prompts.json"))?,
            resources: serde_json::from_str(include_str!("../fixtures/resources.json"))?,
            questions: Questions::read(include_str!("../fixtures/questions.json"))?,
            answers: serde_json::from_str(include_str!("../fixtures/answers.json"))?,
        })
    }

    /// Returns the result of a tool whose result depends on its arguments only.
    pub fn tool_result(&self, name: &str, arguments: &Value) -> Option<Value> {
        self.answers["tools"].get(name).map(|answer| fill(answer, arguments))
    }

    /// Returns a prompt that depends on its arguments only.
    pub fn prompt(&self, name: &str, arguments: &Value) -> Option<Value> {
        self.answers["prompts"].get(name).map(|answer| fill(answer, arguments))
    }

    /// Returns the contents of a resource, listed or of the template.
    pub fn resource(&self, uri: &str) -> Option<Value> {
        if let Some(contents) = self.answers["resources"].get(uri) {
            let mut contents = contents.clone();
            contents["uri"] = uri.into();
            return Some(json!({ "contents": [contents] }));
        }
        let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
        let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
        Some(
            json!({ "contents": [{ "uri": uri, "mimeType": "application/json", "text": data.to_string() }] }),
        )
    }
}

/// Returns the known words that begin with this prefix.
pub fn complete(prefix: &str) -> Vec<&'static str> {
    ["paris", "park", "party"].into_iter().filter(|word| word.starts_with(prefix)).collect()
}

/// Replaces `{name}` by the argument `name` in every string.
fn fill(value: &Value, arguments: &Value) -> Value {
    match value {
        Value::String(text) => {
            let arguments = arguments.as_object().into_iter().flatten();
            let filled = arguments.fold(text.clone(), |text, (name, argument)| {
                text.replace(&format!("{{{name}}}"), argument.as_str().unwrap_or("none"))
            });
            filled.into()
        }
        Value::Array(values) => values.iter().map(|value| fill(value, arguments)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), fill(value, arguments))).collect()
        }
        other => other.clone(),
    }
}
