//! The arguments of `wharf run` and `wharf chat`.

use super::CassetteArgs;
use clap::Args;

/// Options of every command that runs the agent.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArgs {
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
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The message; - or nothing reads it from standard input
    pub(crate) message: Option<String>,
    /// Add a text, an image or a resource of a server to the message; can be repeated
    #[arg(long, value_name = "FILE|URI")]
    pub(crate) attach: Vec<String>,
    /// Send a prompt of a server in place of a message: its name, and its arguments as key=value
    #[arg(long, value_names = ["NAME", "KEY=VALUE"], num_args = 1.., conflicts_with = "message")]
    pub(crate) prompt: Vec<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Keep the conversation in the database; `wharf conversations` shows it
    #[arg(long)]
    pub(crate) save: bool,
    /// Continue a kept conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Print one JSON object per event to stdout
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// Continue the latest conversation
    #[arg(long = "continue", conflicts_with = "conversation")]
    pub(crate) continues: bool,
    /// Continue this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Keep nothing in the database
    #[arg(long, conflicts_with_all = ["continues", "conversation"])]
    pub(crate) no_save: bool,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
}
