//! Modes that exit at the wrong time, do not exit, or leave processes behind.

use super::{
    Mode,
    Stage::{self, Call, Close, Spawn},
    mode,
};
use crate::{action::Action, received::ReceivedMessage, schedule::FaultSchedule};

/// A child process that lives long enough to be detected if it is not killed.
const SLEEPER: &str = "sleep 300";

pub(super) const MODES: &[Mode] = &[
    mode("exit_mid_call", Call, "ends instead of answering", |_, _| vec![Action::Exit(0)]),
    mode("segv_mid_call", Call, "crashes instead of answering", |_, _| {
        vec![Action::Signal(11), Action::Signal(11)]
    }),
    mode("kill_mid_call", Call, "is killed instead of answering", |_, _| vec![Action::Signal(9)]),
    mode("exec_then_exit", Call, "does what it was asked, and ends before it says so", |_, _| {
        vec![
            Action::Note("recv"),
            Action::Note("exec"),
            Action::Stderr(b"out of memory\n".into(), 14),
            Action::Exit(9),
        ]
    }),
    mode(
        "exec_then_rst",
        Call,
        "does what it was asked, and breaks the connection before it says so",
        |_, _| {
            // On transports that acknowledge a POST separately, sends no acknowledgement either.
            let posted = Action::Reply(Vec::new());
            vec![posted, Action::Note("recv"), Action::Note("exec"), Action::wait(20), Action::Reset]
        },
    ),
    mode("exit_idle", Call, "answers, and ends a little later", |received, _| {
        vec![Action::send(received.echo()), Action::wait(30), Action::Exit(0)]
    }),
    mode("epipe_before_read", Stage::List, "lists its tools, and closes its input", |received, _| {
        vec![Action::send(received.answer()), Action::CloseInput]
    }),
    mode("crash_loop", Spawn, "ends at every start", |_, _| {
        vec![Action::Stderr(b"cannot open database\n".into(), 21), Action::Exit(1)]
    }),
    mode("close_stdout", Call, "closes its output and lives on", |_, _| vec![Action::Close, Action::Hang]),
    mode("ignore_eof", Close, "takes no notice of the end of its input", |_, _| vec![Action::Hang]),
    mode("ignore_sigterm", Spawn, "takes no notice of TERM", |_, _| vec![Action::IgnoreTerm]),
    mode("sigstop_self", Call, "stops itself, as ^Z does", |_, _| vec![Action::Signal(19)]),
    mode("grandchild", Spawn, "starts a process of its own", |_, _| {
        vec![Action::Spawn("sleep 300 >/dev/null & wait")]
    }),
    mode("grandchild_setsid", Spawn, "starts a process in a session of its own", |_, _| {
        vec![Action::Spawn("setsid sleep 300 >/dev/null & wait")]
    }),
    mode("double_fork_daemon", Spawn, "starts a daemon", |_, _| {
        vec![Action::Spawn("(setsid sh -c 'sleep 300 & wait' >/dev/null &) &")]
    }),
    mode("grandchild_holds_stdout", Call, "ends while a process of its own keeps its stdout open", |_, _| {
        vec![Action::Spawn(SLEEPER), Action::wait(50), Action::Exit(0)]
    }),
    mode("fork_64", Spawn, "starts 64 processes", |_, _| {
        vec![Action::Spawn("i=0; while [ $i -lt 64 ]; do sleep 300 >/dev/null & i=$((i+1)); done; wait")]
    }),
    mode("zombie_maker", Spawn, "starts processes and never asks how they ended", |_, _| {
        (0..20).map(|_| Action::Spawn("exit 0")).collect()
    }),
    mode("stderr_flood", Call, "writes without end to stderr before it answers", |received, _| {
        vec![
            Action::Stderr(b"a line of the log, and another\n".into(), received.options.size),
            Action::send(received.echo()),
        ]
    }),
    mode("stderr_no_newline", Call, "writes one endless line to stderr before it answers", |received, _| {
        vec![Action::Stderr(b"x".into(), received.options.size), Action::send(received.echo())]
    }),
    mode("stderr_ansi", Call, "paints its last words on stderr in colours, and ends", |_, _| {
        let words = b"\x1b[31mfatal\x1b[0m: \x1b]0;gotcha\x07the disk is gone\n";
        vec![Action::Stderr(words.into(), words.len() as u64), Action::Exit(4)]
    }),
    mode("die_random", Call, "is killed at a random moment of a call", die_random),
    mode("rst_random", Call, "breaks the connection at a random moment of a call", rst_random),
];

/// Kills the process at a random point before, between or after the steps of a call.
fn die_random(received: &ReceivedMessage, schedule: &FaultSchedule) -> Vec<Action> {
    insert_at_random(received, schedule, &Action::Signal(9))
}

fn rst_random(received: &ReceivedMessage, schedule: &FaultSchedule) -> Vec<Action> {
    insert_at_random(received, schedule, &Action::Reset)
}

fn insert_at_random(received: &ReceivedMessage, schedule: &FaultSchedule, end: &Action) -> Vec<Action> {
    let mut actions =
        vec![Action::Note("recv"), Action::Note("exec"), Action::Note("resp"), Action::send(received.echo())];
    let at = schedule.random_below(5) as usize;
    actions.splice(at..at, [Action::Note("end"), end.clone()]);
    actions
}
