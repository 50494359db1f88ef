//! Forwards requests that servers send during a call (elicitation, sampling, roots) to the client that made the call,
//! and to no other.
//!
//! The runtime finds the call by the stream that the request arrives on, or because only one request is in flight. A
//! legacy-era client receives the request at once. For a modern-era client the call is suspended until the client
//! resumes it with the answer.

use super::elicitations::Elicitations;
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time,
};
use wharf_mcp::{
    Raw, RpcError,
    serve::{Client, ClientRef},
    session::Era,
};
use wharf_runtime::upstream::{Answerable, Consent, ServerRequest};

/// Maximum number of queued questions of one call.
const MAX_QUEUED_QUESTIONS: usize = 8;

/// Timeout for a client to answer for its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);

/// After a first question, how long to wait for each further one that goes to the client in the same result.
const QUESTION_BATCH_WINDOW: Duration = Duration::from_millis(20);

/// Maximum number of questions that go to the client in one result.
const MAX_QUESTIONS_PER_RESULT: usize = 16;

/// A future that resolves to the answer.
type Answering = Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;

/// Rejects every question that belongs to no call. It still declares all capabilities to servers, because some
/// clients have them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientQuestions;

/// Answers for the roots of one client, outside any call.
#[derive(Clone, Debug)]
pub(super) struct ClientRoots(pub(super) ClientRef);

/// A server's question that is not answered yet.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) method: String,
    pub(super) params: Raw,
    reply: oneshot::Sender<Result<Raw, RpcError>>,
}

/// Channel from a server to the one client that the call is made for.
#[derive(Clone, Debug)]
pub(super) struct QuestionChannel {
    client: Client,
    route: QuestionRoute,
    elicitations: Arc<Elicitations>,
}

#[derive(Clone, Debug)]
enum QuestionRoute {
    /// Sends the request to the client while the call lasts.
    Ask(watch::Receiver<()>),
    /// Queues the question until the client resumes the call.
    Wait(mpsc::Sender<Question>),
}

/// The call's end of a channel. Dropping it rejects open and further questions.
#[derive(Debug)]
pub(super) enum QuestionReceiver {
    Forwarded(#[expect(dead_code, reason = "dropping it closes the channel")] watch::Sender<()>),
    Queued(mpsc::Receiver<Question>),
}

impl Question {
    /// Creates a question and the receiver of its answer.
    pub(super) fn new(
        method: impl Into<String>,
        params: Raw,
    ) -> (Question, oneshot::Receiver<Result<Raw, RpcError>>) {
        let (reply, answer) = oneshot::channel();
        (Question { method: method.into(), params, reply }, answer)
    }

    pub(super) fn answer(self, answer: Result<Raw, RpcError>) {
        // Sending fails only if the server is gone.
        let _ = self.reply.send(answer);
    }
}

/// Checks whether the client declares at least one capability for questions.
pub(super) fn can_answer(client: &Client) -> bool {
    let offered = client.terms().capabilities.pick(["elicitation", "sampling", "roots"]);
    offered.iter().any(Option::is_some)
}

/// Opens a channel to a client that declares at least one capability for questions.
pub(super) fn open(
    client: &Client,
    elicitations: &Arc<Elicitations>,
) -> Option<(Arc<dyn Consent>, QuestionReceiver)> {
    if !can_answer(client) {
        return None;
    }
    let (route, question_receiver) = match client.terms().era {
        Era::Legacy => {
            let (lasts, over) = watch::channel(());
            (QuestionRoute::Ask(over), QuestionReceiver::Forwarded(lasts))
        }
        Era::Modern => {
            let (wait, waiting) = mpsc::channel(MAX_QUEUED_QUESTIONS);
            (QuestionRoute::Wait(wait), QuestionReceiver::Queued(waiting))
        }
    };
    let (client, elicitations) = (client.clone(), elicitations.clone());
    Some((Arc::new(QuestionChannel { client, route, elicitations }), question_receiver))
}

impl QuestionReceiver {
    /// Returns the next question that has to suspend the call. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Question> {
        match self {
            QuestionReceiver::Forwarded(_) => None,
            QuestionReceiver::Queued(waiting) => waiting.recv().await,
        }
    }
}

impl Consent for QuestionChannel {
    fn answers(&self) -> Answerable {
        let [forms, links, samples, roots] =
            [FORM, LINK, SAMPLE, ROOTS].map(|offer| offers(&self.client, offer));
        Answerable { forms, links, samples, roots }
    }

