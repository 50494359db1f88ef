//! Runs requests that take several rounds because the server needs more input before it responds.
//!
//! In the 2026-07-28 era a server cannot send requests to its client. Instead it returns an `input_required` result;
//! the client sends the request again under a new id, with the answers and the server's opaque state.

use super::{
    Input, List, News, OnProgress, Request, Session, TaskMode,
    task_client::{TaskClient, declaring_tasks},
};
use crate::{
    Failure, Host, Raw, RpcError,
    json::{Members, splice},
    model::{Read, Tool},
    panic_guard, tasks,
};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::{self, Instant};

/// One request across all its rounds.
struct Rounds<'a> {
    session: &'a Session,
    deadline: Instant,
    request: Request,
    /// Progress callback that all rounds share.
    on_progress: Option<Arc<Mutex<OnProgress>>>,
}

/// Sends `request` until the result is complete, up to the maximum number of rounds.
pub(super) async fn run_rounds(session: &Session, mut request: Request) -> Result<Raw, Failure> {
    let deadline = session.deadline(&request);
    let first = request.params.take().unwrap_or_else(Raw::empty_object);
    let first = request.input.take().map_or(first.clone(), |input| with_input(&first, &input));
    let on_progress = request.on_progress.take().map(|on_progress| Arc::new(Mutex::new(on_progress)));
    let mut rounds = Rounds { session, deadline, request, on_progress };
    let mut params = first.clone();
    for _ in 0..=session.settings.max_rounds {
        let result = rounds.exchange(params).await?;
        let Some(kind) = result_type(&result) else { return Ok(result) };
        match kind.as_str() {
            "complete" => return Ok(result),
            "input_required" if rounds.request.single_round => return Ok(result),
            "input_required" => {
                let host = rounds.request.host.as_ref().unwrap_or(&session.settings.host).clone();
                let answer = answers(&*host, &result);
                let answers = time::timeout_at(deadline, answer).await.map_err(|_| timed_out())??;
                params = next_round(&first, answers.as_ref(), &result);
            }
            "task" if rounds.returns_tasks() => return Ok(result),
            "task" => return rounds.wait_for_task(&result).await,
            unknown => {
                return Err(Failure::protocol(format!("the result has the unknown type `{unknown}`")));
            }
        }
    }
    let rounds = session.settings.max_rounds;
    Err(Failure::protocol(format!("the server asked for more input {rounds} times, which is the limit")))
}

impl Rounds<'_> {
    /// Sends one round. A header mismatch means that the tool changed after we read its schema: read the schema again
    /// and, if it needs different headers now, resend the round once.
    async fn exchange(&mut self, params: Raw) -> Result<Raw, Failure> {
        let failure = match self.session.exchange(self.round(params.clone())).await {
            Err(failure) if failure.rpc_code() == Some(RpcError::HEADER_MISMATCH) => failure,
            Err(failure) if failure.rpc.as_ref().is_some_and(|it| self.can_declare_tasks(it)) => {
                self.request.meta = Some(declaring_tasks(self.session, self.request.meta.take()));
                return self.session.exchange(self.round(params)).await;
            }
            outcome => return outcome,
        };
        if !self.read_tool_again(&params).await {
            return Err(failure);
        }
        self.session.exchange(self.round(params)).await
    }

    /// Returns whether the server needs tasks for this request and we may declare them, because we wait for the
    /// result ourselves.
    fn can_declare_tasks(&self, error: &RpcError) -> bool {
        self.request.tasks == TaskMode::Wait && tasks::is_required(error)
    }

    /// Only a tool call may be answered with a task that the caller has to expect.
    fn returns_tasks(&self) -> bool {
        self.request.tasks == TaskMode::Return && self.request.method == "tools/call"
    }

    async fn wait_for_task(self, created: &Raw) -> Result<Raw, Failure> {
        let Rounds { session, deadline, request, on_progress } = self;
        TaskClient::of(session, created, deadline, request, on_progress)?.wait(created).await
    }

    /// Builds the request of one round.
    fn round(&self, params: Raw) -> Request {
        let Request { method, idle_timeout, name, header_params, meta, logs, .. } = &self.request;
        Request {
            params: Some(params),
            deadline: Some(self.deadline),
            idle_timeout: *idle_timeout,
            on_progress: self.on_progress.as_ref().map(share_callback),
            name: name.clone(),
            header_params: header_params.clone(),
            meta: meta.clone(),
            logs: logs.clone(),
            ..Request::new(method.clone())
        }
    }

    /// Reads the tool's schema again; returns whether it needs different headers.
    async fn read_tool_again(&mut self, params: &Raw) -> bool {
        let Some(name) = self.request.name.as_deref().filter(|_| self.request.method == "tools/call") else {
            return false;
        };
        self.session.sender.publish(News::ToolsChanged).await;
        // Boxed, because listing is itself a request and the future would be recursive.
        let listing = time::timeout_at(self.deadline, Box::pin(self.session.list(List::Tools))).await;
        let Ok(Ok(listing)) = listing else { return false };
        let mut tools = listing.items.iter().filter_map(|raw| Tool::read(raw).ok());
        let Some(tool) = tools.find(|tool| tool.name == name) else { return false };
        let wanted = tool.header_params(params.member("arguments").as_ref());
        let differs = wanted != self.request.header_params;
        self.request.header_params = wanted;
        differs
    }
}

