//! Modes about startup and protocol negotiation.

use super::{
    Mode,
    Stage::{Discover, Init, Spawn},
    mode,
};
use crate::deed::Deed;
use serde_json::json;

pub(super) const MODES: &[Mode] = &[
    mode("exit_now", Spawn, "says `boom` on stderr and ends with code 3", |_, _| {
        vec![Deed::Talk(b"boom\n".into(), 5), Deed::Exit(3)]
    }),
    // Two signals, because Rust's runtime handles the first one and then restores the default action.
    mode("sigsegv_now", Spawn, "dies of a segmentation fault", |_, _| {
        vec![Deed::Signal(11), Deed::Signal(11)]
    }),
    mode("hang_start", Spawn, "starts and never says anything", |_, _| vec![Deed::Freeze]),
    mode("prompt_yn", Spawn, "asks on stderr whether to install, as npx does, and waits", |_, _| {
        let prompt = b"Need to install the following packages:\nserver@1.0.0\nOk to proceed? (y) ";
        vec![Deed::Talk(prompt.into(), prompt.len() as u64), Deed::Freeze]
    }),
    mode("slow_start", Spawn, "takes its time before it reads anything", |asked, _| {
        vec![Deed::Talk(b"downloading\n".into(), 120), Deed::Wait(asked.orders.delay)]
    }),
    mode("banner_then_ok", Spawn, "greets with 60 lines on stdout that are no messages", |_, _| {
        vec![Deed::raw("[info] welcome to the server\n{ not json }\nready.\n".repeat(20))]
    }),
    mode("init_rpc_error", Init, "answers `initialize` with an error", |asked, _| {
        vec![Deed::say(asked.error(-32603, "not today"))]
    }),
    mode("init_bad_shape", Init, "answers `initialize` with something else", |asked, _| {
        vec![Deed::say(asked.result(json!({ "hello": "world" })))]
    }),
    mode("init_scalar", Init, "answers `initialize` with a number", |asked, _| {
        vec![Deed::say(asked.result(json!(5)))]
    }),
    mode("init_bad_version", Init, "wants a protocol version that does not exist", |asked, _| {
        let result = json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {} });
        vec![Deed::say(asked.result(result))]
    }),
    mode("init_twice", Init, "answers `initialize` twice", |asked, _| {
        vec![Deed::say(asked.initialization()), Deed::say(asked.initialization())]
    }),
    mode("ping_during_init", Init, "asks something before it answers `initialize`", |asked, _| {
        let ping = json!({ "jsonrpc": "2.0", "id": "before", "method": "ping" });
        vec![Deed::say(ping.to_string()), Deed::say(asked.initialization())]
    }),
    mode("init_silent", Init, "never answers `initialize`", |_, _| vec![Deed::Hang]),
    mode("init_exit", Init, "ends when it is asked to initialise", |_, _| {
        vec![Deed::Talk(b"fatal: no configuration\n".into(), 24), Deed::Exit(7)]
    }),
    mode("discover_ignored", Discover, "never answers `server/discover`", |_, _| vec![Deed::Hang]),
    mode(
        "discover_stderr_flood",
        Discover,
        "writes 256 KiB to stderr before it answers the probe",
        |asked, _| {
            vec![Deed::Talk(b"what is server/discover?\n".into(), 256 << 10), Deed::say(asked.discovery())]
        },
    ),
    mode("discover_exit", Discover, "ends on a request that it does not know", |_, _| vec![Deed::Exit(1)]),
    mode("discover_foreign", Discover, "speaks only versions that do not exist", |asked, _| {
        let result = json!({ "supportedVersions": ["2099-01-01"], "capabilities": {} });
        vec![Deed::say(asked.result(result))]
    }),
    mode("discover_bad_shape", Discover, "answers `server/discover` with a list", |asked, _| {
        vec![Deed::say(asked.result(json!([1, 2, 3])))]
    }),
    mode("discover_silent", Discover, "is of 2026-07-28 and never answers", |_, _| vec![Deed::Hang]),
];
