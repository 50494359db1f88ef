//! Laws of a run: whatever the model says and the tools do, every call gets exactly one result, in order, and the run
//! ends within its limits.

use super::run_rows::{Rig, Said, Setup, answered};
use crate::{
    message::{AnswerPart, Message},
    result_text::CallOutcome,
    run_ending::RunError,
    run_state::{ApprovalAnswer, NextStep},
};
use proptest::prelude::*;
use std::{collections::BTreeSet, time::Duration};

/// One random choice of the world: what the model says, or how a call or a person decides.
fn said() -> impl Strategy<Value = Said> {
    let name = prop::sample::select(vec!["read", "write", "read_web", "unknown", "wharf__answer"]);
    let arguments = prop::sample::select(vec!["{}", "{\"n\":1}", "{\"n\":2}", "[", ""]);
    prop_oneof![
        6 => prop::collection::vec((name, arguments), 1..6).prop_map(Said::Calls),
        1 => Just(Said::Text("text")),
        1 => Just(Said::CutCalls),
    ]
}

/// Checks that every call of an answer is followed by its result, in order, and nothing else is.
fn check_results(messages: &[Message]) -> Result<(), TestCaseError> {
    let mut expected: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::Answer(answer) => {
                prop_assert!(expected.is_empty(), "calls without results: {expected:?}");
                let id = |part: &AnswerPart| match part {
                    AnswerPart::Call(call) => Some(call.id.clone()),
                    _ => None,
                };
                expected = answer.parts.iter().filter_map(id).rev().collect();
            }
            Message::Result(result) => prop_assert_eq!(Some(result.call_id.clone()), expected.pop()),
            Message::User(_) => prop_assert!(expected.is_empty(), "calls without results: {expected:?}"),
        }
    }
    prop_assert!(expected.is_empty(), "calls without results: {expected:?}");
    Ok(())
}

proptest! {
    #[test]
    fn every_call_gets_one_result_and_every_run_ends(
        script in prop::collection::vec(said(), 1..30),
        choices in prop::collection::vec(any::<u8>(), 1..64),
        max_turns in 1_u64..8,
        max_tool_calls in 0_u64..20,
        max_parallel in 1_usize..4,
        interrupt_after in prop::option::of(0_usize..40),
    ) {
        let mut setup = Setup { can_ask: true, ..Setup::default() };
        setup.rules.configured.default = wharf_config::Decision::Ask;
        setup.limits.max_turns = max_turns;
        setup.limits.max_tool_calls = max_tool_calls;
        setup.limits.max_parallel = max_parallel;
        let mut rig = Rig::new(setup);
        let mut choices = choices.into_iter().cycle();
        let mut running: Vec<usize> = Vec::new();
        let mut made = 0;
        let mut seen = BTreeSet::new();
        let mut steps = 0;
        loop {
            steps += 1;
            prop_assert!(steps < 2_000, "the run does not end");
            if interrupt_after == Some(steps) {
                rig.state.interrupt(RunError::Cancelled);
                running.clear();
            }
            match rig.state.next() {
                NextStep::Ask(_) => {
                    prop_assert!(running.is_empty(), "the model is asked while calls run");
                    let said = script[rig.asked as usize % script.len()].clone();
                    rig.say(&said);
                }
                NextStep::SumUp(_) => rig.state.summed_up(None),
                NextStep::Decide(questions) => {
                    let answer = |allowed: u8| ApprovalAnswer { is_allowed: allowed.is_multiple_of(2), ..ApprovalAnswer::default() };
                    let answers: Vec<_> = questions
                        .into_iter()
                        .map(|it| (it.call_id, answer(choices.next().unwrap_or(0))))
                        .collect();
                    rig.state.decided(&answers);
                }
                NextStep::Call => {
                    for call in rig.state.start_calls() {
                        made += 1;
                        prop_assert!(seen.insert(call.id.clone()), "{} is made twice", call.id);
                        running.push(call.at);
                    }
                    prop_assert!(!running.is_empty() && running.len() <= max_parallel);
                    let choice = choices.next().unwrap_or(0);
                    let at = running.remove(usize::from(choice) % running.len());
                    let outcome = match choice % 4 {
                        0 => CallOutcome::unknown("gone"),
                        1 => CallOutcome::refused("not executed: down".into()),
                        _ => answered(&choice.to_string()),
                    };
                    rig.state.settled(at, outcome, Duration::ZERO);
                }
                NextStep::End => break,
            }
        }
        check_results(rig.state.messages())?;
        prop_assert!(made <= max_tool_calls);
        prop_assert!(rig.asked <= max_turns + 3, "{} requests for {max_turns} turns", rig.asked);
    }
}