/// Wraps the shared progress callback for one round; rounds never overlap.
pub(super) fn share_callback(on_progress: &Arc<Mutex<OnProgress>>) -> OnProgress {
    let on_progress = on_progress.clone();
    Box::new(move |at| on_progress.lock().unwrap_or_else(PoisonError::into_inner)(at))
}

/// Returns the `resultType`, if present. The byte search avoids parsing large results a second time.
fn result_type(result: &Raw) -> Option<String> {
    memchr::memmem::find(result.as_bytes(), b"\"resultType\"")?;
    result.member("resultType")?.decode().ok()
}

/// Asks the host to answer every input request of an `input_required` result, in order.
async fn answers(host: &dyn Host, result: &Raw) -> Result<Option<Raw>, Failure> {
    let Some(questions) = result.member("inputRequests") else { return Ok(None) };
    answer_questions(host, questions.members()).await.map(Some)
}

/// Asks the host to answer input requests, in order.
pub(super) async fn answer_questions(host: &dyn Host, questions: Members<'_>) -> Result<Raw, Failure> {
    let mut answers = Vec::new();
    for (key, question) in questions.0 {
        let question = Raw::parse(question.get().to_owned()).map_err(|_| malformed_input_request())?;
        let method: String =
            question.member("method").and_then(|it| it.decode().ok()).ok_or_else(malformed_input_request)?;
        let answer = async { host.answer(&method, question.member("params")).await };
        let answer = panic_guard::catch_panic(answer).await;
        // Reported as an RPC error: the host declined or failed, not the server.
        let answer = answer.map_err(|RpcError { code, message, data }| {
            Failure::rpc(RpcError { code, message: format!("the server needs `{method}`: {message}"), data })
        })?;
        answers.push((key.into_owned(), answer));
    }
    Ok(splice::object(answers.iter().map(|(key, answer)| (key.as_str(), answer.as_bytes()))))
}

/// Adds the input responses and state of an earlier round to `params`.
fn with_input(params: &Raw, Input { responses, state }: &Input) -> Raw {
    let given = [("inputResponses", responses), ("requestState", state)];
    given.into_iter().fold(params.clone(), |params, (name, value)| match value {
        Some(value) => splice::replace(&params, name, value.as_bytes()),
        None => params,
    })
}

/// Builds the params of the next round from those of the first.
fn next_round(first: &Raw, answers: Option<&Raw>, result: &Raw) -> Raw {
    let mut params = first.clone();
    if let Some(answers) = answers {
        params = splice::replace(&params, "inputResponses", answers.as_bytes());
    }
    // The state is opaque: send it back unchanged, and omit it if there was none.
    if let Some(state) = result.member("requestState") {
        params = splice::replace(&params, "requestState", state.as_bytes());
    }
    params
}

fn timed_out() -> Failure {
    Failure::new(
        crate::Class::Timeout,
        crate::Phase::Request,
        crate::Sent::Yes,
        "timed out while waiting for input",
    )
}

fn malformed_input_request() -> Failure {
    Failure::protocol("the server sent a malformed input request")
}
