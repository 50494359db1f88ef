//! Arguments of `wharf lock`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    /// Only these servers
    #[arg(value_name = "SERVER")]
    pub(crate) names: Vec<String>,
    /// Compare with wharf.lock and write nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// With --check: start nothing; check that every entry is locked and that the file is intact
    #[arg(long, requires = "check")]
    pub(crate) offline: bool,
    /// Print the differences of all servers, of one, or of one tool, and write nothing
    #[arg(long, value_name = "SERVER[:TOOL]", num_args = 0..=1, conflicts_with_all = ["check", "accept"])]
    pub(crate) diff: Option<Option<String>>,
    /// Compare this file with wharf.lock and start nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "accept", "upgrade"])]
    pub(crate) against: Option<PathBuf>,
    /// Accept risky and breaking changes: all, or those of these tools
    #[arg(long, value_name = "SERVER:TOOL", num_args = 0.., conflicts_with = "check")]
    pub(crate) accept: Option<Vec<String>>,
    /// Start the versions that agent.yaml asks for instead of the locked ones
    #[arg(long)]
    pub(crate) upgrade: bool,
    /// With --accept: accept them on the gateway at this address
    #[arg(long, value_name = "URL", requires = "accept")]
    pub(crate) server: Option<String>,
    /// Write the lock of this gateway, with what was accepted there, into wharf.lock
    #[arg(long, value_name = "URL", conflicts_with_all = ["check", "diff", "accept", "against", "upgrade"])]
    pub(crate) from_server: Option<String>,
}
