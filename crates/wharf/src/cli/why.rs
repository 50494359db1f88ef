//! Arguments of `wharf why`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The tool: its shown name, `server:tool`, or a bare name that is unique; or the id of a conversation
    #[arg(value_name = "TOOL|CONVERSATION")]
    pub(crate) tool: String,
    /// A call of the conversation
    #[arg(value_name = "CALL", conflicts_with_all = ["audience", "expect"])]
    pub(crate) call: Option<String>,
    /// Explain it for a client, or for the model of the agent, for which `allow`, `deny` and `approval` count
    #[arg(long = "for", value_name = "AUDIENCE", value_enum)]
    pub(crate) audience: Option<WhyAudience>,
    /// Explain it for a client with this token of wharf.toml, whose role counts
    #[arg(long, value_name = "TOKEN")]
    pub(crate) principal: Option<String>,
    /// Start no server; use the tool list of the last run
    #[arg(long, conflicts_with = "server")]
    pub(crate) cached: bool,
    /// Ask the gateway at this address
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Succeed only if this is the answer
    #[arg(long, value_name = "ANSWER")]
    pub(crate) expect: Option<Verdict>,
}

/// For whom a tool is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhyAudience {
    /// A client of the gateway, or a person
    Client,
    /// The model of the agent
    Agent,
}

/// An expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verdict {
    /// The tool can be called
    Callable,
    /// The model may call it, after somebody approved the call
    Asked,
    /// Something stops it
    Hidden,
}
