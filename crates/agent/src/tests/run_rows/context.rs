//! Trimming and summing up.

use super::{Rig, Said, Setup, answered};
use crate::{
    message::{Content, Message},
    model::trouble::{ProviderError, Trouble},
    run_state::NextStep,
};

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
    assert!(texts[0].starts_with("[result of read, 4002 bytes, left out"), "{}", texts[0]);
    assert!(texts[17..].iter().all(|it| it.len() > 4_000), "the last three turns are spared");
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
