//! Tests that no process is left running, whatever a server starts and however the program ends.
//!
//! The servers are shell scripts that start the same process trees as real ones. Each process of a server inherits
//! a marker variable by which the test finds it in /proc. `tests/host` covers panics, because it is a host itself.

mod sandbox;
mod shapes;
mod supervision;

use rustix::process::Signal;
use sandbox::Sandbox;
use shapes::SHAPES;
use tokio::task::JoinSet;

/// How the program ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The program exits by itself after the response.
    Close,
    By(Signal),
}

#[tokio::test]
async fn nothing_is_left_after_a_call() {
    check_all(Ending::Close).await;
}

#[tokio::test]
async fn nothing_is_left_after_sigterm() {
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

/// Checks every shape, `WHARF_CYCLES` times; once by default.
async fn check_all(ending: Ending) {
    for _ in 0..cycles() {
        let trials: JoinSet<()> = SHAPES.iter().map(|(shape, count)| check(shape, *count, ending)).collect();
        trials.join_all().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment sets the number of cycles")]
fn cycles() -> usize {
    std::env::var("WHARF_CYCLES").ok().and_then(|it| it.parse().ok()).unwrap_or(1)
}

async fn check(shape: &str, count: usize, ending: Ending) {
    let sandbox = Sandbox::new(shape);
    match ending {
        Ending::Close => sandbox.wharf("call answer").await.check("ahoy"),
        Ending::By(signal) => {
            let mut program = sandbox.start("call silence");
            sandbox.wait_for_processes(count).await;
            program.end(signal).await;
        }
    }
    sandbox.wait_for_no_processes().await;
}
