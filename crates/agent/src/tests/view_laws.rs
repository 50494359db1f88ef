//! Laws of the view: it fits the context window, and a call and its result are shown together or not at all.

use crate::{
    context::{ContextView, Fit, room_of},
    message::{AnswerMessage, AnswerPart, Content, Message, ToolCall, ToolResult},
};
use proptest::prelude::*;
use std::collections::HashSet;

/// One turn: the size of the user's message, if there is one, of the answer's text and thinking, and of each result.
type TurnSizes = (Option<usize>, usize, usize, Vec<usize>);

fn turns() -> impl Strategy<Value = Vec<TurnSizes>> {
    let size = prop_oneof![3 => 0_usize..200, 1 => 1_000_usize..8_000];
    let results = prop::collection::vec(size, 0..4);
    prop::collection::vec((prop::option::of(1_usize..300), 0_usize..300, 0_usize..300, results), 1..20)
}

/// Returns a text of about this size.
fn words(bytes: usize) -> String {
    "some words ".repeat(bytes / 11 + 1)
}

/// Adds the messages of a turn to a view.
fn push_turn(view: &mut ContextView, at: usize, (user, text, thinking, results): &TurnSizes) {
    if let Some(bytes) = user {
        view.push(Message::User(vec![Content::Text(words(*bytes))]));
    }
    let reasoning = AnswerPart::Reasoning { text: words(*thinking), native: None };
    let text = AnswerPart::Text { text: words(*text), native: None };
    let id = |number: usize| format!("c{at}_{number}");
    let call = |number| {
        let (name, arguments) = ("read".to_owned(), "{}".to_owned());
        AnswerPart::Call(ToolCall { id: id(number), name, arguments, native: None })
    };
    let calls = (0..results.len()).map(call);
    let parts = [reasoning, text].into_iter().chain(calls).collect();
    view.push(Message::Answer(AnswerMessage { parts, model: "m".to_owned() }));
    for (number, bytes) in results.iter().enumerate() {
        let content = vec![Content::Text(words(*bytes))];
        let name = "read".to_owned();
        view.push(Message::Result(ToolResult { call_id: id(number), name, content, is_error: false }));
    }
}

/// Checks that the visible calls and the visible results are the same, and that each result follows its call.
fn check_pairs(messages: &[Message]) -> Result<(), TestCaseError> {
    let (mut called, mut answered) = (HashSet::new(), HashSet::new());
    for message in messages {
        match message {
            Message::Answer(answer) => called.extend(answer.calls().map(|it| it.id.as_str())),
            Message::Result(result) => {
                prop_assert!(called.contains(result.call_id.as_str()), "{} has no call", result.call_id);
                answered.insert(result.call_id.as_str());
            }
            Message::User(_) => {}
        }
    }
    prop_assert_eq!(called, answered);
    Ok(())
}

proptest! {
    #[test]
    fn a_view_fits_and_never_parts_a_call_from_its_result(
        turns in turns(),
        window in 2_048_u64..20_000,
        max_tokens in prop::option::of(1_u64..4_096),
        may_summarize in any::<bool>(),
    ) {
        let mut view = ContextView::new(window, max_tokens, 100);
        view.push(Message::User(vec![Content::Text("Hi".to_owned())]));
        let mut is_full = false;
        for (at, turn) in turns.iter().enumerate() {
            push_turn(&mut view, at, turn);
            let mut has_summed_up = false;
            loop {
                match view.fit(may_summarize && !has_summed_up) {
                    Fit::NeedsSummary(position) => {
                        prop_assert!(may_summarize && !has_summed_up);
                        check_pairs(&view.messages_to_sum_up(position))?;
                        view.set_summary(position, "what was said".to_owned());
                        has_summed_up = true;
                    }
                    Fit::Trimmed { .. } => {}
                    Fit::Fits => {
                        prop_assert!(view.visible_tokens() <= room_of(window, max_tokens));
                        break;
                    }
                    Fit::Full => {
                        is_full = true;
                        break;
                    }
                }
            }
            let visible = view.visible();
            check_pairs(&visible)?;
            prop_assert!(matches!(visible.first(), Some(Message::User(_))));
            if is_full {
                break;
            }
        }
        let pushed = view.messages().iter().filter(|it| matches!(it, Message::Answer(_))).count();
        prop_assert!(is_full || pushed == turns.len(), "trimming removes nothing from the record");
    }
}
