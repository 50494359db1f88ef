//! Modes about startup and protocol negotiation.

use super::{
    Mode,
    Stage::{Discover, Init, Spawn},
    mode,
};
use crate::action::Action;
use serde_json::json;

pub(super) const MODES: &[Mode] = &[
    mode("exit_now", Spawn, "says `boom` on stderr and ends with code 3", |_, _| {
        vec![Action::Stderr(b"boom\n".into(), 5), Action::Exit(3)]
    }),
    // Two signals, because Rust's runtime handles the first one and then restores the default action.
    mode("sigsegv_now", Spawn, "dies of a segmentation fault", |_, _| {
        vec![Action::Signal(11), Action::Signal(11)]
    }),
    mode("hang_start", Spawn, "starts and never says anything", |_, _| vec![Action::Freeze]),
    mode("prompt_yn", Spawn, "asks on stderr whether to install, as npx does, and waits", |_, _| {
        let prompt = b"Need to install the following packages:\nserver@1.0.0\nOk to proceed? (y) ";
        vec![Action::Stderr(prompt.into(), prompt.len() as u64), Action::Freeze]
    }),
    mode("slow_start", Spawn, "takes its time before it reads anything", |received, _| {
        vec![Action::Stderr(b"downloading\n".into(), 120), Action::Wait(received.options.delay)]
    }),
    mode("banner_then_ok", Spawn, "greets with 60 lines on stdout that are no messages", |_, _| {
        vec![Action::raw("[info] welcome to the server\n{ not json }\nready.\n".repeat(20))]
    }),
    mode("init_rpc_error", Init, "answers `initialize` with an error", |received, _| {
        vec![Action::send(received.error(-32603, "not today"))]
    }),
    mode("init_bad_shape", Init, "answers `initialize` with something else", |received, _| {
        vec![Action::send(received.result(json!({ "hello": "world" })))]
    }),
    mode("init_scalar", Init, "answers `initialize` with a number", |received, _| {
        vec![Action::send(received.result(json!(5)))]
    }),
    mode("init_bad_version", Init, "wants a protocol version that does not exist", |received, _| {
        let result = json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {} });
        vec![Action::send(received.result(result))]
    }),
    mode("init_twice", Init, "answers `initialize` twice", |received, _| {
        vec![Action::send(received.initialization()), Action::send(received.initialization())]
    }),
    mode("ping_during_init", Init, "asks something before it answers `initialize`", |received, _| {
        let ping = json!({ "jsonrpc": "2.0", "id": "before", "method": "ping" });
        vec![Action::send(ping.to_string()), Action::send(received.initialization())]
    }),
    mode("init_silent", Init, "never answers `initialize`", |_, _| vec![Action::Hang]),
    mode("init_exit", Init, "ends when it is asked to initialise", |_, _| {
        vec![Action::Stderr(b"fatal: no configuration\n".into(), 24), Action::Exit(7)]
    }),
    mode("discover_ignored", Discover, "never answers `server/discover`", |_, _| vec![Action::Hang]),
    mode(
        "discover_stderr_flood",
        Discover,
        "writes 256 KiB to stderr before it answers the probe",
        |received, _| {
            vec![
                Action::Stderr(b"what is server/discover?\n".into(), 256 << 10),
                Action::send(received.discovery()),
            ]
        },
    ),
    mode("discover_exit", Discover, "ends on a request that it does not know", |_, _| vec![Action::Exit(1)]),
    mode("discover_foreign", Discover, "speaks only versions that do not exist", |received, _| {
        let result = json!({ "supportedVersions": ["2099-01-01"], "capabilities": {} });
        vec![Action::send(received.result(result))]
    }),
    mode("discover_bad_shape", Discover, "answers `server/discover` with a list", |received, _| {
        vec![Action::send(received.result(json!([1, 2, 3])))]
    }),
    mode("discover_silent", Discover, "is of 2026-07-28 and never answers", |_, _| vec![Action::Hang]),
];
