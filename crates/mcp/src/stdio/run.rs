//! Runs a program that is not a server, such as an installer, to its end, contained like a server.

use super::{Command, process::Process};
use crate::{Exit, Failure};

/// Result of running a program.
#[derive(Debug)]
pub struct RunOutcome<T> {
    /// Exit status, if known.
    pub exit: Option<Exit>,
    /// Last part of its stderr.
    pub stderr: String,
    /// Value of the `stop` future, if it stopped the program.
    pub stopped: Option<T>,
}

impl Command {
    /// Runs the program with an empty stdin until it and all its descendants have ended. If `stop` completes first,
    /// the program gets TERM, then KILL.
    pub async fn run<T>(&self, stop: impl Future<Output = T>) -> Result<RunOutcome<T>, Failure> {
        let mut process = Process::start(self).await.map_err(|error| self.start_failure(&error))?;
        process.stdin = None;
        let stopped = tokio::select! {
            biased;
            () = process.wait_for_exit() => None,
            why = stop => Some(why),
        };
        let exit = process.stop().await;
        Ok(RunOutcome { exit, stderr: process.tail.text(), stopped })
    }
}
