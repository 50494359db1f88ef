//! Trimming and summing up.

use super::{Rig, Said, Setup, answered, inputs};
use crate::{
    context::{ContextView, Fit},
    dialect::Usage,
    entry::{Entry, EntryBody},
    history::History,
    message::{AnswerMessage, AnswerPart, Content, Message, ToolCall, ToolResult},
    model::trouble::{ProviderError, Trouble},
    policy::RunRules,
    run_ending::RunError,
    run_state::{NextStep, RequestSettings, RunState},
};
use std::time::Duration;

/// Calls with different arguments, then an answer.
fn long_script() -> Vec<Said> {
    let calls =
        (0..20).map(|it| Said::Calls(vec![("read", ["{\"n\":0}", "{\"n\":1}", "{\"n\":2}"][it % 3])]));
    calls.chain([Said::Text("Done")]).collect()
}

#[test]
fn old_results_are_left_out_and_the_newest_stay() {
    let mut rig = Rig::new(Setup { window: 16_000, compact: false, ..Setup::default() });
    let transcript = rig.run(&long_script(), |_, made| answered(&format!("{made} {}", "x".repeat(4_000))));
    assert!(transcript.ends_with("end: finished"), "{}", &transcript[transcript.len() - 100..]);
    let visible = rig.state.visible();
    let texts: Vec<String> = visible
        .iter()
        .filter_map(|message| match message {
            Message::Result(result) => Some(result.text()),
            _ => None,
        })
        .collect();
    assert_eq!(texts.len(), 20, "every call keeps its result");
    assert!(texts[0].starts_with("[result of read, 4,002 bytes, left out"), "{}", texts[0]);
    assert!(texts[17..].iter().all(|it| it.len() > 4_000), "the last three turns are spared");
}

/// A result that is left out is stored once, and named by its handle, in this run and in the next.
#[test]
fn a_result_that_is_left_out_is_named_by_its_handle() {
    let mut rig = Rig::new(Setup { window: 16_000, compact: false, ..Setup::default() });
    rig.run(&long_script(), |_, made| answered(&format!("{made} {}", "x".repeat(4_000))));
    let left_out = rig.state.take_left_out();
    let first = left_out.first().expect("a result").clone();
    assert_eq!((first.call_id.as_str(), first.text().len()), ("c1", 4_002));
    assert!(rig.state.take_left_out().is_empty(), "each result is stored once");
    rig.state.stored("c1", "r-12".to_owned());
    let line = "[result of read, 4,002 bytes: wharf__read_result r-12]";
    let is_named = |messages: &[Message]| {
        messages.iter().any(|it| matches!(it, Message::Result(result) if result.text() == line))
    };
    assert!(is_named(&rig.state.visible()));
    let history = History::of(rig.state.take_entries(), false);
    assert_eq!(history.handles.get("c1").map(String::as_str), Some("r-12"), "the entries keep it");
}

/// The thinking of earlier runs is left out after old results, that of this run never.
#[test]
fn thinking_of_earlier_runs_is_left_out() {
    let thought = |text: &str| {
        let parts = vec![
            AnswerPart::Reasoning { text: text.repeat(2_000), native: None },
            AnswerPart::Text { text: "ok".to_owned(), native: None },
        ];
        Message::Answer(AnswerMessage { parts, model: "m".to_owned() })
    };
    let mut view = ContextView::new(8_000, Some(1_000), 0);
    let earlier = vec![Message::User(vec![Content::Text("Hi".to_owned())]), thought("old thoughts ")];
    view.begin_run(&earlier.into());
    view.push(Message::User(vec![Content::Text("And now?".to_owned())]));
    assert_eq!(view.fit(false), Fit::Trimmed { results: Vec::new(), thinking_before: Some(2) });
    let shown = format!("{:?}", view.visible());
    assert!(!shown.contains("old thoughts") && shown.contains("ok"), "{shown:.300}");
    view.push(thought("x "));
    assert!(format!("{:?}", view.visible()).contains("x x "), "this run keeps its thinking");
}

