//! Laws of recordings: replaying one gives the same answers, and the same recording again.

use crate::{
    answer::{Answer, CallIds},
    dialect::{FinishReason, Usage},
    message::{AnswerMessage, AnswerPart, Content, Message, ToolCall, ToolResult},
    model::{ModelOptions, trouble::Trouble},
    model_tape::ModelTape,
    tool_list::ToolList,
    view::{ToolChoice, View},
};
use proptest::prelude::*;
use std::{fs, sync::Arc};
use tempfile::TempDir;
use wharf_config::Provider;
use wharf_runtime::cassette::{Cassette, CassettePlayer, Exhausted, Recorder, RecorderOptions};

/// One turn of a model: reasoning, text and the arguments of its calls, or an error.
type SaidTurn = Result<(String, String, Vec<String>, Option<u64>), Trouble>;

fn turns() -> impl Strategy<Value = Vec<SaidTurn>> {
    let text = "[a-zü🦀«»:\n\"\\\\]{0,8}";
    let arguments = prop::sample::select(vec!["{}", r#"{"a":"}{"}"#, "[", "", r#"{"b": 1.50}"#]);
    let calls = prop::collection::vec(arguments.prop_map(str::to_owned), 0..4);
    let said = (text, text, calls, prop::option::of(1_u64..1_000)).prop_map(Ok);
    let trouble = prop::sample::select(vec![Trouble::Cut, Trouble::Empty, Trouble::Connect("no".to_owned())]);
    prop::collection::vec(prop_oneof![5 => said, 1 => trouble.prop_map(Err)], 1..8)
}

/// Returns the answer of a turn. The ids of its calls are those of the provider.
fn answer(said: &SaidTurn, at: usize) -> Result<Answer, Trouble> {
    let (reasoning, text, calls, input) = said.clone()?;
    let mut parts = Vec::new();
    if !reasoning.is_empty() {
        parts.push(AnswerPart::Reasoning { text: reasoning, native: None });
    }
    if !text.is_empty() {
        parts.push(AnswerPart::Text { text, native: None });
    }
    let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    for (number, arguments) in calls.into_iter().enumerate() {
        let (id, name) = (format!("provider-{at}-{number}"), "read".to_owned());
        parts.push(AnswerPart::Call(ToolCall { id, name, arguments, native: None }));
    }
    let usage = input.map(|input| Usage { input, ..Usage::default() });
    Ok(Answer { parts, finish, usage, dropped_calls: 0 })
}

/// Holds a conversation and records it. The answers come from the turns, or from a recording.
fn hold(turns: &[SaidTurn], player: Option<Arc<CassettePlayer>>) -> (String, Vec<String>) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let recorder = Arc::new(Recorder::create(&path, RecorderOptions::default()).expect("a recording"));
    let tape = ModelTape::new(Some(recorder.clone()), player);
    let options = ModelOptions::new(Provider::Ollama, "m");
    let (tools, mut ids) = (ToolList::default(), CallIds::new("r"));
    let mut messages = vec![Message::User(vec![Content::Text("Hi".to_owned())])];
    let mut shown = Vec::new();
    for (at, said) in turns.iter().enumerate() {
        let view = View {
            conversation_id: "c",
            instructions: "Be brief.",
            tools: &tools,
            tool_choice: ToolChoice::Auto,
            messages: &messages,
        };
        let turn = tape.begin(&view, &options).expect("it is recorded");
        let said = tape.replay(&turn, &mut ids).unwrap_or_else(|| answer(said, at));
        tape.finish(turn, &said);
        shown.push(describe(&said));
        let Ok(said) = said else { continue };
        let results = said.calls().map(|call| {
            let content = vec![Content::Text(format!("result in turn {at}"))];
            let (call_id, name) = (call.id.clone(), call.name.clone());
            Message::Result(ToolResult { call_id, name, content, is_error: false })
        });
        let results: Vec<Message> = results.collect();
        messages.push(Message::Answer(AnswerMessage { parts: said.parts, model: String::new() }));
        messages.extend(results);
    }
    recorder.close().expect("it is written");
    (fs::read_to_string(path).expect("the recording"), shown)
}

/// Describes an answer without the ids of its calls. Arguments that are an object are compared as JSON.
fn describe(answer: &Result<Answer, Trouble>) -> String {
    let Answer { parts, finish, usage, .. } = match answer {
        Ok(answer) => answer,
        Err(trouble) => return format!("{trouble:?}"),
    };
    let part = |part: &AnswerPart| match part {
        AnswerPart::Text { text, .. } => format!("text {text:?}"),
        AnswerPart::Reasoning { text, .. } => format!("thinking {text:?}"),
        AnswerPart::Call(call) => {
            let arguments = call.checked_arguments().map(|it| it.parse::<serde_json::Value>());
            format!("{} {arguments:?}", call.name)
        }
    };
    let parts: Vec<String> = parts.iter().map(part).collect();
    format!("{parts:?} {finish:?} {usage:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn replaying_a_recording_gives_the_recording(turns in turns()) {
        let (recorded, live) = hold(&turns, None);
        let cassette = Cassette::parse(&recorded).expect("it can be read");
        let player = Arc::new(CassettePlayer::new(cassette, Exhausted::Miss));
        let (again, replayed) = hold(&turns, Some(player));
        prop_assert_eq!(replayed, live);
        prop_assert_eq!(again, recorded);
    }
}
