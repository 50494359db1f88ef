//! Questions of servers during the calls of a run: forms and links for a person, and prompts for the model.
//!
//! A server's request belongs to the call that it came with. It travels over a channel to the driver of the run, which
//! reports it, asks the person or the model, and sends the answer back.

mod sampling;

pub(crate) use sampling::{SamplingRequest, sampling_result};

use serde_json::{Value, json};
use std::{future::Future, pin::Pin, time::SystemTime};
use tokio::sync::{mpsc, oneshot};
use url::Url;
use wharf_runtime::{
    Raw, RpcError,
    argument_schema::{Check, Schema},
    time_format::rfc3339,
    upstream::{Answerable, Consent, ServerRequest},
};

/// Maximum number of questions that wait for the driver. Further servers wait.
const MAX_QUEUED_QUESTIONS: usize = 16;

/// Answer of a person to a server, once it is known.
pub type InputFuture<'a> = Pin<Box<dyn Future<Output = InputAnswer> + Send + 'a>>;

/// Asks people what servers want to know.
pub trait InputAnswerer: Send + Sync {
    /// Asks one question. Dropping the future withdraws it.
    fn answer(&self, question: InputQuestion) -> InputFuture<'_>;
}

/// Question of a server to a person.
#[derive(Clone, Debug, PartialEq)]
pub struct InputQuestion {
    /// Id of the question.
    pub input_id: String,
    /// Call during which the server asks.
    pub call_id: String,
    /// Server that asks.
    pub source: String,
    /// Kind of the question.
    pub kind: InputKind,
    /// Words of the server.
    pub message: String,
    /// Time after which the question is declined.
    pub expires_at: Option<SystemTime>,
}

/// Kind of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum InputKind {
    /// A form to fill in. Contains its JSON Schema.
    Form(Value),
    /// A link to open. It is never opened by itself.
    Link {
        /// The link.
        url: String,
        /// Its host.
        host: String,
    },
    /// A prompt for the model. Contains the parameters of the request.
    Sampling(Value),
}

/// Answer of a person.
#[derive(Clone, Debug, PartialEq)]
pub enum InputAnswer {
    /// The person agrees. Contains the values of a form.
    Accept(Value),
    /// The person refuses.
    Decline,
    /// The person does not want to answer.
    Cancel,
}

impl InputQuestion {
    /// Reads an elicitation. Returns `None` if it has no form and no link.
    fn of_elicitation(call_id: &str, source: &str, params: &Value) -> Option<InputQuestion> {
        let kind = match (params["mode"].as_str(), params["url"].as_str()) {
            (Some("url"), Some(url)) => {
                let host = Url::parse(url).ok()?.host_str()?.to_owned();
                InputKind::Link { url: url.to_owned(), host }
            }
            (Some("url"), None) => return None,
            _ => InputKind::Form(params["requestedSchema"].clone()),
        };
        Some(InputQuestion {
            input_id: String::new(),
            call_id: call_id.to_owned(),
            source: source.to_owned(),
            kind,
            message: params["message"].as_str().unwrap_or_default().to_owned(),
            expires_at: None,
        })
    }

    /// Checks the values of a form. The error lists the paths that do not fit.
    pub fn check_content(&self, content: &Value) -> Result<(), String> {
        match &self.kind {
            InputKind::Form(form) => check_form(form, content),
            InputKind::Link { .. } | InputKind::Sampling(_) => Ok(()),
        }
    }

    /// Returns the data of the event.
    pub fn to_json(&self) -> Value {
        let mut data = json!({ "approval_id": self.input_id, "call_id": self.call_id, "source": self.source,
            "message": self.message, "expires_at": self.expires_at.map(rfc3339) });
        match &self.kind {
            InputKind::Form(form) => {
                data["kind"] = "form".into();
                data["requested_schema"] = form.clone();
            }
            InputKind::Link { url, host } => {
                data["kind"] = "link".into();
                data["url"] = url.as_str().into();
                data["host"] = host.as_str().into();
            }
            InputKind::Sampling(prompt) => {
                data["kind"] = "sampling".into();
                data["prompt"] = prompt.clone();
            }
        }
        data
    }
}

/// Checks values against the JSON Schema of a form. The error lists the paths that do not fit.
pub fn check_form(form: &Value, content: &Value) -> Result<(), String> {
    let schema = Schema::compile(&form.clone().into())?;
    match schema.check(&content.clone().into()) {
        Check::Invalid(errors) => {
            let lines = errors.iter().map(|it| {
                let path = it.path.strip_prefix("arguments").unwrap_or(&it.path);
                format!("content{path} {}", it.message)
            });
            Err(lines.collect::<Vec<_>>().join("; "))
        }
        _ => Ok(()),
    }
}

