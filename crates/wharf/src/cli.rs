//! The command line: commands, arguments and options.

mod clients;
mod examples;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use clients::{AddArgs, ConnectArgs, InitArgs};
use std::path::PathBuf;

/// The agent file that is read if none is named.
pub(crate) const USUAL_FILE: &str = "agent.yaml";

/// MCP servers dock here, and agents pick up their tools.
#[derive(Debug, Parser)]
#[command(name = "wharf", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Common {
    /// The agent file; `-` reads it from standard input
    #[arg(short, long, global = true, value_name = "FILE", default_value = USUAL_FILE)]
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
    /// Log more: -v what is done, -vv what servers say, -vvv everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// How logs are written to stderr
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Colour,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write an agent.yaml: a working example, or the servers of another client
    #[command(after_help = examples::INIT)]
    Init(InitArgs),
    /// Add a server to the agent file: a package, an address, a manifest, or a client's JSON block
    #[command(after_help = examples::ADD)]
    Add(AddArgs),
    /// Write wharf into another client's configuration
    #[command(after_help = examples::CONNECT)]
    Connect(ConnectArgs),
    /// Validate the agent file; starts nothing
    #[command(after_help = examples::CHECK)]
    Check {
        /// A missing description is an error
        #[arg(long)]
        strict: bool,
    },
    /// Show what each server resolves to, and why
    #[command(after_help = examples::EXPLAIN)]
    Explain {
        /// Only this one
        name: Option<String>,
    },
    /// Connect to every server, or to one, and say how it is and what to do about it
    #[command(after_help = examples::DOCTOR)]
    Doctor {
        /// Only this server
        name: Option<String>,
    },
    /// List the tools of all servers or of one, or show one tool in full
    #[command(after_help = examples::TOOLS)]
    Tools(ToolsArgs),
    /// List the prompts of all servers, or of one
    #[command(after_help = examples::PROMPTS)]
    Prompts {
        /// Only this server
        name: Option<String>,
    },
    /// List the resources of all servers, or of one
    #[command(after_help = examples::RESOURCES)]
    Resources {
        /// Only this server
        name: Option<String>,
    },
    /// Call a tool
    #[command(after_help = examples::CALL)]
    Call(CallArgs),
    /// Fill in a prompt
    #[command(after_help = examples::PROMPT)]
    Prompt {
        /// The prompt: its name, or `server:name`
        name: String,
        /// Arguments, as key=value
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
    },
    /// Read a resource
    #[command(after_help = examples::READ)]
    Read {
        /// Its address
        uri: String,
        /// Write pictures, sound and other binary content into this folder
        #[arg(long, value_name = "FOLDER")]
        save: Option<PathBuf>,
    },
    /// Sign in to a remote server
    #[command(after_help = examples::LOGIN)]
    Login {
        /// The server
        name: String,
        /// Forget what was granted instead
        #[arg(long)]
        logout: bool,
    },
    /// Serve the built-in Todo server to other programs
    #[command(after_help = examples::TODO)]
    Todo(TodoArgs),
    /// Serve all tools on one port: MCP over every transport, and REST
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Manage the servers of a gateway that runs
    #[command(after_help = examples::SOURCES)]
    Sources(SourcesArgs),
    /// Serve all tools as one MCP server on stdin and stdout, for desktop clients
    #[command(after_help = examples::STDIO)]
    Stdio,
    /// Print the JSON Schema of agent.yaml, for editors
    #[command(after_help = examples::SCHEMA)]
    Schema,
    /// Print completions for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether it keeps something in the state folder.
    pub(crate) fn keeps_state(&self) -> bool {
        use Command::{Add, Check, Completions, Connect, Explain, Init, Schema};
        !matches!(
            self,
            Init(_) | Add(_) | Connect(_) | Check { .. } | Explain { .. } | Schema | Completions { .. }
        )
    }
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// A server, or a tool: its shown name, `server:tool`, or a bare name that is unique
    pub(crate) name: Option<String>,
    /// Show whole descriptions, and those of the parameters
    #[arg(short, long)]
    pub(crate) long: bool,
    /// Start nothing: list what was there the last time
    #[arg(long)]
    pub(crate) cached: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool: its shown name, `server:tool`, or a bare name that is unique
    pub(crate) tool: String,
    /// Arguments: key=value, read by the tool's schema, or key:=JSON
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// Arguments as a JSON object: inline, @file, or - for standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Seconds to wait for the answer [default: the server's request_timeout]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Write pictures, sound and other binary content into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
    /// Start the server for this call, even if a gateway runs that has it
    #[arg(long)]
    pub(crate) direct: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on [default: $WHARF_LISTEN, what wharf.toml says, or 127.0.0.1:7373]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Database for calls and todos: sqlite:PATH or postgres://… [default: $WHARF_DATABASE, what wharf.toml says, or
    /// wharf.db in $WHARF_HOME]
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Let everybody in who can reach the port; on loopback only
    #[arg(long)]
    pub(crate) no_auth: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SourcesArgs {
    /// The gateway [default: the one that runs on the state folder, else http://127.0.0.1:7373]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    #[command(subcommand)]
    pub(crate) command: SourcesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SourcesCommand {
    /// List its servers, and how each of them is
    #[command(after_help = examples::SOURCES_LIST)]
    List,
    /// Register a server
    #[command(after_help = examples::SOURCES_ADD)]
    Add {
        /// Definition of the server as JSON: a file, - for standard input, or the JSON itself
        #[arg(value_name = "SERVER")]
        source: String,
    },
    /// Remove a server that was registered
    #[command(after_help = examples::SOURCES_REMOVE)]
    Remove {
        /// Its name or id
        name: String,
    },
    /// Read the tools of a server again
    #[command(after_help = examples::SOURCES_REFRESH)]
    Refresh {
        /// Its name or id
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TodoArgs {
    /// How clients come in
    #[arg(long, value_name = "TRANSPORT", default_value = "stdio")]
    pub(crate) transport: TodoTransport,
    /// Address to listen on, for every transport but stdio
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7374")]
    pub(crate) listen: String,
    /// Database for the todos: sqlite:PATH or postgres://… [default: $WHARF_DATABASE, what wharf.toml says, or wharf.db in
    /// $WHARF_HOME]
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TodoTransport {
    /// Our stdin and stdout
    Stdio,
    /// Streamable HTTP, at /mcp
    Http,
    /// The older HTTP with server-sent events, at /sse
    Sse,
    /// WebSocket, at /ws
    Websocket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people
    Text,
    /// A JSON document per line
    Json,
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
