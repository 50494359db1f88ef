//! Whatever a server starts, and however the program ends: nothing is left running.
//!
//! Servers are shell scripts that start what real ones do. Each process of a server carries a mark in its environment, by
//! which it is found in /proc, wherever it went.

mod apart;
mod berth;

use berth::Berth;
use rustix::process::Signal;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What a server starts, and how many processes it then is, its supervisor included. The script knows the names.
const SHAPES: &[(&str, usize)] = &[
    ("direct", 2),
    ("npx-tree", 4),
    ("setsid", 3),
    ("double-fork", 3),
    ("ignores-term", 3),
    ("setsid-ignores-term", 3),
    ("holds-stdout", 3),
    ("64-forks", 66),
];

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

#[tokio::test]
#[ignore = "takes minutes; nothing_is_left_… are one cycle of it"]
async fn nothing_is_left_after_fifty_cycles() {
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let [term, int, abort, kill] =
            [Signal::TERM, Signal::INT, Signal::ABORT, Signal::KILL].map(|it| check_all(Ending::By(it)));
        let (close, term, int, abort, kill) = tokio::join!(check_all(Ending::Close), term, int, abort, kill);
        slowest = [close, term, int, abort, kill].into_iter().fold(slowest, Duration::max);
    }
    println!("all gone after at most {slowest:?}");
}

/// Tries every shape, and tells how long the slowest took to be gone.
async fn check_all(ending: Ending) -> Duration {
    let trials: JoinSet<Duration> =
        SHAPES.iter().map(|(shape, count)| check(shape, *count, ending)).collect();
    trials.join_all().await.into_iter().max().unwrap_or_default()
}

async fn check(shape: &str, count: usize, ending: Ending) -> Duration {
    let berth = Berth::new(shape);
    let ended = match ending {
        Ending::Close => {
            berth.wharf("call answer").await.check("ahoy");
            Instant::now()
        }
        Ending::By(signal) => {
            let mut program = berth.start("call silence");
            berth.until_running(count).await;
            program.end(signal).await;
            Instant::now()
        }
    };
    berth.until_deserted().await;
    ended.elapsed()
}
