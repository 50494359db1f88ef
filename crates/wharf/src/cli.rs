//! The command line: commands, arguments and options.

mod cassette;
mod clients;
mod examples;
mod help;
mod lock;
mod mock;
mod run;
mod test;
mod why;

pub(crate) use cassette::{CassetteArgs, LivePart, ReplayArgs};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
pub(crate) use clients::{AddArgs, ConnectArgs, InitArgs};
pub(crate) use lock::LockArgs;
pub(crate) use mock::{ExhaustedAnswer, MockArgs};
pub(crate) use run::{AgentArgs, ChatArgs, RunArgs};
use std::{ffi::OsString, path::PathBuf};
pub(crate) use test::TestArgs;
pub(crate) use why::{Verdict, WhyArgs, WhyAudience};

/// The agent file that is read if none is named.
pub(crate) const DEFAULT_AGENT_FILE: &str = "agent.yaml";

/// Connects MCP servers and serves their tools to agents.
#[derive(Debug, Parser)]
#[command(name = "wharf", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses a command line, which begins with the name of the program.
    pub(crate) fn parse_words(words: &[OsString]) -> Result<Cli, clap::Error> {
        let mut program = Cli::command();
        // Only the help needs the groups, and every start of the program would pay for them.
        if words.len() < 2 || words.iter().any(|it| it == "help" || it == "--help" || it == "-h") {
            program = program.clone().help_template(help::template(&program));
        }
        Cli::from_arg_matches(&program.try_get_matches_from(words)?)
    }
}

