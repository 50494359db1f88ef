//! The arguments of `wharf run`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The message; - or nothing reads it from standard input
    pub(crate) message: Option<String>,
    /// Another model than that of the agent file, such as ollama/qwen3
    #[arg(long, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// Allow calls that need approval: server:tool, where * stands for anything
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// Deny calls, and do not offer these tools to the model
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
    /// Allow all calls that no rule denies
    #[arg(long)]
    pub(crate) yes: bool,
    /// Maximum number of answers with tools
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) max_turns: Option<u64>,
    /// Maximum duration in seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: Option<u64>,
    /// Print one JSON object per event to stdout
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
}
