//! What can be typed.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// MCP servers dock here, and agents pick up their tools.
#[derive(Debug, Parser)]
#[command(name = "wharf", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command understands.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The agent file
    #[arg(short, long, global = true, value_name = "FILE", default_value = "agent.yaml")]
    pub(crate) file: PathBuf,
    /// The operator's settings [default: wharf.toml in $WHARF_HOME]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Print one JSON document to stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Colour,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write an agent.yaml: a working example, or the servers of another client
    Init {
        /// Import from a client's configuration: claude, vscode, cursor, or a path
        #[arg(long, value_name = "CLIENT")]
        from: Option<String>,
    },
    /// Validate the agent file; starts nothing
    Check {
        /// A missing description is an error
        #[arg(long)]
        strict: bool,
    },
    /// Show what each server resolves to, and why
    Explain {
        /// Only this one
        name: Option<String>,
    },
    /// Print the JSON Schema of agent.yaml, for editors
    Schema,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

impl Colour {
    /// Whether to use colour on something that is or is not a terminal.
    pub(crate) fn wanted(self, is_terminal: bool) -> bool {
        match self {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => is_terminal && !crate::surroundings::no_colour(),
        }
    }
}
