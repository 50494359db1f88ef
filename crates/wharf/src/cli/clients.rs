//! The arguments of the commands that import servers from other clients and write wharf into their configuration.

use crate::import::Client;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Import from a client: claude, claude-code, vscode, cursor, windsurf, codex, zed, gemini, or the path of a file
    #[arg(long, value_name = "CLIENT")]
    pub(crate) from: Option<String>,
    /// Add the servers to an existing agent file
    #[arg(long, requires = "from")]
    pub(crate) merge: bool,
    /// Write a model for `wharf run` and `wharf chat`, such as ollama/qwen3 or anthropic/claude-sonnet-4-5
    #[arg(long, value_name = "PROVIDER/NAME", conflicts_with = "from")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// A package (@scope/name, npm:NAME, pypi:NAME, docker:IMAGE), an address (https://…), a server.json or plugin.json,
    /// a bundle (.mcpb), a client's file or JSON block, or - for JSON on standard input
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// Name of the server in the agent file
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Arguments for the server itself, after a package
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// claude, claude-code, vscode, cursor, windsurf, codex, zed or gemini
    #[arg(value_parser = parse_client)]
    pub(crate) client: Client,
    /// Print the entry and the path of the file; write nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Remove wharf from the client's configuration
    #[arg(long, conflicts_with_all = ["print", "http"])]
    pub(crate) remove: bool,
    /// Write to the configuration of the project in this folder, not to the user's
    #[arg(long)]
    pub(crate) project: bool,
    /// Connect to a running `wharf serve` instead of starting `wharf stdio` [default: the configured listen address]
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub(crate) http: Option<String>,
    /// Name of the entry in the client's configuration
    #[arg(long, value_name = "NAME", default_value = "wharf")]
    pub(crate) name: String,
}

fn parse_client(cli_name: &str) -> Result<Client, String> {
    Client::from_cli_name(cli_name).ok_or_else(|| {
        let all: Vec<&str> = Client::ALL.iter().map(|it| it.cli_name()).collect();
        format!("the clients are {}", all.join(", "))
    })
}
