//! The validated configuration. A [`Plan`] is valid by construction, so no code after the loader checks it again.

use crate::{
    agent_settings::AgentSettings,
    download::Download,
    egress::Egress,
    file_position::FilePosition,
    glob::Glob,
    keywords::keywords,
    lock::{LockFile, LockSettings, LockedPackage},
    masked_string::MaskedString,
    model::Model,
    oauth::OAuthSettings,
    overrides::Overrides,
    record_settings::RecordSettings,
    result_settings::ResultSettings,
    server_config::ServerConfig,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use url::Url;

/// A complete agent file.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name of the agent.
    pub name: Option<MaskedString>,
    /// Purpose of the agent.
    pub description: Option<MaskedString>,
    /// Author of the agent.
    pub author: Option<MaskedString>,
    /// Model that `run` and `chat` use.
    pub model: Option<Model>,
    /// System prompt for the model.
    pub instructions: Option<MaskedString>,
    /// Limits, approval rules and other settings of `run` and `chat`.
    pub agent: AgentSettings,
    /// MCP servers, in the order of the file.
    pub sources: Vec<Source>,
    /// The lock file beside the agent file, if there is one.
    pub lock: Option<Arc<LockFile>>,
    /// Settings of recordings.
    pub record: RecordSettings,
}

/// One `tools:` entry: an MCP server, how to reach it and which policies apply to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Name of the source, unique in its plan.
    pub name: MaskedString,
    /// Description for users and models.
    pub description: MaskedString,
    /// Value of `server`: a package name or a label.
    pub server: MaskedString,
    /// Transport and address or process of the server.
    pub endpoint: Endpoint,
    /// Addresses that connections to the server may use. `None` allows any address its host resolves to.
    pub egress: Option<Egress>,
    /// Prefix for the names of its tools. Empty means no prefix.
    pub prefix: MaskedString,
    /// Settings that are passed to the server.
    pub config: Option<ServerConfig>,
    /// Folders that are offered to the server as MCP roots, as absolute paths.
    pub roots: Vec<MaskedString>,
    /// Whether to list its tools at startup.
    pub load_tools: bool,
    /// Whether to list its prompts at startup.
    pub load_prompts: bool,
    /// Whether clients of the gateway receive its instructions.
    pub instructions: bool,
    /// When its process or session runs.
    pub lifecycle: Lifecycle,
    /// Whether a failure of this source makes the whole command fail.
    pub required: bool,
    /// Protocol era to use.
    pub era: EraChoice,
    /// Timeouts for connecting and for requests.
    pub timeouts: Timeouts,
    /// Maximum size of a result, in bytes, before it is truncated.
    pub max_result_bytes: Option<u64>,
    /// Tools to offer to models. Empty means all.
    pub allow: Vec<Glob>,
    /// Tools never to offer to models.
    pub deny: Vec<Glob>,
    /// Whether the read-only hints of its tools count, so that such calls need no approval.
    pub trust: bool,
    /// Whether its tools are offered to models at once, or have to be found.
    pub defer_loading: DeferLoading,
    /// Changes to its tools: what clients see, and which arguments wharf fills in.
    pub overrides: Overrides,
    /// Treatment of a server that differs from the lock.
    pub lock: LockSettings,
    /// The locked package, if the lock applies to this source and knows it.
    pub package: Option<LockedPackage>,
    /// Which results are stored, and who receives handles to them.
    pub results: ResultSettings,
    /// Place of the entry in the file.
    pub at: FilePosition,
    /// Keys that the entry sets itself. All other values are defaults.
    pub written: Vec<&'static str>,
}

/// Whether the tools of a source are offered to models at once, or have to be found by a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeferLoading {
    /// Offered if they fit the budget.
    #[default]
    Auto,
    /// Always found by a question.
    Always,
    /// Always offered.
    Never,
}

/// Transport of a server and the data needed to connect to it.
#[derive(Clone, PartialEq)]
pub enum Endpoint {
    /// A built-in server in this process.
    Builtin(Builtin),
    /// A child process that speaks MCP on its standard input and output.
    Stdio(Launch),
    /// The HTTP+SSE transport of protocol version 2024-11-05.
    Sse(RemoteEndpoint),
    /// A WebSocket connection with one message per text frame. The second field is the URL in the form that may be
    /// shown.
    WebSocket(Url, MaskedString),
    /// Streamable HTTP.
    Http {
        /// Address and HTTP settings.
        remote: RemoteEndpoint,
        /// Whether to send `DELETE` for the session when closing it.
        terminate_on_close: bool,
    },
}

