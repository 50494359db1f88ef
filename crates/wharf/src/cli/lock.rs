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
    /// Run this version of a server beside the locked one, and compare them on recorded calls
    #[arg(long = "try", value_name = "SERVER=VERSION", conflicts_with_all = ["names", "check", "diff", "against", "upgrade", "server", "from_server"])]
    pub(crate) try_version: Option<String>,
    /// With --try: the recording that has the calls [default: the latest calls of the journal]
    #[arg(long, value_name = "FILE", requires = "try_version")]
    pub(crate) cassette: Option<PathBuf>,
    /// With --try: how many of the latest calls of the journal to look at [default: 20]
    #[arg(long, value_name = "N", requires = "try_version", conflicts_with = "cassette")]
    pub(crate) calls: Option<usize>,
    /// With --try: also call these tools, which may have effects: server:tool, where * stands for anything
    #[arg(long, value_name = "PATTERN", requires = "try_version")]
    pub(crate) also: Vec<String>,
    /// With --try: lock the new version if it answers the same, or with --accept in any case
    #[arg(long, requires = "try_version")]
    pub(crate) promote: bool,
}
