//! What an agent file means once it is known to be right. A `Plan` is valid: nothing after the loader checks again.

use crate::{config::download::Download, glob::Glob, text::Text};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    time::Duration,
};
use url::Url;
use wharf_mcp::Reach;

/// A whole agent file.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What the agent is called.
    pub name: Option<Text>,
    /// What it is for.
    pub description: Option<Text>,
    /// Who wrote it.
    pub author: Option<Text>,
    /// The model that `run` and `chat` talk to.
    pub model: Option<Model>,
    /// What the model is told first.
    pub instructions: Option<Text>,
    /// The servers, in the order of the file.
    pub sources: Vec<Source>,
}

/// The model of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Who serves it.
    pub provider: Provider,
    /// The provider's name for it.
    pub name: Text,
    /// 0 to 2.
    pub temperature: Option<f64>,
    /// The longest answer.
    pub max_tokens: Option<u64>,
    /// 0 to 1.
    pub top_p: Option<f64>,
    /// Where the provider listens, if not at its usual address.
    pub endpoint: Option<Text>,
    /// The key.
    pub api_key: Option<Text>,
    /// The revision of the provider's interface.
    pub api_version: Option<Text>,
}

/// Who serves a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// `openai`
    OpenAi,
    /// `azure_openai`
    AzureOpenAi,
    /// `anthropic`
    Anthropic,
    /// `ollama`
    Ollama,
    /// `gemini`
    Gemini,
}

/// One `tools:` entry: a server to reach, and how to treat it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Unique in its plan.
    pub name: Text,
    /// For people and models.
    pub description: Text,
    /// What the entry says it is, a package or a label.
    pub server: Text,
    /// How to reach it.
    pub endpoint: Endpoint,
    /// Which addresses it may lead to; without it, wherever its own address leads.
    pub reach: Option<Reach>,
    /// What is put before the names of its tools; empty: nothing is.
    pub prefix: Text,
    /// Passed on to the server.
    pub config: Option<ServerConfig>,
    /// The folders it is told it may work in, if it asks; absolute paths.
    pub roots: Vec<Text>,
    /// Whether its tools are listed at the start.
    pub load_tools: bool,
    /// Whether its prompts are.
    pub load_prompts: bool,
    /// When it runs.
    pub lifecycle: Lifecycle,
    /// Whether nothing works without it.
    pub required: bool,
    /// Which era of the protocol to speak.
    pub era: EraChoice,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// The longest result that is passed on whole.
    pub max_result_bytes: Option<u64>,
    /// The tools that a model is offered; empty: all.
    pub allow: Vec<Glob>,
    /// The tools that a model is never offered.
    pub deny: Vec<Glob>,
    /// The keys that the entry has; everything else is a default.
    pub written: Vec<&'static str>,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Endpoint {
    /// Ours, in this process.
    Builtin(Builtin),
    /// A child process.
    Stdio(Launch),
    /// HTTP with server-sent events, as of 2024-11-05.
    Sse(Remote),
    /// One socket, one message per text frame.
    WebSocket(Url, Text),
    /// Streamable HTTP.
    Http {
        /// Where it is.
        remote: Remote,
        /// Whether the session is ended on the server too when we leave.
        terminate_on_close: bool,
    },
}

/// A server that is part of wharf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// `builtin:todo`
    Todo,
}

/// A server behind HTTP.
#[derive(Clone, PartialEq)]
pub struct Remote {
    /// Its address.
    pub url: Url,
    /// The address in the form that may be shown.
    pub shown_url: Text,
    /// Sent with every request.
    pub headers: Vec<(String, Text)>,
    /// For a connection to stand.
    pub timeout: Option<Duration>,
    /// For the next event of a stream.
    pub sse_read_timeout: Option<Duration>,
}

/// A child process: always a program and its arguments, never a shell.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// What is started.
    pub program: Program,
    /// With what.
    pub args: Vec<Arg>,
    /// Everything the child finds in its environment.
    pub env: ChildEnv,
    /// Names of the operator's variables that the entry could have passed on, and does not.
    pub withheld: BTreeSet<String>,
    /// How its pipes are encoded.
    pub encoding: &'static encoding_rs::Encoding,
    /// The path of its stream, where it speaks by server-sent events on a port that it is given, and not by its pipes.
    pub serves: Option<String>,
    /// The package or image that its launcher downloads before the first start, if any.
    pub download: Option<Download>,
    /// The time limit of that download.
    pub install_timeout: Duration,
}

/// A program that may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// One of the three, found on the operator's PATH.
    Launcher(Launcher),
    /// One that the operator granted, by absolute path.
    Granted(PathBuf),
    /// One that runs a plugin's script, found on the operator's PATH.
    Interpreter(Interpreter),
}

/// What may run a script of a plugin's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// `python3`, else `python`.
    Python,
    /// Node.js.
    Node,
}

/// The programs that agent.yaml may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Launcher {
    /// Runs packages of npm.
    Npx,
    /// Runs packages of PyPI.
    Uvx,
    /// Runs images.
    Docker,
}

/// One argument, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// What is passed.
    pub value: Text,
    /// Why it is passed in this form.
    pub origin: ArgOrigin,
}

