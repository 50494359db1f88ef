//! Questions to the scripted model over real HTTP: rows of behaviours times dialects, as data.

mod breaker;
mod rows;
mod wire_requests;

use super::script::wire;
use crate::{
    answer::{Answer, AnswerEvent, CallIds},
    client::{ModelClient, ModelEvent},
    dialect::Dialect,
    message::{Content, Message},
    model::{AnswerLimits, trouble::Trouble},
    tool_list::ToolList,
    view::{ToolChoice, View},
};
use scripted_model::{Reply, ScriptedModel};
use std::{sync::Arc, time::Duration};
use url::Url;
use wharf_config::{MaskedString, Model, ModelApi, ModelEndpoint, Provider};
use wharf_runtime::Redactor;

/// Key that must not be in any error.
const KEY: &str = "sk-canary-7f3e9a";

/// A configured model at an address.
pub(crate) fn model_at(dialect: Dialect, url: &str) -> Model {
    let provider = match dialect {
        Dialect::Responses | Dialect::Chat => Provider::OpenAi,
        Dialect::Anthropic => Provider::Anthropic,
        Dialect::Gemini => Provider::Gemini,
        Dialect::Ollama => Provider::Ollama,
    };
    Model {
        provider,
        name: MaskedString::plain("m"),
        api: (dialect == Dialect::Responses).then_some(ModelApi::Responses),
        reasoning: None,
        temperature: None,
        max_tokens: None,
        top_p: None,
        context_window: None,
        images: None,
        endpoint: Some(ModelEndpoint {
            url: Url::parse(url).expect("a URL"),
            shown: MaskedString::plain(url),
        }),
        api_key: Some(MaskedString::plain(KEY)),
        api_version: None,
        timeout: Duration::from_secs(20),
        idle_timeout: Duration::from_secs(20),
        headers: Vec::new(),
        extra: None,
    }
}

fn client(model: &Model) -> ModelClient {
    let key = model.api_key.as_ref().map(|it| it.expose());
    let plan = wharf_config::Plan { model: Some(model.clone()), ..empty_plan() };
    let client = ModelClient::new(model, key, None, Arc::new(Redactor::of(&plan))).expect("a client");
    client.with_first_delay(Duration::from_millis(1)).with_limits(small_limits())
}

fn empty_plan() -> wharf_config::Plan {
    wharf_config::load("tools: []", &wharf_config::Env::bare()).0.expect("an empty plan")
}

/// Limits that a test can exceed in milliseconds.
fn small_limits() -> AnswerLimits {
    AnswerLimits { event_bytes: 100_000, stream_bytes: 1_000_000, ..AnswerLimits::default() }
}

/// Text that a client was shown, after resets, and the answer.
struct Asked {
    shown: String,
    retries: Vec<Trouble>,
    answer: Result<Answer, Trouble>,
}

async fn ask(client: &ModelClient) -> Asked {
    let messages = [Message::User(vec![Content::Text("Hi".into())])];
    let view = View {
        conversation_id: "c",
        instructions: "",
        tools: &ToolList::default(),
        tool_choice: ToolChoice::Auto,
        messages: &messages,
    };
    let (mut shown, mut retries) = (String::new(), Vec::new());
    let mut on_event = |event: ModelEvent| match event {
        ModelEvent::Delta(AnswerEvent::Text(text)) => shown.push_str(&text),
        ModelEvent::Delta(AnswerEvent::Reasoning(_)) => {}
        ModelEvent::Reset => shown.clear(),
        ModelEvent::Retry { trouble, .. } => retries.push(trouble),
    };
    let answer = client.ask(&view, &mut CallIds::new("r"), &mut on_event).await;
    Asked { shown, retries, answer }
}

/// Returns the outcome in one line.
fn outcome(asked: &Asked) -> String {
    match &asked.answer {
        Ok(answer) => {
            let calls: Vec<&str> = answer.calls().map(|it| it.name.as_str()).collect();
            format!("{:?} {calls:?} {:?}", answer.text(), answer.finish)
        }
        Err(Trouble::Provider(error)) => format!("{:?}", error.kind),
        Err(Trouble::Garbled(_)) => "Garbled".into(),
        Err(Trouble::NotEvents(_)) => "NotEvents".into(),
        Err(Trouble::Connect(_)) => "Connect".into(),
        Err(trouble) => format!("{trouble:?}"),
    }
}

/// Asks a model that sends these replies, and compares the outcome and the number of requests.
async fn check(dialect: Dialect, row: &str, replies: Vec<Reply>, expected: &str, requests: usize) {
    let server = ScriptedModel::start(replies);
    let client = client(&model_at(dialect, &server.url()));
    let asked = ask(&client).await;
    assert_eq!(outcome(&asked), expected, "{row} in {dialect:?}");
    assert_eq!(server.requests().len(), requests, "{row} in {dialect:?}");
    match &asked.answer {
        Ok(answer) => assert_eq!(asked.shown, answer.text(), "{row} in {dialect:?}"),
        Err(trouble) => {
            assert_eq!(asked.shown, "", "text of a failed answer is taken back: {row} in {dialect:?}");
            assert!(!trouble.to_string().contains(KEY), "{row} in {dialect:?}: {trouble}");
        }
    }
}