    fn answer(&self, asked: ServerRequest) -> Answering {
        let method = match check_answerable(&self.client, &asked) {
            Ok(method) => method,
            Err(refused) => return Box::pin(async { Err(refused) }),
        };
        self.elicitations.note(&asked.source, &asked.params, &self.client);
        match self.route.clone() {
            QuestionRoute::Ask(mut over) => {
                let client = self.client.clone();
                Box::pin(async move {
                    tokio::select! {
                        answer = client.ask(method, Some(asked.params)) => answer,
                        _ = over.changed() => Err(no_client(method)),
                    }
                })
            }
            QuestionRoute::Wait(wait) => Box::pin(async move {
                let (question, answer) = Question::new(asked.method, asked.params);
                wait.send(question).await.map_err(|_| no_client(method))?;
                answer.await.map_err(|_| no_client(method))?
            }),
        }
    }
}

impl Consent for ClientQuestions {
    fn answers(&self) -> Answerable {
        Answerable { forms: true, links: true, samples: true, roots: true }
    }

    fn answer(&self, asked: ServerRequest) -> Answering {
        Box::pin(async move { Err(no_client(&asked.method)) })
    }
}

impl Consent for ClientRoots {
    fn answers(&self) -> Answerable {
        Answerable { roots: true, ..Answerable::default() }
    }

    fn answer(&self, asked: ServerRequest) -> Answering {
        let client = self.0.clone();
        Box::pin(async move {
            let answer = time::timeout(ROOTS_TIMEOUT, client.ask("roots/list", Some(asked.params))).await;
            answer.unwrap_or_else(|_| Err(no_client("roots/list")))
        })
    }
}

/// A client capability, and the part of it that a question needs.
type Offer = (&'static str, Option<&'static str>);

const FORM: Offer = ("elicitation", Some("form"));
const LINK: Offer = ("elicitation", Some("url"));
const SAMPLE: Offer = ("sampling", None);
const SAMPLE_WITH_TOOLS: Offer = ("sampling", Some("tools"));
const ROOTS: Offer = ("roots", None);

/// Returns the method to send to this client, or an error if the client does not declare the capability.
fn check_answerable(client: &Client, asked: &ServerRequest) -> Result<&'static str, RpcError> {
    let has = |name: &str| asked.params.member(name).is_some();
    let is_link = || asked.params.member("mode").is_some_and(|it| it.as_bytes() == b"\"url\"");
    let (method, offer) = match asked.method.as_str() {
        "elicitation/create" => ("elicitation/create", if is_link() { LINK } else { FORM }),
        "sampling/createMessage" if has("tools") || has("toolChoice") => {
            ("sampling/createMessage", SAMPLE_WITH_TOOLS)
        }
        "sampling/createMessage" => ("sampling/createMessage", SAMPLE),
        "roots/list" => ("roots/list", ROOTS),
        unknown => return Err(RpcError::method_not_found(unknown)),
    };
    let (capability, part) = offer;
    match part {
        _ if !client.offers(capability) => Err(unsupported(method)),
        Some(part) if !offers(client, offer) => {
            let what = format!("the calling client does not support `{part}` of `{capability}`");
            Err(RpcError::new(RpcError::INVALID_PARAMS, what))
        }
        _ => Ok(method),
    }
}

fn offers(client: &Client, (capability, part): Offer) -> bool {
    let Some(offered) = client.terms().capabilities.member(capability) else { return false };
    let has = |part: &str| offered.member(part).is_some();
    match part {
        None => true,
        // A client that names no mode supports forms: older protocol versions had nothing else.
        Some("form") => has("form") || !has("url"),
        Some(part) => has(part),
    }
}

/// The error that the protocol prescribes for a client without the capability.
fn unsupported(method: &str) -> RpcError {
    RpcError::new(RpcError::METHOD_NOT_FOUND, format!("the calling client does not support `{method}`"))
}

fn no_client(method: &str) -> RpcError {
    let what = format!("no client can answer `{method}`: no call of a client that supports it is in flight");
    RpcError::new(RpcError::METHOD_NOT_FOUND, what)
}

/// Returns the next question, or `None` if the client cannot be asked.
pub(super) async fn next_question(question_receiver: &mut Option<QuestionReceiver>) -> Option<Question> {
    question_receiver.as_mut()?.next().await
}

/// Collects the first question and those that follow within [`QUESTION_BATCH_WINDOW`].
pub(super) async fn collect_questions(
    first: Question,
    question_receiver: &mut Option<QuestionReceiver>,
) -> Vec<Question> {
    let mut questions = vec![first];
    while questions.len() < MAX_QUESTIONS_PER_RESULT
        && let Ok(Some(question)) =
            time::timeout(QUESTION_BATCH_WINDOW, next_question(question_receiver)).await
    {
        questions.push(question);
    }
    questions
}
