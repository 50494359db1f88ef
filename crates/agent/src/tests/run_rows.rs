//! The state machine of a run: answers and outcomes go in, and a transcript comes out.

mod context;
mod limits;
mod structured;

use crate::{
    answer::Answer,
    dialect::FinishReason,
    message::{AnswerMessage, AnswerPart, Content, Message, ToolCall, ToolResult},
    model::ModelOptions,
    policy::RunRules,
    result_text::{CallFate, CallOutcome},
    run_state::{ApprovalAnswer, NextStep, RunInputs, RunState},
    tool_facts::ToolFacts,
    toolbox::Toolbox,
};
use serde_json::Value;
use std::time::Duration;
use wharf_config::{ContextSettings, Decision, DeferLoading, ModelPrice, Provider, RunLimits};

/// Answer of a scripted model.
#[derive(Clone, Debug)]
pub(super) enum Said {
    Text(&'static str),
    Calls(Vec<(&'static str, &'static str)>),
    CutCalls,
    Finish(FinishReason, &'static str),
}

/// A run under test: what the model says, and what the tools return.
pub(super) struct Rig {
    pub(super) state: RunState,
    pub(super) asked: u64,
    calls: u64,
}

pub(super) fn tool(name: &str) -> ToolFacts {
    ToolFacts {
        name: name.to_owned(),
        id: format!("s:{name}"),
        source: "s".to_owned(),
        is_read_only: name.starts_with("read"),
        is_destructive: false,
        is_open_world: name.ends_with("web"),
        is_trusted: true,
        is_builtin: false,
        defer_loading: DeferLoading::Auto,
        definition_hash: String::new(),
    }
}

pub(super) struct Setup {
    pub(super) limits: RunLimits,
    pub(super) rules: RunRules,
    pub(super) format: Option<Value>,
    pub(super) can_ask: bool,
    pub(super) window: u64,
    pub(super) compact: bool,
    pub(super) history: Vec<Message>,
    pub(super) price: Option<ModelPrice>,
}

impl Default for Setup {
    fn default() -> Setup {
        let mut rules = RunRules::default();
        rules.configured.default = Decision::Allow;
        Setup {
            limits: RunLimits::default(),
            rules,
            format: None,
            can_ask: false,
            window: 100_000,
            compact: true,
            history: Vec::new(),
            price: None,
        }
    }
}

pub(super) fn inputs(setup: Setup) -> RunInputs {
    let tools = ["read", "write", "read_web"].map(tool).to_vec();
    let mut model = ModelOptions::new(Provider::Ollama, "m");
    model.context_window = setup.window;
    RunInputs {
        conversation_id: "c".into(),
        run_id: "r".into(),
        history: setup.history.into(),
        earlier: Vec::new(),
        message: vec![Content::Text("Hi".into())],
        instructions: String::new(),
        limits: setup.limits,
        rules: setup.rules,
        context: ContextSettings { preamble: false, compact: setup.compact, ..ContextSettings::default() },
        toolbox: Toolbox::of(tools, setup.format.as_ref()).expect("a toolbox"),
        model,
        can_ask: setup.can_ask,
        price: setup.price,
    }
}

impl Rig {
    pub(super) fn new(setup: Setup) -> Rig {
        Rig { state: RunState::new(inputs(setup)), asked: 0, calls: 0 }
    }

    pub(super) fn say(&mut self, said: &Said) {
        self.asked += 1;
        let mut dropped_calls = 0;
        let text = |text: &str| vec![AnswerPart::Text { text: text.to_owned(), native: None }];
        let (parts, finish) = match said {
            Said::Text(words) => (text(words), FinishReason::Stop),
            Said::Calls(calls) => {
                let call = |(name, arguments): &(&str, &str)| {
                    self.calls += 1;
                    let id = format!("c{}", self.calls);
                    let (name, arguments) = ((*name).to_owned(), (*arguments).to_owned());
                    AnswerPart::Call(ToolCall { id, name, arguments, native: None })
                };
                (calls.iter().map(call).collect(), FinishReason::ToolCalls)
            }
            Said::CutCalls => {
                dropped_calls = 1;
                (Vec::new(), FinishReason::Length)
            }
            Said::Finish(finish, words) => (text(words), *finish),
        };
        self.state.answered(Ok(Answer { parts, finish, usage: None, dropped_calls }));
    }

    /// Runs until the end. The model repeats its last answer; a tool returns its name and arguments.
    pub(super) fn run(&mut self, script: &[Said], outcome: impl Fn(&str, u64) -> CallOutcome) -> String {
        let mut made = 0;
        for _ in 0..5_000 {
            match self.state.next() {
                NextStep::Ask(kind) => {
                    let said = script.get(self.asked as usize).or(script.last()).expect("a script");
                    let _ = kind;
                    self.say(said);
                }
                NextStep::SumUp(_) => self.state.summed_up(Some(("summary".into(), None))),
                NextStep::Decide(questions) => {
                    let allowed = ApprovalAnswer { is_allowed: true, ..ApprovalAnswer::default() };
                    let answers: Vec<_> =
                        questions.into_iter().map(|it| (it.call_id, allowed.clone())).collect();
                    self.state.decided(&answers);
                }
                NextStep::Call => {
                    let calls = self.state.start_calls();
                    self.state.sent(&calls);
                    for call in calls {
                        made += 1;
                        self.state.settled(call.at, outcome(&call.name, made), Duration::ZERO);
                    }
                }
                NextStep::End => return self.transcript(),
            }
        }
        panic!("the run does not end")
    }

    /// Returns the messages after the first, and the end.
    pub(super) fn transcript(&self) -> String {
        let text = |content: &[Content]| content.iter().map(Content::as_text).collect::<Vec<_>>().join("|");
        let lines = self.state.messages().iter().skip(1).map(|message| match message {
            Message::User(content) => format!("user: {}\n", text(content)),
            Message::Result(result) => format!("{}: {}\n", result.call_id, text(&result.content)),
            Message::Answer(answer) => {
                let parts = answer.parts.iter().map(|part| match part {
                    AnswerPart::Text { text, .. } | AnswerPart::Reasoning { text, .. } => text.clone(),
                    AnswerPart::Call(call) => format!("{}({})", call.name, call.arguments),
                });
                format!("model: {}\n", parts.collect::<Vec<_>>().join(" "))
            }
        });
        let report = self.state.report();
        let error = report.error.as_ref().map_or_else(String::new, |it| format!(" {}", it.error_type()));
        lines.chain([format!("end: {}{error}", report.status().as_str())]).collect()
    }
}

pub(super) fn answered(text: &str) -> CallOutcome {
    CallOutcome {
        content: vec![Content::Text(text.to_owned())],
        is_error: false,
        fate: CallFate::Answered,
        error: None,
        hint: None,
    }
}

#[track_caller]
pub(super) fn check(
    setup: Setup,
    script: &[Said],
    outcome: impl Fn(&str, u64) -> CallOutcome,
    expected: &str,
) {
    let transcript = Rig::new(setup).run(script, outcome);
    let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
    assert_eq!(transcript.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn an_answer_without_calls_finishes_the_run() {
    check(Setup::default(), &[Said::Text("Hello")], |_, _| answered(""), "model: Hello\nend: finished");
}

#[test]
fn results_follow_their_answer_in_its_order() {
    let script = [Said::Calls(vec![("write", "{}"), ("read", r#"{"a":1}"#)]), Said::Text("Done")];
    check(
        Setup::default(),
        &script,
        |name, _| answered(name),
        r#"model: write({}) read({"a":1})
           c1: write
           c2: read
           model: Done
           end: finished"#,
    );
}

#[test]
fn bad_arguments_and_unknown_tools_are_refused_in_words() {
    let script = [
        Said::Calls(vec![("reed", "{}"), ("zzzzz", "{}"), ("read", "[1]"), ("read", "{")]),
        Said::Text("Done"),
    ];
    check(
        Setup::default(),
        &script,
        |_, _| panic!("nothing is executed"),
        "model: reed({}) zzzzz({}) read([1]) read({)
         c1: there is no tool 'reed'; did you mean 'read'?
         c2: there is no tool 'zzzzz'.
         c3: not executed: the arguments are not one JSON object.
         c4: not executed: the arguments are not one JSON object.
         model: Done
         end: finished",
    );
}

#[test]
fn calls_that_need_a_person_are_denied_if_nobody_is_there() {
    let setup = Setup { rules: RunRules::default(), ..Setup::default() };
    let script = [Said::Calls(vec![("write", "{}"), ("read", "{}")]), Said::Text("Done")];
    check(
        setup,
        &script,
        |name, _| answered(name),
        "model: write({}) read({})
         c1: denied: the user did not allow this call: nobody is there to ask. Do not try it again.
         c2: read
         model: Done
         end: finished",
    );
}

#[test]
fn a_call_of_unknown_fate_is_not_repeated_without_a_person() {
    let script =
        [Said::Calls(vec![("write", "{}")]), Said::Calls(vec![("write", "{ }")]), Said::Text("Done")];
    check(
        Setup::default(),
        &script,
        |_, _| CallOutcome::unknown("the server ended"),
        "model: write({})
         c1: unknown: the call was sent and no answer came (the server ended). It may have been executed. Find out before you repeat it.
         model: write({ })
         c2: denied: the user did not allow this call: nobody is there to ask. Do not try it again.
         model: Done
         end: finished",
    );
    let mut rig = Rig::new(Setup { can_ask: true, ..Setup::default() });
    let transcript =
        rig.run(&script, |_, made| if made == 1 { CallOutcome::unknown("gone") } else { answered("again") });
    assert!(transcript.contains("c2: again"), "a person may allow it: {transcript}");
}

/// The question says so, even if the rules ask about the tool anyway.
#[test]
fn the_question_about_a_call_of_unknown_fate_says_that_it_may_have_been_executed() {
    for default in [Decision::Allow, Decision::Ask] {
        let mut setup = Setup { can_ask: true, ..Setup::default() };
        setup.rules.configured.default = default;
        let mut rig = Rig::new(setup);
        let mut questions = Vec::new();
        for said in [Said::Calls(vec![("write", "{}")]), Said::Calls(vec![("write", "{ }")])] {
            rig.say(&said);
            if let NextStep::Decide(asked) = rig.state.next() {
                let allowed = ApprovalAnswer { is_allowed: true, ..ApprovalAnswer::default() };
                let answers: Vec<_> = asked.iter().map(|it| (it.call_id.clone(), allowed.clone())).collect();
                questions.extend(asked.into_iter().map(|it| (it.call_id, it.is_repetition, it.why)));
                rig.state.decided(&answers);
            }
            for call in rig.state.start_calls() {
                rig.state.settled(call.at, CallOutcome::unknown("the server ended"), Duration::ZERO);
            }
        }
        let why = "an earlier call with the same arguments may have been executed".to_owned();
        assert_eq!(questions.last(), Some(&("c2".to_owned(), true, why)), "{default:?}");
    }
}

#[test]
fn an_equal_call_of_the_same_answer_is_not_made_after_one_of_unknown_fate() {
    let script =
        [Said::Calls(vec![("write", "{}"), ("write", "{ }"), ("write", r#"{"a":1}"#)]), Said::Text("Done")];
    check(
        Setup::default(),
        &script,
        |_, made| if made == 1 { CallOutcome::unknown("the server ended") } else { answered("other") },
        r#"model: write({}) write({ }) write({"a":1})
           c1: unknown: the call was sent and no answer came (the server ended). It may have been executed. Find out before you repeat it.
           c2: not executed: the same call before it may have been executed. Find out before you repeat it.
           c3: other
           model: Done
           end: finished"#,
    );
}

#[test]
fn an_earlier_run_of_the_conversation_is_not_forgotten() {
    let script = [Said::Calls(vec![("write", "{}"), ("read_web", "{}")]), Said::Text("Done")];
    let mut first = Rig::new(Setup::default());
    let transcript = first.run(&script, |name, _| match name {
        "write" => CallOutcome::unknown("gone"),
        _ => answered("page"),
    });
    assert!(transcript.ends_with("end: finished"), "{transcript}");
    let history = first.state.into_new_messages();
    assert_eq!(history.len(), 5);

    let mut second = Rig::new(Setup { history: history.clone(), ..Setup::default() });
    let script =
        [Said::Calls(vec![("write", "{}"), ("write", r#"{"a":1}"#), ("read", "{}")]), Said::Text("Done")];
    let transcript = second.run(&script, |name, _| answered(name));
    assert!(transcript.contains("model: write({}) read_web({})"), "the model sees it: {transcript}");
    let denied = transcript.matches("denied: the user did not allow this call").count();
    assert_eq!(denied, 2, "a repetition of unknown fate, and a write after open-world content: {transcript}");
    let added = second.state.into_new_messages();
    assert_eq!(added.len(), 6, "the user's message, the answer, three results, the last answer");
}

/// A server that is gone since may have been an open-world one.
#[test]
fn results_of_tools_that_are_gone_count_as_content_of_the_open_world() {
    let rows = [
        ("fetch", "a page", true),
        ("wharf__call_tool", "a page", true),
        ("fetch", "there is no tool 'fetch'.", false),
        ("wharf__find_tools", "read", false),
        ("read", "a file", false),
    ];
    for (name, text, is_untrusted) in rows {
        let (call_id, name) = ("c0".to_owned(), name.to_owned());
        let call = ToolCall { id: call_id.clone(), name: name.clone(), arguments: "{}".into(), native: None };
        let answer = AnswerMessage { parts: vec![AnswerPart::Call(call)], model: "m".to_owned() };
        let content = vec![Content::Text(text.to_owned())];
        let history = vec![
            Message::User(vec![Content::Text("Hi".into())]),
            Message::Answer(answer),
            Message::Result(ToolResult { call_id, name: name.clone(), content, is_error: false }),
        ];
        let script = [Said::Calls(vec![("write", "{}")]), Said::Text("Done")];
        let transcript = Rig::new(Setup { history, ..Setup::default() }).run(&script, |_, _| answered("ok"));
        assert_eq!(transcript.contains("c1: denied"), is_untrusted, "{name} {text}: {transcript}");
    }
}

#[test]
fn writes_need_approval_after_content_of_the_open_world() {
    let mut setup = Setup::default();
    setup.rules.configured.default = Decision::Allow;
    let script =
        [Said::Calls(vec![("read_web", "{}")]), Said::Calls(vec![("write", "{}")]), Said::Text("Done")];
    let transcript = Rig::new(setup).run(&script, |name, _| answered(name));
    assert!(transcript.contains("c2: denied: the user did not allow"), "{transcript}");
}

#[test]
fn filtered_and_refused_answers_end_the_run() {
    for finish in [FinishReason::Filtered, FinishReason::Refused] {
        let script = [Said::Finish(finish, "Sorry")];
        let expected = "model: Sorry\nend: refused content_filtered";
        check(Setup::default(), &script, |_, _| answered(""), expected);
    }
}
