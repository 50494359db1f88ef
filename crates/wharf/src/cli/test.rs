//! Arguments of `wharf test`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Scenarios, or folders that are searched for *.test.yaml [default: this folder]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Write the results as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Record the scenarios again, with the real model and the real servers
    #[arg(long)]
    pub(crate) update: bool,
    /// Only scenarios whose name or file matches; * stands for anything
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,
    /// Number of scenarios that run at the same time [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
}