impl InputAnswer {
    /// Reads `{"action", "content"}`. Returns `None` if the action is unknown.
    pub fn from_json(answer: &Value) -> Option<InputAnswer> {
        match answer["action"].as_str()? {
            "accept" => {
                let content = answer.get("content").filter(|it| !it.is_null());
                Some(InputAnswer::Accept(content.cloned().unwrap_or_else(|| json!({}))))
            }
            "decline" => Some(InputAnswer::Decline),
            "cancel" => Some(InputAnswer::Cancel),
            _ => None,
        }
    }

    /// Returns the result of an elicitation.
    pub(crate) fn to_result(&self, is_form: bool) -> Raw {
        match self {
            InputAnswer::Accept(content) if is_form => json!({ "action": "accept", "content": content }),
            InputAnswer::Accept(_) => json!({ "action": "accept" }),
            InputAnswer::Decline => json!({ "action": "decline" }),
            InputAnswer::Cancel => json!({ "action": "cancel" }),
        }
        .into()
    }
}

/// A server's question on its way to the driver.
#[derive(Debug)]
pub(crate) struct ServerQuestion {
    pub(crate) call_id: String,
    pub(crate) source: String,
    pub(crate) body: QuestionBody,
    pub(crate) reply: QuestionReply,
}

/// Sends the answer to the server.
pub(crate) type QuestionReply = oneshot::Sender<Result<Raw, RpcError>>;

/// Content of a server's question.
#[derive(Debug)]
pub(crate) enum QuestionBody {
    Input(InputQuestion),
    Sampling(SamplingRequest),
}

/// The driver's end of the channel for questions, and what it can answer.
#[derive(Debug)]
pub(crate) struct QuestionInbox {
    sender: mpsc::Sender<ServerQuestion>,
    receiver: mpsc::Receiver<ServerQuestion>,
    answers: Answerable,
}

impl QuestionInbox {
    pub(crate) fn new(answers: Answerable) -> QuestionInbox {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_QUESTIONS);
        QuestionInbox { sender, receiver, answers }
    }

    /// Returns the consent for one call.
    pub(crate) fn consent(&self, call_id: &str) -> CallConsent {
        CallConsent { call_id: call_id.to_owned(), answers: self.answers, questions: self.sender.clone() }
    }

    /// Waits for the next question. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<ServerQuestion> {
        self.receiver.recv().await
    }
}

/// Forwards the questions of a server during one call to the driver of the run.
pub(crate) struct CallConsent {
    call_id: String,
    answers: Answerable,
    questions: mpsc::Sender<ServerQuestion>,
}

impl Consent for CallConsent {
    fn answers(&self) -> Answerable {
        self.answers
    }

    fn answer(&self, request: ServerRequest) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>> {
        let body = match self.read(&request) {
            Ok(body) => body,
            Err(error) => return Box::pin(async { Err(error) }),
        };
        let (reply, answer) = oneshot::channel();
        let question = ServerQuestion { call_id: self.call_id.clone(), source: request.source, body, reply };
        let questions = self.questions.clone();
        Box::pin(async move {
            let over = || RpcError::new(RpcError::INTERNAL, "the run is over");
            questions.send(question).await.map_err(|_| over())?;
            answer.await.map_err(|_| over())?
        })
    }
}

impl CallConsent {
    fn read(&self, request: &ServerRequest) -> Result<QuestionBody, RpcError> {
        let unknown = || RpcError::method_not_found(&request.method);
        let params: Value = request.params.decode_or_default();
        match request.method.as_str() {
            "elicitation/create" if self.answers.forms => {
                let question = InputQuestion::of_elicitation(&self.call_id, &request.source, &params);
                let invalid =
                    || RpcError::new(RpcError::INVALID_PARAMS, "an elicitation needs a form or a link");
                question.map(QuestionBody::Input).ok_or_else(invalid)
            }
            "sampling/createMessage" if self.answers.samples => {
                SamplingRequest::read(&params).map(QuestionBody::Sampling)
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elicitations_are_forms_or_links_with_a_host() {
        let read = |params: Value| InputQuestion::of_elicitation("c1", "s", &params);
        let form =
            json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
        let question = read(json!({ "message": "How many?", "requestedSchema": form })).expect("a form");
        assert!(question.check_content(&json!({ "n": 3 })).is_ok());
        let error = question.check_content(&json!({ "n": "three" })).expect_err("a wrong type");
        assert!(error.starts_with("content"), "{error}");
        assert!(question.check_content(&json!({})).is_err());
        let link = json!({ "mode": "url", "message": "Sign in", "url": "https://id.example:8443/a?b" });
        let InputKind::Link { host, .. } = read(link).expect("a link").kind else { panic!("no link") };
        assert_eq!(host, "id.example");
        assert_eq!(read(json!({ "mode": "url", "url": "no link" })), None);
    }
}
