//! Modes that exit at the wrong time, do not exit, or leave processes behind.

use super::{
    Mode,
    Stage::{self, Call, Close, Spawn},
    mode,
};
use crate::{asked::Asked, deed::Deed, temper::Temper};

/// A child process that lives long enough to be detected if it is not killed.
const SLEEPER: &str = "sleep 300";

pub(super) const MODES: &[Mode] = &[
    mode("exit_mid_call", Call, "ends instead of answering", |_, _| vec![Deed::Exit(0)]),
    mode("segv_mid_call", Call, "crashes instead of answering", |_, _| {
        vec![Deed::Signal(11), Deed::Signal(11)]
    }),
    mode("kill_mid_call", Call, "is killed instead of answering", |_, _| vec![Deed::Signal(9)]),
    mode("exec_then_exit", Call, "does what it was asked, and ends before it says so", |_, _| {
        vec![Deed::Note("recv"), Deed::Note("exec"), Deed::Talk(b"out of memory\n".into(), 14), Deed::Exit(9)]
    }),
    mode(
        "exec_then_rst",
        Call,
        "does what it was asked, and breaks the connection before it says so",
        |_, _| {
            // On transports that acknowledge a POST separately, sends no acknowledgement either.
            let posted = Deed::Reply(Vec::new());
            vec![posted, Deed::Note("recv"), Deed::Note("exec"), Deed::wait(20), Deed::Reset]
        },
    ),
    mode("exit_idle", Call, "answers, and ends a little later", |asked, _| {
        vec![Deed::say(asked.echo()), Deed::wait(30), Deed::Exit(0)]
    }),
    mode("epipe_before_read", Stage::List, "lists its tools, and closes its input", |asked, _| {
        vec![Deed::say(asked.answer()), Deed::Deafen]
    }),
    mode("crash_loop", Spawn, "ends at every start", |_, _| {
        vec![Deed::Talk(b"cannot open database\n".into(), 21), Deed::Exit(1)]
    }),
    mode("close_stdout", Call, "closes its output and lives on", |_, _| vec![Deed::Close, Deed::Hang]),
    mode("ignore_eof", Close, "takes no notice of the end of its input", |_, _| vec![Deed::Hang]),
    mode("ignore_sigterm", Spawn, "takes no notice of TERM", |_, _| vec![Deed::IgnoreTerm]),
    mode("sigstop_self", Call, "stops itself, as ^Z does", |_, _| vec![Deed::Signal(19)]),
    mode("grandchild", Spawn, "starts a process of its own", |_, _| {
        vec![Deed::Spawn("sleep 300 >/dev/null & wait")]
    }),
    mode("grandchild_setsid", Spawn, "starts a process in a session of its own", |_, _| {
        vec![Deed::Spawn("setsid sleep 300 >/dev/null & wait")]
    }),
    mode("double_fork_daemon", Spawn, "starts a daemon", |_, _| {
        vec![Deed::Spawn("(setsid sh -c 'sleep 300 & wait' >/dev/null &) &")]
    }),
    mode("grandchild_holds_stdout", Call, "ends while a process of its own keeps its stdout open", |_, _| {
        vec![Deed::Spawn(SLEEPER), Deed::wait(50), Deed::Exit(0)]
    }),
    mode("fork_64", Spawn, "starts 64 processes", |_, _| {
        vec![Deed::Spawn("i=0; while [ $i -lt 64 ]; do sleep 300 >/dev/null & i=$((i+1)); done; wait")]
    }),
    mode("zombie_maker", Spawn, "starts processes and never asks how they ended", |_, _| {
        (0..20).map(|_| Deed::Spawn("exit 0")).collect()
    }),
    mode("stderr_flood", Call, "writes without end to stderr before it answers", |asked, _| {
        vec![
            Deed::Talk(b"a line of the log, and another\n".into(), asked.orders.size),
            Deed::say(asked.echo()),
        ]
    }),
    mode("stderr_no_newline", Call, "writes one endless line to stderr before it answers", |asked, _| {
        vec![Deed::Talk(b"x".into(), asked.orders.size), Deed::say(asked.echo())]
    }),
    mode("stderr_ansi", Call, "paints its last words on stderr in colours, and ends", |_, _| {
        let words = b"\x1b[31mfatal\x1b[0m: \x1b]0;gotcha\x07the disk is gone\n";
        vec![Deed::Talk(words.into(), words.len() as u64), Deed::Exit(4)]
    }),
    mode("die_random", Call, "is killed at a random moment of a call", die_random),
    mode("rst_random", Call, "breaks the connection at a random moment of a call", rst_random),
];

/// Kills the process at a random point before, between or after the steps of a call.
fn die_random(asked: &Asked, temper: &Temper) -> Vec<Deed> {
    at_random(asked, temper, &Deed::Signal(9))
}

fn rst_random(asked: &Asked, temper: &Temper) -> Vec<Deed> {
    at_random(asked, temper, &Deed::Reset)
}

fn at_random(asked: &Asked, temper: &Temper, end: &Deed) -> Vec<Deed> {
    let mut deeds = vec![Deed::Note("recv"), Deed::Note("exec"), Deed::Note("resp"), Deed::say(asked.echo())];
    let at = temper.pick(5) as usize;
    deeds.splice(at..at, [Deed::Note("end"), end.clone()]);
    deeds
}