/// The options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Agent file; `-` reads it from standard input
    #[arg(short, long, global = true, value_name = "FILE", default_value = DEFAULT_AGENT_FILE)]
    pub(crate) file: PathBuf,
    /// Settings of the operator [default: wharf.toml in $WHARF_HOME]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Print one JSON document to stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Log more: -v actions, -vv server output, -vvv everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Format of the log on stderr
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
    /// Add a server to the agent file: a package, an address, a manifest, a bundle, or a client's JSON block
    #[command(after_help = examples::ADD)]
    Add(AddArgs),
    /// Write wharf into another client's configuration
    #[command(after_help = examples::CONNECT)]
    Connect(ConnectArgs),
    /// Validate the agent file; starts nothing
    #[command(after_help = examples::CHECK)]
    Check {
        /// Treat a missing description as an error
        #[arg(long)]
        strict: bool,
    },
    /// Show the resolved configuration of each server, and why
    #[command(after_help = examples::EXPLAIN)]
    Explain {
        /// Only this server
        name: Option<String>,
    },
    /// Connect to all servers, or to one, and show their status and hints
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
    /// Show or cancel a task that `wharf call --no-wait` has started
    #[command(after_help = examples::TASKS)]
    Tasks {
        #[command(subcommand)]
        command: TasksCommand,
    },
    /// Send a message to the agent's model, which may call tools
    #[command(after_help = examples::RUN)]
    Run(RunArgs),
    /// Talk to the agent's model, message by message
    #[command(after_help = examples::CHAT)]
    Chat(ChatArgs),
    /// Lock the servers: write wharf.lock, compare with it, or accept changes
    #[command(after_help = examples::LOCK)]
    Lock(LockArgs),
    /// Explain whether a tool can be called, and what stops it
    #[command(after_help = examples::WHY)]
    Why(WhyArgs),
    /// Find tools with poor or suspicious definitions, and suggest overrides
    #[command(after_help = examples::LINT)]
    Lint(LintArgs),
    /// Serve a recording of calls to any MCP client, for tests
    #[command(after_help = examples::MOCK)]
    Mock(MockArgs),
    /// Repeat recorded calls or conversations, and show what differs
    #[command(after_help = examples::REPLAY)]
    Replay(ReplayArgs),
    /// Test the agent: run scenarios against recordings, without servers, model or network
    #[command(after_help = examples::TEST)]
    Test(TestArgs),
    /// List, show and delete the agent's conversations
    #[command(after_help = examples::CONVERSATIONS)]
    Conversations {
        #[command(subcommand)]
        command: ConversationsCommand,
    },
    /// Get a prompt with its arguments filled in
    #[command(after_help = examples::PROMPT)]
    Prompt {
        /// Name of the prompt, or `server:name`
        name: String,
        /// Arguments, as key=value
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
    },
    /// Read a resource
    #[command(after_help = examples::READ)]
    Read {
        /// URI of the resource
        uri: String,
        /// Write images, audio and other binary content to this folder
        #[arg(long, value_name = "FOLDER")]
        save: Option<PathBuf>,
    },
    /// Sign in to a remote server
    #[command(after_help = examples::LOGIN)]
    Login {
        /// Name of the server
        name: String,
        /// Sign out: delete the stored credentials
        #[arg(long)]
        logout: bool,
    },
    /// Serve the built-in Todo server to other programs
    #[command(after_help = examples::TODO)]
    Todo(TodoArgs),
    /// Serve all tools on one port: MCP over every transport, and REST
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Open the console of a running gateway in the browser, signed in
    #[command(after_help = examples::CONSOLE)]
    Console(ConsoleArgs),
    /// Manage the servers of a running gateway
    #[command(after_help = examples::SOURCES)]
    Sources(SourcesArgs),
    /// Serve all tools as one MCP server on stdin and stdout, for desktop clients
    #[command(after_help = examples::STDIO)]
    Stdio(CassetteArgs),
    /// Print the JSON Schema of agent.yaml, for editors
    #[command(after_help = examples::SCHEMA)]
    Schema {
        /// Print the OpenAPI document of the gateway instead
        #[arg(long)]
        api: bool,
    },
    /// Print completions for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// Name of the shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Checks whether the command writes to the state folder.
    pub(crate) fn uses_state_folder(&self) -> bool {
        use Command::{Add, Check, Completions, Connect, Explain, Init, Schema};
        !matches!(
            self,
            Init(_)
                | Add(_)
                | Connect(_)
                | Check { .. }
                | Explain { .. }
                | Schema { .. }
                | Completions { .. }
        )
    }
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// A server, or a tool: its shown name, `server:tool`, or a bare name that is unique
    pub(crate) name: Option<String>,
    /// Show full descriptions, also of the parameters
    #[arg(short, long)]
    pub(crate) long: bool,
    /// Start no server; list the tools of the last run
    #[arg(long)]
    pub(crate) cached: bool,
    /// Show how many tokens of a model's context each tool takes
    #[arg(long)]
    pub(crate) tokens: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    /// Only this server
    pub(crate) name: Option<String>,
    /// Fail if there is such a finding, for example D-05; may be repeated
    #[arg(long, value_name = "CODE")]
    pub(crate) deny: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool: its shown name, `server:tool`, or a bare name that is unique
    pub(crate) tool: String,
    /// Arguments: key=value, converted by the tool's schema, or key:=JSON
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// Arguments as a JSON object: inline, @file, or - for standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Timeout in seconds [default: the server's request_timeout]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Write images, audio and other binary content to this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
    /// Start the server for this call, even if a running gateway has it
    #[arg(long)]
    pub(crate) direct: bool,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
    /// Print the id of the task instead of waiting, if the server makes the call a task; remote servers only
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Show the status of a task, or its result
    #[command(after_help = examples::TASKS_GET)]
    Get {
        /// Id of the task, as `wharf call --no-wait` prints it
        id: String,
    },
    /// Cancel a task
    #[command(after_help = examples::TASKS_CANCEL)]
    Cancel {
        /// Id of the task, as `wharf call --no-wait` prints it
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConversationsCommand {
    /// List the conversations, the latest first
    #[command(after_help = examples::CONVERSATIONS_LIST)]
    List,
    /// Show what happened in a conversation
    #[command(after_help = examples::CONVERSATIONS_SHOW)]
    Show {
        /// Id of the conversation
        id: String,
    },
    /// Delete a conversation and everything that is kept of it, except the calls in the journal
    #[command(after_help = examples::CONVERSATIONS_DELETE)]
    Delete {
        /// Id of the conversation
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on [default: $WHARF_LISTEN, wharf.toml, or 127.0.0.1:7373]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Database for calls and todos: sqlite:PATH or postgres://… [default: $WHARF_DATABASE, wharf.toml, or
    /// wharf.db in $WHARF_HOME]
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Disable authentication; only allowed on loopback
    #[arg(long)]
    pub(crate) no_auth: bool,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConsoleArgs {
    /// URL of the gateway [default: the running gateway of the state folder, else http://127.0.0.1:7373]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Print the link and open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SourcesArgs {
    /// URL of the gateway [default: the running gateway of the state folder, else http://127.0.0.1:7373]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    #[command(subcommand)]
    pub(crate) command: SourcesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SourcesCommand {
    /// List the servers and their status
    #[command(after_help = examples::SOURCES_LIST)]
    List,
    /// Register a server
    #[command(after_help = examples::SOURCES_ADD)]
    Add {
        /// Definition of the server as JSON: a file, - for standard input, or the JSON itself
        #[arg(value_name = "SERVER")]
        source: String,
    },
    /// Remove a registered server
    #[command(after_help = examples::SOURCES_REMOVE)]
    Remove {
        /// Name or id of the server
        name: String,
    },
    /// Refresh the tool list of a server
    #[command(after_help = examples::SOURCES_REFRESH)]
    Refresh {
        /// Name or id of the server
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TodoArgs {
    /// Transport for clients
    #[arg(long, value_name = "TRANSPORT", default_value = "stdio")]
    pub(crate) transport: TodoTransport,
    /// Address to listen on, for every transport but stdio
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7374")]
    pub(crate) listen: String,
    /// Database for the todos: sqlite:PATH or postgres://… [default: $WHARF_DATABASE, wharf.toml, or wharf.db in
    /// $WHARF_HOME]
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TodoTransport {
    /// stdin and stdout
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
    /// One line of text per event
    Text,
    /// One JSON object per line
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
    /// Checks whether to use colour, given whether the output is a terminal.
    pub(crate) fn is_enabled(self, is_terminal: bool) -> bool {
        match self {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => is_terminal && !crate::environment::no_colour(),
        }
    }
}
