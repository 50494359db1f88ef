//! The arguments of the commands that import servers from other clients and write wharf into their configuration.

use crate::import::Client;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Import from a client: claude, claude-code, vscode, cursor, windsurf, codex, zed, gemini, or the path of a file
    #[arg(long, value_name = "CLIENT")]
    pub(crate) from: Option<String>,
    /// Add the servers to an agent file that is there already
    #[arg(long, requires = "from")]
    pub(crate) merge: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// A package (@scope/name, npm:NAME, pypi:NAME, docker:IMAGE), an address (https://…), a server.json or plugin.json,
    /// a client's file or JSON block, or - for JSON on standard input
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
    #[arg(value_parser = client)]
    pub(crate) client: Client,
    /// Only show what would be written, and where
    #[arg(long)]
    pub(crate) print: bool,
    /// Take wharf out of the client's configuration again
    #[arg(long, conflicts_with_all = ["print", "http"])]
    pub(crate) remove: bool,
    /// Write into the configuration of the project in this folder, not into the user's own
    #[arg(long)]
    pub(crate) project: bool,
    /// Reach a running `wharf serve` instead of starting `wharf stdio` [default: where this wharf would listen]
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub(crate) http: Option<String>,
    /// Name of the entry in the client's configuration
    #[arg(long, value_name = "NAME", default_value = "wharf")]
    pub(crate) name: String,
}

fn client(word: &str) -> Result<Client, String> {
    Client::named(word).ok_or_else(|| {
        let all: Vec<&str> = Client::ALL.iter().map(|it| it.word()).collect();
        format!("the clients are {}", all.join(", "))
    })
}