/// A server that is built into wharf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// `builtin:todo`
    Todo,
}

/// An MCP server that is reached over HTTP.
#[derive(Clone, PartialEq)]
pub struct RemoteEndpoint {
    /// URL of the server. It may contain secrets.
    pub url: Url,
    /// The URL in the form that may be shown.
    pub shown_url: MaskedString,
    /// Headers to send with every request.
    pub headers: Vec<(String, MaskedString)>,
    /// Sign-in settings, if the entry has some.
    pub auth: Option<Box<OAuthSettings>>,
    /// Timeout for establishing a connection.
    pub timeout: Option<Duration>,
    /// Timeout for the next event of an SSE stream.
    pub sse_read_timeout: Option<Duration>,
}

/// A child process: always a program with arguments, never a shell command.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Program to start.
    pub program: Program,
    /// Arguments of the program.
    pub args: Vec<Arg>,
    /// Complete environment of the child.
    pub env: ChildEnv,
    /// Names of the operator's variables that the entry could inherit but does not.
    pub withheld: BTreeSet<String>,
    /// Text encoding of the child's pipes.
    pub encoding: &'static encoding_rs::Encoding,
    /// Endpoint of the server, if it listens on a port that wharf assigns instead of using its pipes.
    pub port: Option<PortEndpoint>,
    /// Package or image that the launcher downloads before the first start, if any.
    pub download: Option<Download>,
    /// Timeout of that download.
    pub install_timeout: Duration,
    /// Versions of dependencies for uvx, as the text of a constraints file, if the lock pins them.
    pub constraints: Option<String>,
}

/// Endpoint of a child process that listens on a port of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortEndpoint {
    /// Transport of the endpoint.
    pub transport: PortTransport,
    /// Path of the endpoint.
    pub path: String,
}

/// Transport of a child process that listens on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortTransport {
    /// The HTTP+SSE transport of protocol version 2024-11-05.
    Sse,
    /// Streamable HTTP.
    Http,
}

/// A program that a source may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// One of the three launchers, looked up on the operator's PATH.
    Launcher(Launcher),
    /// A program that the operator granted, by absolute path.
    Granted(PathBuf),
    /// An interpreter for a plugin's script, looked up on the operator's PATH.
    Interpreter(Interpreter),
}

/// An interpreter that may run a script from a plugin's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// `python3`, or `python` if there is no `python3`.
    Python,
    /// Node.js.
    Node,
}

/// The launchers that agent.yaml may name without a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Launcher {
    /// Runs npm packages.
    Npx,
    /// Runs PyPI packages.
    Uvx,
    /// Runs container images.
    Docker,
}

/// One argument of a child process, with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Value to pass.
    pub value: MaskedString,
    /// Reason for the value's form.
    pub origin: ArgOrigin,
}

/// Origin of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgOrigin {
    /// Taken from `args` unchanged.
    Written,
    /// Derived from `server`, because the entry has no `args`.
    FromServer,
    /// Added by wharf. The field is the reason.
    Added(&'static str),
    /// Made absolute from a path relative to the agent file. The field is the path as written.
    Resolved(MaskedString),
    /// Extended by a version. The field is the bare package name as written.
    Versioned(MaskedString),
    /// Replaced by the version in the lock. The field is the package as written.
    Locked(MaskedString),
}

/// Complete environment of a child process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChildEnv(pub BTreeMap<String, EnvVar>);

/// One environment variable of a child process.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvVar {
    /// Value of the variable.
    pub value: MaskedString,
    /// Origin of the value.
    pub origin: EnvOrigin,
}

/// Origin of a child's environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvOrigin {
    /// Set by `env` in the entry.
    Entry,
    /// Set by the entry's env file. The field is the file's name.
    EnvFile(String),
    /// Inherited from the operator's environment through `inherit_env`.
    Inherited,
    /// Inherited from the operator's environment by every child.
    Always,
    /// Proxy or certificate setting from the operator's environment.
    Network,
    /// The launcher's own setting from the operator's environment.
    Launcher(Launcher),
    /// The entry's `config`, serialized as JSON.
    Config,
}

