//! Answers that do not end: too much, and too slow.

use super::super::{stderr, stdout};
use super::workspace;
use scripted_model::{Action, Reply, ScriptedModel, Wire, render, text};
use std::{
    process::Command,
    time::{Duration, Instant},
};

/// Address space of a run that receives an endless answer, in KiB: far less than the answer.
const MEMORY_KIB: u32 = 768 * 1024;

/// The other dialects are tested with smaller limits, in the agent's own tests: 64 MiB take a while without optimization.
#[test]
fn an_endless_answer_ends_the_run_in_bounded_memory() {
    let piece = render(Wire::Chat, &[text(&"a".repeat(1024 * 1024))]);
    let model = ScriptedModel::start(vec![Reply::stream("").then(Action::SendForever(piece.into()))]);
    let workspace = workspace(Wire::Chat, &model, "");
    let mut command: Command = workspace.command("/bin/sh".as_ref());
    let script = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" run Hi");
    let output = command.args(["-c", &script, env!("CARGO_BIN_EXE_wharf")]).output().expect("sh runs");
    assert_eq!(output.status.code(), Some(76), "{}", stderr(&output));
    assert!(stderr(&output).contains("bytes in one answer"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "", "nothing of a failed answer is printed");
    model.wait_for_abandoned(1);
    assert_eq!(model.requests().len(), 1, "it is not asked again");
}

#[test]
fn an_answer_that_drips_is_whole_or_ends_with_the_run() {
    for wire in Wire::ALL {
        let whole = render(wire, &[text("slow"), scripted_model::Step::End(scripted_model::Finish::Stop)]);
        let drip = |bytes: &[u8]| {
            let steps = bytes
                .iter()
                .flat_map(|byte| [Action::Send(vec![*byte]), Action::Pause(Duration::from_millis(1))]);
            Reply { actions: steps.collect(), ..Reply::stream("") }
        };
        let model = ScriptedModel::start(vec![drip(whole.as_bytes())]);
        let output = workspace(wire, &model, "").wharf(&["run", "Hi"]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "slow\n"), "{wire:?}");
        // Each byte comes in time, and the answer never ends.
        let begun = render(wire, &[text("lost")]);
        let steps =
            (0..10_000).flat_map(|_| [Action::Send(b"\n".into()), Action::Pause(Duration::from_millis(20))]);
        let reply = Reply { actions: steps.collect(), ..Reply::stream("") };
        let reply = Reply { actions: [vec![Action::Send(begun.into())], reply.actions].concat(), ..reply };
        let model = ScriptedModel::start(vec![reply]);
        let began = Instant::now();
        let output = workspace(wire, &model, "").wharf(&["run", "Hi", "--timeout", "1"]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(124), ""), "{wire:?}");
        assert!(began.elapsed() < Duration::from_secs(30), "{wire:?}: {:?}", began.elapsed());
        // On a busy machine the second may be over before the request arrives.
        model.wait_for_abandoned(model.requests().len());
    }
}
