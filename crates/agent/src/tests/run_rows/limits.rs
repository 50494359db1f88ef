//! Every limit ends a run.

use super::{Rig, Said, Setup, answered, check};
use crate::{
    dialect::{FinishReason, Usage},
    result_text::CallOutcome,
    run_ending::{RunError, RunUsage},
};
use wharf_config::{ModelPrice, RunLimits};

fn limits(change: impl FnOnce(&mut RunLimits)) -> Setup {
    let mut setup = Setup::default();
    change(&mut setup.limits);
    setup
}

#[test]
fn the_last_turn_is_followed_by_one_request_without_tools() {
    let script = [
        Said::Calls(vec![("read", "{\"n\":1}")]),
        Said::Calls(vec![("read", "{\"n\":2}")]),
        Said::Text("So far"),
    ];
    check(
        limits(|it| it.max_turns = 2),
        &script,
        |name, _| answered(name),
        r#"model: read({"n":1})
           c1: read
           model: read({"n":2})
           c2: read
           user: The limit 'limits.max_turns' is reached. Answer with what you have.
           model: So far
           end: limit limit_reached"#,
    );
}

#[test]
fn calls_beyond_the_limit_are_refused_and_the_run_ends() {
    check(
        limits(|it| it.max_tool_calls = 1),
        &[Said::Calls(vec![("read", "{}"), ("write", "{}")])],
        |name, _| answered(name),
        "model: read({}) write({})
         c1: read
         c2: not executed: the limit 'limits.max_tool_calls' is reached.
         user: The limit 'limits.max_tool_calls' is reached. Answer with what you have.
         model: read({}) write({})
         c3: not executed: the limit 'limits.max_tool_calls' is reached.
         c4: not executed: the limit 'limits.max_tool_calls' is reached.
         end: limit limit_reached",
    );
}

#[test]
fn endless_identical_and_alternating_calls_end() {
    let rows: [&[&str]; 2] = [&["read"], &["read", "write"]];
    for names in rows {
        let script: Vec<Said> =
            (0..40).map(|it| Said::Calls(vec![(names[it % names.len()], "{}")])).collect();
        let transcript = Rig::new(Setup::default()).run(&script, |name, _| answered(name));
        let executed =
            transcript.lines().filter(|it| it.ends_with(": read") || it.ends_with(": write")).count();
        let refused = "not executed: the same call gave the same result 3 times. Use that result.";
        assert_eq!(executed, 3 * names.len(), "{transcript}");
        assert_eq!(transcript.matches(refused).count(), 3, "{transcript}");
        assert!(transcript.ends_with("end: limit limit_reached"), "{transcript}");
    }
}

#[test]
fn a_call_whose_result_changes_is_no_repetition() {
    let mut script = vec![Said::Calls(vec![("read", "{}")]); 8];
    script.push(Said::Text("Done"));
    let transcript = Rig::new(Setup::default()).run(&script, |_, made| answered(&made.to_string()));
    assert!(transcript.contains("c8: 8") && transcript.ends_with("end: finished"), "{transcript}");
}

#[test]
fn tokens_are_counted_and_end_the_run_without_another_request() {
    let mut rig = Rig::new(limits(|it| it.max_total_tokens = 1_000));
    let script: Vec<Said> = (0..50).map(|_| Said::Calls(vec![("read", "{}")])).collect();
    let transcript = rig.run(&script, |_, made| answered(&format!("{made}{}", "x".repeat(1_000))));
    assert!(transcript.ends_with("end: limit limit_reached"), "{transcript}");
    assert!(rig.asked < 10 && rig.state.report().usage.is_estimated);
}

#[test]
fn cost_is_counted_and_ends_the_run_without_another_request() {
    let mut setup = limits(|it| it.max_cost = Some(0.01));
    setup.price = Some(ModelPrice { input: 10.0, cached_input: 1.0, output: 100.0 });
    let mut rig = Rig::new(setup);
    let script: Vec<Said> = (0..50).map(|_| Said::Calls(vec![("read", "{}")])).collect();
    let transcript = rig.run(&script, |_, made| answered(&format!("{made}{}", "x".repeat(1_000))));
    assert!(transcript.ends_with("end: limit limit_reached"), "{transcript}");
    let report = rig.state.report();
    assert!(report.cost.is_some_and(|it| it >= 0.01) && rig.asked < 20, "{report:?}");
    let usage = Usage { input: 1_000_000, cached_input: 400_000, output: 10_000, reasoning: 0 };
    let usage = RunUsage { total: usage, is_estimated: false };
    let cost = usage.cost(ModelPrice { input: 10.0, cached_input: 1.0, output: 100.0 });
    assert!((cost - 7.4).abs() < 1e-9, "{cost}");
}

#[test]
fn calls_of_a_cut_answer_are_not_made_and_the_model_hears_it_once() {
    check(
        Setup::default(),
        &[Said::CutCalls, Said::Text("Short")],
        |_, _| answered(""),
        "user: Your answer reached the maximum length, so its tool calls were not made. Answer more briefly.
         model: Short
         end: finished",
    );
    check(
        Setup::default(),
        &[Said::CutCalls],
        |_, _| answered(""),
        "user: Your answer reached the maximum length, so its tool calls were not made. Answer more briefly.
         end: limit limit_reached",
    );
    let cut = [Said::Finish(FinishReason::Length, "Half")];
    check(Setup::default(), &cut, |_, _| answered(""), "model: Half\nend: limit limit_reached");
}

#[test]
fn an_interrupted_run_gives_every_call_a_result() {
    let mut rig = Rig::new(limits(|it| it.max_parallel = 1));
    rig.say(&Said::Calls(vec![("read", "{\"n\":1}"), ("read", "{\"n\":2}")]));
    assert_eq!(rig.state.start_calls().len(), 1);
    rig.state.interrupt(RunError::Cancelled);
    let transcript = rig.transcript();
    assert!(
        transcript.contains("c1: unknown: the call was sent and no answer came (the run was cancelled)"),
        "{transcript}"
    );
    assert!(
        transcript.contains("c2: not executed: the run was cancelled. It is safe to call again."),
        "{transcript}"
    );
    assert!(transcript.ends_with("end: cancelled cancelled"), "{transcript}");
    rig.state.settled(0, CallOutcome::unknown("late"), std::time::Duration::ZERO);
    assert_eq!(rig.transcript(), transcript, "a late outcome changes nothing");
}