/// Lifetime of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// Runs from the first use until shutdown.
    Singleton,
    /// Runs for one call only.
    Transient,
}

/// Protocol era to use with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraChoice {
    /// Detects the era of the server.
    Auto,
    /// Handshake era, up to 2025-11-25.
    Legacy,
    /// Stateless era, 2026-07-28.
    Modern,
}

/// Timeouts of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Timeout for the server to become ready.
    pub connect: Duration,
    /// Timeout for a response. Every progress notification restarts it.
    pub request: Duration,
    /// Upper limit for a response, regardless of progress.
    pub total: Duration,
}

impl Interpreter {
    /// Executable names, in order of preference.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Interpreter::Python => &["python3", "python"],
            Interpreter::Node => &["node"],
        }
    }
}

impl Launch {
    /// Returns the package that is started in place of the one that agent.yaml names, if the lock pins its version.
    pub fn pinned_package(&self) -> Option<&MaskedString> {
        self.args.iter().find(|it| matches!(it.origin, ArgOrigin::Locked(_))).map(|it| &it.value)
    }

    /// Returns the package as agent.yaml names it, if the lock pins its version.
    pub fn written_package(&self) -> Option<&MaskedString> {
        self.args.iter().find_map(|it| match &it.origin {
            ArgOrigin::Locked(written) => Some(written),
            _ => None,
        })
    }
}

impl Source {
    /// Returns whether the entry sets `key` itself.
    pub fn sets_key(&self, key: &str) -> bool {
        self.written.contains(&key)
    }
}

impl Endpoint {
    /// Returns whether the server runs independently of this process.
    pub fn is_remote(&self) -> bool {
        match self {
            Endpoint::Builtin(_) | Endpoint::Stdio(_) => false,
            Endpoint::Sse(_) | Endpoint::WebSocket(..) | Endpoint::Http { .. } => true,
        }
    }

    /// Returns the URL, if the server has one.
    pub fn url(&self) -> Option<&Url> {
        match self {
            Endpoint::Builtin(_) | Endpoint::Stdio(_) => None,
            Endpoint::WebSocket(url, _) => Some(url),
            Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => Some(&remote.url),
        }
    }

    /// Returns the name of the transport.
    pub fn transport(&self) -> &'static str {
        match self {
            Endpoint::Builtin(_) => "builtin",
            Endpoint::Stdio(Launch { port: Some(port), .. }) => port.transport.as_str(),
            Endpoint::Stdio(_) => "stdio",
            Endpoint::Sse(_) => "sse",
            Endpoint::WebSocket(..) => "websocket",
            Endpoint::Http { .. } => "http",
        }
    }
}

impl PortTransport {
    /// Returns the name of the transport.
    pub fn as_str(self) -> &'static str {
        match self {
            PortTransport::Sse => "sse",
            PortTransport::Http => "http",
        }
    }

    /// Returns the path of an endpoint whose manifest names none.
    pub(crate) fn default_path(self) -> &'static str {
        match self {
            PortTransport::Sse => "/sse",
            PortTransport::Http => "/mcp",
        }
    }
}

// A URL may contain values of variables, so `Debug` prints its shown form.
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

impl fmt::Debug for RemoteEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RemoteEndpoint { url: _, shown_url, headers, auth, timeout, sse_read_timeout } = self;
        // Header values are often secrets, so only the names are printed.
        let headers: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("RemoteEndpoint")
            .field("shown_url", shown_url)
            .field("headers", &headers)
            .field("auth", auth)
            .field("timeout", timeout)
            .field("sse_read_timeout", sse_read_timeout)
            .finish()
    }
}

keywords!(Builtin { Todo = "builtin:todo" });
keywords!(Interpreter { Python = "python", Node = "node" });
keywords!(Launcher { Npx = "npx", Uvx = "uvx", Docker = "docker" });
keywords!(Lifecycle { Singleton = "singleton", Transient = "transient" });
keywords!(EraChoice { Auto = "auto", Legacy = "legacy", Modern = "modern" });
