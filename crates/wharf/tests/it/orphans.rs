//! Whatever a server starts, and however the program ends: nothing is left running.
//!
//! Servers are shell scripts that start what real ones do. Each process of a server carries a mark in its environment, by
//! which it is found in /proc, wherever it went. How a host ends by a panic is tried in `tests/host`, which is a host itself.

mod apart;
mod berth;
mod shapes;

use berth::Berth;
use rustix::process::Signal;
use shapes::SHAPES;
use tokio::task::JoinSet;

/// How the program ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// By itself, when it has its answer.
    Close,
    By(Signal),
}

#[tokio::test]
async fn nothing_is_left_after_a_call() {
    check_all(Ending::Close).await;
}

#[tokio::test]
async fn nothing_is_left_after_a_request_to_end() {
    check_all(Ending::By(Signal::TERM)).await;
}

#[tokio::test]
async fn nothing_is_left_after_ctrl_c() {
    check_all(Ending::By(Signal::INT)).await;
}

#[tokio::test]
async fn nothing_is_left_after_a_crash() {
    check_all(Ending::By(Signal::ABORT)).await;
}

#[tokio::test]
async fn nothing_is_left_after_a_kill() {
    check_all(Ending::By(Signal::KILL)).await;
}

/// Tries every shape, as often as `WHARF_CYCLES` says: once, if it says nothing.
async fn check_all(ending: Ending) {
    for _ in 0..cycles() {
        let trials: JoinSet<()> = SHAPES.iter().map(|(shape, count)| check(shape, *count, ending)).collect();
        trials.join_all().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says how long they have")]
fn cycles() -> usize {
    std::env::var("WHARF_CYCLES").ok().and_then(|it| it.parse().ok()).unwrap_or(1)
}

async fn check(shape: &str, count: usize, ending: Ending) {
    let berth = Berth::new(shape);
    match ending {
        Ending::Close => berth.wharf("call answer").await.check("ahoy"),
        Ending::By(signal) => {
            let mut program = berth.start("call silence");
            berth.until_running(count).await;
            program.end(signal).await;
        }
    }
    berth.until_deserted().await;
}