/// Where an argument comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgOrigin {
    /// It is in `args` as it is.
    Written,
    /// There is no `args`; it follows from `server`.
    FromServer,
    /// It was added.
    Added(&'static str),
    /// It was a path relative to the agent file.
    Resolved(Text),
    /// It was the bare name of a package.
    Versioned(Text),
}

/// The environment of a child, complete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChildEnv(pub BTreeMap<String, EnvVar>);

/// One variable of a child.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvVar {
    /// Its value.
    pub value: Text,
    /// Where the value comes from.
    pub origin: EnvOrigin,
}

/// Where a variable of a child comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvOrigin {
    /// `env` in the entry.
    Entry,
    /// The entry's env file.
    EnvFile(String),
    /// The operator's environment, named in `inherit_env`.
    Inherited,
    /// The operator's environment, passed to every child.
    Always,
    /// The operator's environment: proxies and certificates.
    Network,
    /// The operator's environment: the launcher's own settings.
    Launcher(Launcher),
    /// `config`, as JSON.
    Config,
}

/// Settings for the server, of any shape. Two trees: the one to send, and the one to show.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    pub(crate) value: serde_json::Value,
    pub(crate) shown: serde_json::Value,
}

/// When a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// From its first use to the end.
    Singleton,
    /// For one call.
    Transient,
}

/// Which era of the protocol to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraChoice {
    /// Whichever the server speaks.
    Auto,
    /// The handshake, up to 2025-11-25.
    Legacy,
    /// Stateless, 2026-07-28.
    Modern,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the server to be ready.
    pub connect: Duration,
    /// For an answer, from the request or its latest progress.
    pub request: Duration,
    /// For an answer in all, however much progress there is.
    pub total: Duration,
}

impl Interpreter {
    /// The names of its program, the better one first.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Interpreter::Python => &["python3", "python"],
            Interpreter::Node => &["node"],
        }
    }
}

impl Source {
    /// Whether the entry says this itself.
    pub fn says(&self, key: &str) -> bool {
        self.written.contains(&key)
    }
}

impl Endpoint {
    /// Whether it runs without us.
    pub fn is_remote(&self) -> bool {
        match self {
            Endpoint::Builtin(_) | Endpoint::Stdio(_) => false,
            Endpoint::Sse(_) | Endpoint::WebSocket(..) | Endpoint::Http { .. } => true,
        }
    }

    /// Where it is, if it is reached by an address.
    pub fn url(&self) -> Option<&Url> {
        match self {
            Endpoint::Builtin(_) | Endpoint::Stdio(_) => None,
            Endpoint::WebSocket(url, _) => Some(url),
            Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => Some(&remote.url),
        }
    }

    /// The name of the transport.
    pub fn transport(&self) -> &'static str {
        match self {
            Endpoint::Builtin(_) => "builtin",
            Endpoint::Stdio(Launch { serves: Some(_), .. }) => "sse",
            Endpoint::Stdio(_) => "stdio",
            Endpoint::Sse(_) => "sse",
            Endpoint::WebSocket(..) => "websocket",
            Endpoint::Http { .. } => "http",
        }
    }
}

impl ServerConfig {
    /// The settings. Only for what passes them on.
    pub fn expose(&self) -> &serde_json::Value {
        &self.value
    }

    /// The settings as they may be printed.
    pub fn shown(&self) -> &serde_json::Value {
        &self.shown
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shown)
    }
}

// An address may hold what came from a variable, so its shown form stands for it.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Builtin(it) => f.debug_tuple("Builtin").field(it).finish(),
            Endpoint::Stdio(it) => f.debug_tuple("Stdio").field(it).finish(),
            Endpoint::Sse(it) => f.debug_tuple("Sse").field(it).finish(),
            Endpoint::WebSocket(_, shown) => f.debug_tuple("WebSocket").field(shown).finish(),
            Endpoint::Http { remote, terminate_on_close } => f
                .debug_struct("Http")
                .field("remote", remote)
                .field("terminate_on_close", terminate_on_close)
                .finish(),
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Remote { url: _, shown_url, headers, timeout, sse_read_timeout } = self;
        // No value of a header is shown, whether or not it came from a variable.
        let headers: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Remote")
            .field("shown_url", shown_url)
            .field("headers", &headers)
            .field("timeout", timeout)
            .field("sse_read_timeout", sse_read_timeout)
            .finish()
    }
}

/// Gives an enum of words its spelling: parsing, printing and listing from one table.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// Every value, as it is written.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self { $($type::$variant => $word),+ }
            }

            /// The value that is written so.
            pub fn parse(word: &str) -> Option<$type> {
                match word { $($word => Some($type::$variant),)+ _ => None }
            }
        }
    };
}

words!(Provider { OpenAi = "openai", AzureOpenAi = "azure_openai", Anthropic = "anthropic", Ollama = "ollama", Gemini = "gemini" });
words!(Builtin { Todo = "builtin:todo" });
words!(Interpreter { Python = "python", Node = "node" });
words!(Launcher { Npx = "npx", Uvx = "uvx", Docker = "docker" });
words!(Lifecycle { Singleton = "singleton", Transient = "transient" });
words!(EraChoice { Auto = "auto", Legacy = "legacy", Modern = "modern" });