/// The next run shows the model the same beginning, so that the provider's prompt cache holds.
#[test]
fn what_is_left_out_stays_left_out_in_the_next_run() {
    let setup = || Setup { window: 16_000, compact: false, ..Setup::default() };
    let mut rig = Rig::new(setup());
    rig.run(&long_script(), |_, made| answered(&format!("{made} {}", "x".repeat(4_000))));
    let before = rig.state.visible();
    let written = rig.state.take_entries().into_iter().map(|it| (it.call_id.clone(), it.to_text()));
    let read = written.map(|(call_id, it)| {
        Entry::from_text(it.kind, call_id.as_deref(), &it.body, it.native.as_deref()).expect("an entry")
    });
    let history = History::of(read, false);
    assert!(history.left_out.contains("c1"), "{:?}", history.left_out);
    let mut view = ContextView::new(16_000, None, 0);
    view.begin_run(&history);
    assert_eq!(view.visible(), before);
    view.push(Message::User(vec![Content::Text("And now?".to_owned())]));
    assert_eq!(view.fit(false), Fit::Fits, "nothing more has to be left out");
}

/// Thinking that is left out stays so, and that of the run after it can be left out too.
#[test]
fn hidden_thinking_is_restored_by_its_position() {
    let thought = |text: &str| {
        let parts = vec![
            AnswerPart::Reasoning { text: text.repeat(1_000), native: None },
            AnswerPart::Text { text: "ok".to_owned(), native: None },
        ];
        Message::Answer(AnswerMessage { parts, model: "m".to_owned() })
    };
    let user = || Message::User(vec![Content::Text("Hi".to_owned())]);
    let history = History {
        messages: vec![user(), thought("first "), user(), thought("second ")],
        thinking_hidden_before: 2,
        ..History::default()
    };
    let shown = |view: &ContextView| {
        let shown = format!("{:?}", view.visible());
        ["first", "second"].map(|it| shown.contains(it))
    };
    let mut roomy = ContextView::new(100_000, Some(1_000), 0);
    roomy.begin_run(&history);
    assert_eq!((roomy.fit(false), shown(&roomy)), (Fit::Fits, [false, true]));
    let mut small = ContextView::new(2_048, Some(1_024), 0);
    small.begin_run(&history);
    let trimmed = Fit::Trimmed { results: Vec::new(), thinking_before: Some(4) };
    assert_eq!((small.fit(false), shown(&small)), (trimmed, [false, false]));
}

#[test]
fn the_oldest_turns_are_summed_up_if_trimming_is_not_enough() {
    let mut rig = Rig::new(Setup { window: 2_048, ..Setup::default() });
    let transcript = rig.run(&long_script(), |_, made| answered(&format!("{made} {}", "x".repeat(300))));
    assert!(transcript.ends_with("end: finished"), "{transcript}");
    let visible = rig.state.visible();
    let Message::User(content) = &visible[0] else { panic!("the first message stays") };
    let expected = ["Hi".to_owned(), "[Summary of the conversation so far]\nsummary".to_owned()];
    assert_eq!(content.iter().map(Content::as_text).collect::<Vec<_>>(), expected);
    assert!(matches!(visible[1], Message::Answer(_)), "a turn begins with its answer");
}

/// Results that are left out before a summary are stored and reported too.
#[test]
fn results_left_out_before_a_summary_are_stored_and_reported() {
    let mut rig = Rig::new(Setup { window: 4_096, ..Setup::default() });
    rig.run(&long_script(), |_, made| answered(&format!("{made} {}", "word ".repeat(400))));
    let is_line = |text: &str| text.starts_with("[result of read");
    let visible = rig.state.visible();
    let lines: Vec<&str> = visible
        .iter()
        .filter_map(|message| match message {
            Message::Result(result) if is_line(&result.text()) => Some(result.call_id.as_str()),
            _ => None,
        })
        .collect();
    assert!(!lines.is_empty(), "a result is left out after the summary");
    let stored: Vec<String> = rig.state.take_left_out().into_iter().map(|it| it.call_id).collect();
    assert!(lines.iter().all(|it| stored.iter().any(|id| id == it)), "{lines:?} are stored: {stored:?}");
    let entries: Vec<String> = rig.state.take_entries().iter().map(|it| it.to_text().body).collect();
    assert!(entries.iter().any(|it| it.contains("old results are left out")), "{entries:?}");
}

