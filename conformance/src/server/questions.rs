//! Client input for fixtures. In the handshake era the server sends requests to the client; in the stateless era it
//! returns a result that lists the missing input.
//!
//! The `requestState` of such a result is the number of the round, signed with a key of this process.

use crate::{fixtures::invalid, tools::missing};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};
use wharf_mcp::{RpcError, serve::Client, session::Era};

/// Requests that a server may send to a client.
const METHODS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

pub(crate) struct Questions {
    scripts: HashMap<String, Script>,
}

/// The questions of one fixture, by round.
#[derive(Deserialize)]
pub(crate) struct Script {
    rounds: Vec<Map<String, Value>>,
    /// Whether results carry a `requestState` that the client must return.
    #[serde(default)]
    state: bool,
    /// Whether to skip questions that the client does not support, instead of failing.
    #[serde(default)]
    only_offered: bool,
    #[serde(skip)]
    key: RandomState,
}

pub(crate) enum Answers {
    /// All answers, by question key.
    Given(Value),
    /// The result that lists the missing answers.
    Missing(Value),
}

impl Questions {
    pub(crate) fn read(text: &str) -> serde_json::Result<Questions> {
        serde_json::from_str(text).map(|scripts| Questions { scripts })
    }

    pub(crate) fn of(&self, name: &str) -> Option<&Script> {
        self.scripts.get(name)
    }
}

impl Script {
    pub(crate) async fn answers(
        &self,
        name: &str,
        params: &Value,
        client: &Client,
    ) -> Result<Answers, RpcError> {
        match client.terms().era {
            Era::Legacy => self.ask(params, client).await,
            Era::Modern => self.check_responses(name, params, client),
        }
    }

    async fn ask(&self, params: &Value, client: &Client) -> Result<Answers, RpcError> {
        let mut given = Map::new();
        for round in 0..self.rounds.len() {
            for (key, question) in self.questions(round, params, client)? {
                let Some(method) = METHODS.into_iter().find(|known| question["method"] == *known) else {
                    continue;
                };
                let answer = client.ask(method, Some(question["params"].clone().into())).await?;
                given.insert(key, answer.decode_or_default());
            }
        }
        Ok(Answers::Given(given.into()))
    }

    fn check_responses(&self, name: &str, params: &Value, client: &Client) -> Result<Answers, RpcError> {
        let round = self.round(name, params)?;
        let questions = self.questions(round, params, client)?;
        let given = &params["inputResponses"];
        if !questions.iter().all(|(key, question)| fits(question, &given[key])) {
            return Ok(self.missing(name, round, questions));
        }
        match round + 1 {
            next if next < self.rounds.len() => {
                Ok(self.missing(name, next, self.questions(next, params, client)?))
            }
            _ => Ok(Answers::Given(given.clone())),
        }
    }

    /// Returns the round that the client's `requestState` belongs to; the first if there is none.
    fn round(&self, name: &str, params: &Value) -> Result<usize, RpcError> {
        match params.get("requestState") {
            Some(state) if self.state => {
                let round = (0..self.rounds.len()).find(|round| *state == self.sign(name, *round));
                round.ok_or_else(|| invalid("the state is not ours", json!({})))
            }
            _ => Ok(0),
        }
    }

    fn questions(
        &self,
        round: usize,
        params: &Value,
        client: &Client,
    ) -> Result<Map<String, Value>, RpcError> {
        let mut asked = Map::new();
        for (key, question) in &self.rounds[round] {
            let method = question["method"].as_str().unwrap_or_default();
            let capability = method.split('/').next().unwrap_or_default();
            match client.offers(capability) {
                true => drop(asked.insert(key.clone(), fill_in(question, &params["arguments"]))),
                false if self.only_offered => {}
                false => return Err(missing(capability)),
            }
        }
        Ok(asked)
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
