//! Questions that fixtures ask the client, in rounds.
//!
//! A server of the handshake era sends them as requests. A server of the stateless era returns a result that lists the
//! missing answers; its `requestState` is the number of the round, signed with a key of this process.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

/// The questions of all fixtures.
pub struct Questions {
    scripts: HashMap<String, Script>,
}

/// The questions of one fixture, by round.
#[derive(Deserialize)]
pub struct Script {
    /// Requests to the client, by key.
    pub rounds: Vec<Map<String, Value>>,
    /// Text of the result; `{key.member}` stands for a part of the answers.
    answer: Option<String>,
    /// Whether results carry a `requestState` that the client must return.
    #[serde(default)]
    state: bool,
    /// Whether to skip questions that the client does not support, instead of failing.
    #[serde(default)]
    only_offered: bool,
    #[serde(skip)]
    key: RandomState,
}

/// Outcome of asking the client.
pub enum Answers {
    /// All answers, by question key.
    Given(Value),
    /// The result that lists the missing answers.
    Missing(Value),
}

/// Reason for which a call with questions fails.
#[derive(Debug)]
pub enum Refusal {
    /// The client does not offer this capability.
    MissingCapability(String),
    /// The `requestState` was not made by this server.
    ForeignState,
}

impl Questions {
    pub(crate) fn read(text: &str) -> serde_json::Result<Questions> {
        serde_json::from_str(text).map(|scripts| Questions { scripts })
    }

    /// Returns the questions of a tool or prompt.
    pub fn of(&self, name: &str) -> Option<&Script> {
        self.scripts.get(name)
    }
}

impl Script {
    /// Returns the answers that a request of the stateless era carries, or the result that lists the missing ones.
    pub fn check(
        &self,
        name: &str,
        params: &Value,
        offers: impl Fn(&str) -> bool,
    ) -> Result<Answers, Refusal> {
        let round = self.round(name, params)?;
        let questions = self.questions(round, params, &offers)?;
        let given = &params["inputResponses"];
        if !questions.iter().all(|(key, question)| fits(question, &given[key])) {
            return Ok(self.missing(name, round, questions));
        }
        match round + 1 {
            next if next < self.rounds.len() => {
                Ok(self.missing(name, next, self.questions(next, params, &offers)?))
            }
            _ => Ok(Answers::Given(given.clone())),
        }
    }

    /// Returns the questions of a round, with the call's arguments filled in.
    pub fn questions(
        &self,
        round: usize,
        params: &Value,
        offers: impl Fn(&str) -> bool,
    ) -> Result<Map<String, Value>, Refusal> {
        let mut asked = Map::new();
        for (key, question) in &self.rounds[round] {
            let method = question["method"].as_str().unwrap_or_default();
            let capability = method.split('/').next().unwrap_or_default();
            match offers(capability) {
                true => drop(asked.insert(key.clone(), fill_in(question, &params["arguments"]))),
                false if self.only_offered => {}
                false => return Err(Refusal::MissingCapability(capability.to_owned())),
            }
        }
        Ok(asked)
    }

    /// Returns the text of the result for these answers.
    pub fn summary(&self, given: &Value) -> String {
        let Some(template) = &self.answer else { return given.to_string() };
        let mut parts = template.split('{');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (path, rest) = part.split_once('}').unwrap_or((part, ""));
            let value = path.split('.').fold(given, |value, key| &value[key]);
            text += &value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text += rest;
        }
        text
    }

    /// Returns the round that the client's `requestState` belongs to; the first if there is none.
    fn round(&self, name: &str, params: &Value) -> Result<usize, Refusal> {
        match params.get("requestState") {
            Some(state) if self.state => {
                let round = (0..self.rounds.len()).find(|round| *state == self.sign(name, *round));
                round.ok_or(Refusal::ForeignState)
            }
            _ => Ok(0),
        }
    }

    fn missing(&self, name: &str, round: usize, questions: Map<String, Value>) -> Answers {
        let mut result = json!({ "resultType": "input_required", "inputRequests": questions });
        if self.state {
            result["requestState"] = self.sign(name, round).into();
        }
        Answers::Missing(result)
    }

    fn sign(&self, name: &str, round: usize) -> String {
        format!("{round}.{:016x}", self.key.hash_one((name, round)))
    }
}

/// Fills the call's arguments into the question.
fn fill_in(question: &Value, arguments: &Value) -> Value {
    let mut question = question.clone();
    if let Some(message) = arguments.get("message") {
        question["params"]["message"] = message.clone();
    }
    if let Some(prompt) = arguments.get("prompt") {
        question["params"]["messages"][0]["content"]["text"] = prompt.clone();
    }
    question
}

/// Checks that an answer has the right shape for its question.
fn fits(question: &Value, answer: &Value) -> bool {
    match question["method"].as_str() {
        Some("roots/list") => answer["roots"].is_array(),
        Some("sampling/createMessage") => !answer["content"].is_null(),
        _ => match answer["action"].as_str() {
            Some("decline" | "cancel") => true,
            Some("accept") => fits_form(&question["params"]["requestedSchema"], &answer["content"]),
            _ => false,
        },
    }
}

fn fits_form(schema: &Value, content: &Value) -> bool {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fits = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("string") => content[name].is_string(),
        Some("boolean") => content[name].is_boolean(),
        _ => !content[name].is_null(),
    };
    content.is_object() && required.into_iter().all(fits)
}
