//! Arguments of `wharf mock`.

use super::TodoTransport;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct MockArgs {
    /// The recording
    pub(crate) file: PathBuf,
    /// Transport for clients
    #[arg(long, value_name = "TRANSPORT", default_value = "stdio")]
    pub(crate) transport: TodoTransport,
    /// Loopback address to listen on, for every transport but stdio
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
    /// Serve only this server, with its own tool names
    #[arg(long, value_name = "SERVER", alias = "source")]
    pub(crate) server: Option<String>,
    /// Answer to a call that is made more often than it was recorded
    #[arg(long, value_name = "ANSWER", default_value = "repeat")]
    pub(crate) exhausted: ExhaustedAnswer,
    /// Short form of `--exhausted miss`
    #[arg(long, conflicts_with = "exhausted", hide = true)]
    pub(crate) miss: bool,
    /// Inject the faults of this file into calls
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
}

/// Answer to a call after the last recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExhaustedAnswer {
    /// The last recorded answer again
    Repeat,
    /// An error
    Miss,
}
