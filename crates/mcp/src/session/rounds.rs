//! Requests that take several rounds: the server wants more input before it answers.
//!
//! In the 2026-07-28 era a server cannot ask its client anything. Instead its result says what it needs; the same
//! request is then sent again, under a new id, with the answers and the server's opaque state.

use super::{Request, Session, meta};
use crate::{Failure, Raw};
use tokio::time;

/// Sends `request` as often as the server needs, up to the cap.
pub(super) async fn drive(session: &Session, request: Request) -> Result<Raw, Failure> {
    let deadline = session.deadline(&request);
    let Request { method, params, mut on_progress, name, header_params, .. } = request;
    let first = params.unwrap_or_else(Raw::empty_object);
    let mut params = first.clone();
    for _ in 0..=session.settings.max_rounds {
        let round = Request {
            method: method.clone(),
            params: Some(params),
            deadline: Some(deadline),
            // Progress is told for the first round, which for nearly every request is the only one.
            on_progress: on_progress.take(),
            name: name.clone(),
            header_params: header_params.clone(),
        };
        let result = session.exchange(round).await?;
        let Some(kind) = result_type(&result) else { return Ok(result) };
        match kind.as_str() {
            "complete" => return Ok(result),
            "input_required" => {
                let answering = answers(session, &result);
                let answers = time::timeout_at(deadline, answering).await.map_err(|_| timed_out())??;
                params = next_round(&first, answers.as_ref(), &result);
            }
            unknown => {
                return Err(Failure::protocol(format!("the result is of the unknown type `{unknown}`")));
            }
        }
    }
    let rounds = session.settings.max_rounds;
    Err(Failure::protocol(format!("the server asked for more input {rounds} times over")))
}

/// The `resultType`, where one is given. Looking for the bytes first spares large results a second reading.
fn result_type(result: &Raw) -> Option<String> {
    memchr::memmem::find(result.as_bytes(), b"\"resultType\"")?;
    result.member("resultType")?.decode().ok()
}

/// Answers every question of an `input_required` result, in order.
async fn answers(session: &Session, result: &Raw) -> Result<Option<Raw>, Failure> {
    let Some(questions) = result.member("inputRequests") else { return Ok(None) };
    let mut answers = Vec::new();
    for (key, question) in questions.members().0 {
        let question = Raw::parse(question.get().to_owned()).map_err(|_| unclear())?;
        let method: String = question.member("method").and_then(|it| it.decode().ok()).ok_or_else(unclear)?;
        let answer = session.settings.host.answer(&method, question.member("params")).await;
        let answer =
            answer.map_err(|error| Failure::protocol(format!("the server needs `{method}`: {error}")))?;
        answers.push((key.into_owned(), answer));
    }
    Ok(Some(meta::object(answers.iter().map(|(key, answer)| (key.as_str(), answer.as_bytes())))))
}

fn next_round(first: &Raw, answers: Option<&Raw>, result: &Raw) -> Raw {
    let mut params = first.clone();
    if let Some(answers) = answers {
        params = meta::replace(&params, "inputResponses", answers.as_bytes());
    }
    // The state is the server's own business: sent back as it came, and not at all if there was none.
    if let Some(state) = result.member("requestState") {
        params = meta::replace(&params, "requestState", state.as_bytes());
    }
    params
}

fn timed_out() -> Failure {
    Failure::new(
        crate::Class::Timeout,
        crate::Phase::Request,
        crate::Sent::Yes,
        "the input was not given in time",
    )
}

fn unclear() -> Failure {
    Failure::protocol("the server asks for input in an unknown form")
}
