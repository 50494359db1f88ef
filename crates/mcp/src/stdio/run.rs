//! Runs a program that is no server to its end, such as an installer, with the containment that a server has.

use super::{Command, process::Process};
use crate::{Exit, Failure};

/// How a program ended.
#[derive(Debug)]
pub struct Ended<T> {
    /// Its exit, where that is known.
    pub exit: Option<Exit>,
    /// The last of what it wrote to stderr.
    pub stderr: String,
    /// Why it was stopped, if it did not end by itself.
    pub stopped: Option<T>,
}

impl Command {
    /// Starts the program with an empty stdin and waits until it has ended and nothing that it started is left. When
    /// `stop` completes first, the program is stopped: TERM to its processes, then KILL.
    pub async fn run<T>(&self, stop: impl Future<Output = T>) -> Result<Ended<T>, Failure> {
        let mut process = Process::start(self).await.map_err(|error| self.not_started(&error))?;
        process.stdin = None;
        let stopped = tokio::select! {
            biased;
            () = process.ended() => None,
            why = stop => Some(why),
        };
        let exit = process.stop().await;
        Ok(Ended { exit, stderr: process.tail.text(), stopped })
    }
}
