//! Asks the client what a fixture needs to know: by requests in the handshake era, by a result in the stateless era.

use crate::fixtures::invalid;
use conformance::questions::{Answers, Refusal, Script};
use serde_json::{Map, Value, json};
use wharf_mcp::{RpcError, serve::Client, session::Era};

/// Requests that a server may send to a client.
const METHODS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

pub(crate) async fn ask(
    script: &Script,
    name: &str,
    params: &Value,
    client: &Client,
) -> Result<Answers, RpcError> {
    match client.terms().era {
        Era::Legacy => send_requests(script, params, client).await,
        Era::Modern => script.check(name, params, |capability| client.offers(capability)).map_err(refuse),
    }
}

async fn send_requests(script: &Script, params: &Value, client: &Client) -> Result<Answers, RpcError> {
    let mut given = Map::new();
    for round in 0..script.rounds.len() {
        let questions = script.questions(round, params, |it| client.offers(it)).map_err(refuse)?;
        for (key, question) in questions {
            let Some(method) = METHODS.into_iter().find(|known| question["method"] == *known) else {
                continue;
            };
            let answer = client.ask(method, Some(question["params"].clone().into())).await?;
            given.insert(key, answer.decode_or_default());
        }
    }
    Ok(Answers::Given(given.into()))
}

/// Builds the error for a missing client capability.
pub(crate) fn missing(capability: &str) -> RpcError {
    let data = json!({ "requiredCapabilities": { capability: {} } });
    let what = format!("the client does not offer `{capability}`");
    RpcError { data: Some(data.into()), ..RpcError::new(RpcError::MISSING_CAPABILITY, what) }
}

fn refuse(refusal: Refusal) -> RpcError {
    match refusal {
        Refusal::MissingCapability(capability) => missing(&capability),
        Refusal::ForeignState => invalid("the state is not ours", json!({})),
    }
}