#[test]
fn a_provider_that_finds_the_prompt_too_long_sets_the_window_once() {
    let too_long = || {
        let body = br#"{"error":{"message":"prompt is too long: 9000 tokens > 4096 maximum"}}"#;
        Err(Trouble::from(ProviderError::from_response(400, body)))
    };
    let mut rig = Rig::new(Setup::default());
    rig.state.answered(too_long());
    assert!(matches!(rig.state.next(), NextStep::Ask(_)), "it is asked again");
    rig.state.answered(too_long());
    assert_eq!(rig.transcript(), "end: failed context_full");
}

/// A run that waited keeps the window that the provider has taught.
#[test]
fn a_run_that_continues_keeps_the_window_of_the_provider() {
    let body = br#"{"error":{"message":"prompt is too long: 9000 tokens > 4096 maximum"}}"#;
    let mut rig = Rig::new(Setup { can_ask: true, rules: RunRules::default(), ..Setup::default() });
    rig.state.answered(Err(Trouble::from(ProviderError::from_response(400, body))));
    rig.say(&Said::Calls(vec![("write", "{}")]));
    let checkpoint = rig.state.checkpoint(Duration::ZERO, RequestSettings::default()).expect("it waits");
    let text = serde_json::to_string(&checkpoint).expect("JSON");
    let checkpoint = serde_json::from_str(&text).expect("a checkpoint");
    let mut resumed = RunState::resume(inputs(Setup::default()), checkpoint);
    resumed.interrupt(RunError::Cancelled);
    assert_eq!(resumed.window(), 4_096);
}

/// The provider counts more tokens than the estimate, so its window alone would change nothing.
#[test]
fn a_prompt_that_is_too_long_is_trimmed_even_if_its_estimate_fits() {
    const WINDOW: u64 = 20_000;
    let mut view = ContextView::new(WINDOW, Some(1_000), 0);
    view.push(Message::User(vec![Content::Text("Hi".to_owned())]));
    for number in 0..10 {
        let id = format!("c{number}");
        let call = ToolCall { id: id.clone(), name: "read".into(), arguments: "{}".into(), native: None };
        view.push(Message::Answer(AnswerMessage {
            parts: vec![AnswerPart::Call(call)],
            model: "m".to_owned(),
        }));
        let content = vec![Content::Text("x".repeat(4_000))];
        view.push(Message::Result(ToolResult { call_id: id, name: "read".into(), content, is_error: false }));
    }
    assert_eq!(view.fit(false), Fit::Fits);
    view.shrink(Some(WINDOW));
    let Fit::Trimmed { results, .. } = view.fit(false) else { panic!("nothing is left out") };
    assert_eq!(results.first(), Some(&2), "the oldest result is left out first");
}

/// The count of one run holds in the next one of the conversation.
#[test]
fn the_estimate_of_a_run_begins_with_the_count_of_the_one_before() {
    let user = Message::User(vec![Content::Text("word ".repeat(1_000))]);
    let tokens = |input: Option<u64>| {
        let usage = input.map(|input| Usage { input, ..Usage::default() });
        let parts = vec![AnswerPart::Text { text: "Hello".to_owned(), native: None }];
        let message = AnswerMessage { parts, model: "m".to_owned() };
        let entries = [
            Entry::of(EntryBody::of_message(&user).expect("an entry")),
            Entry::of(EntryBody::Answer { message, usage }),
        ];
        let mut view = ContextView::new(100_000, None, 0);
        view.begin_run(&History::of(entries, false));
        view.visible_tokens()
    };
    let estimate = tokens(None);
    assert_eq!(tokens(Some(2 * estimate)) / estimate, 2);
    assert_eq!(tokens(Some(estimate / 2)), estimate, "something may have been left out");
}

#[test]
fn a_refused_tool_is_left_out() {
    let refused = || {
        let body = br#"{"error":{"message":"tools.1.input_schema: invalid"}}"#;
        Err(Trouble::from(ProviderError::from_response(400, body)))
    };
    let mut rig = Rig::new(Setup::default());
    rig.state.answered(refused());
    let names: Vec<&str> = rig.state.toolbox().specs().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["read", "read_web"]);
    rig.state.answered(refused());
    rig.state.answered(refused());
    assert_eq!(rig.transcript(), "end: failed model_api_error", "there is no such tool any more");
}
