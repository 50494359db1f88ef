//! The tasks of the measurement, and what the scripted model answers to them.

use scripted_model::{Action, Finish, Reply, Request, Step, Wire, render, text};

/// Number of deltas of an ordinary answer.
const ANSWER_DELTAS: usize = 20;
/// Number of deltas of a long answer.
pub(super) const DELTAS: usize = 10_000;

/// Task of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// An answer of text.
    Answer,
    /// Two tool calls, and an answer.
    TwoCalls,
    /// An answer of many deltas.
    ManyDeltas,
    /// A tool call that does not end.
    Hang,
    /// A tool call that a person has to allow.
    Park,
}

impl Task {
    /// The tasks that all agents get.
    pub(super) const ALL: [Task; 3] = [Task::Answer, Task::TwoCalls, Task::ManyDeltas];

    /// Returns the message of the user.
    pub(super) fn message(self) -> &'static str {
        match self {
            Task::Answer => "answer",
            Task::TwoCalls => "two-calls",
            Task::ManyDeltas => "many-deltas",
            Task::Hang => "hang",
            Task::Park => "park",
        }
    }

    /// Returns the number of requests to the model.
    pub(super) fn requests(self) -> usize {
        if self == Task::TwoCalls { 2 } else { 1 }
    }
}

/// Answers a request as its last message says.
pub(super) fn reply(request: &Request) -> Reply {
    let messages = request.body["messages"].as_array();
    let last = messages.and_then(|it| it.last()).cloned().unwrap_or_default();
    let (is_result, message) = (last["role"] == "tool", last["content"].to_string());
    let is = |task: Task| !is_result && message.contains(task.message());
    let call = |name: &str, arguments: &str| Reply::calls(Wire::Chat, &[("c1", name, arguments)]);
    let echo = |id: &'static str| (id, tool_name(request), r#"{"text":"x"}"#);
    if is(Task::TwoCalls) {
        let [(a, name, arguments), (b, ..)] = [echo("c1"), echo("c2")];
        return Reply::calls(Wire::Chat, &[(a, &name, arguments), (b, &name, arguments)]);
    }
    if is(Task::Hang) {
        return call("up__hang", "{}");
    }
    if is(Task::Park) {
        return call("up__payload", r#"{"bytes":1}"#);
    }
    stream(if is(Task::ManyDeltas) { DELTAS } else { ANSWER_DELTAS })
}

/// Returns the name under which the tool `echo` is offered.
fn tool_name(request: &Request) -> String {
    let tools = request.body["tools"].as_array().into_iter().flatten();
    let mut names = tools.filter_map(|it| it["function"]["name"].as_str());
    names.find(|it| it.ends_with("echo")).unwrap_or("echo").to_owned()
}

/// Returns an answer whose deltas are sent one by one.
fn stream(deltas: usize) -> Reply {
    let delta = render(Wire::Chat, &[text("word ")]);
    let mut actions = vec![Action::Send(delta.into_bytes()); deltas];
    actions.push(Action::Send(render(Wire::Chat, &[Step::End(Finish::Stop), Step::Usage]).into_bytes()));
    actions.push(Action::Send(b"data: [DONE]\n\n".to_vec()));
    Reply { actions, ..Reply::stream("") }
}
