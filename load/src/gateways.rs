//! Starts the programs of a measurement: each gateway in front of its own echo server, on free ports.

use crate::{
    command_line::CommandLine,
    drive::{Client, Target},
    machine::Gateway,
    post::{Address, HttpConnection},
};
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fmt::Write as _,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time,
};

/// Timeout for starting and stopping a program.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Bearer token for our gateway in a measurement.
const TOKEN: &str = "a-token-for-measuring-only";

/// Path of the API that registers servers.
const SOURCES_PATH: &str = "/api/v1/sources";

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

/// Transport between the gateway and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamTransport {
    Stdio,
    Http,
}

/// Gateway to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GatewayKind {
    /// No gateway: the server itself, over HTTP.
    NoGateway,
    Probe,
    /// An earlier build of wharf, to compare with.
    WharfBefore,
    /// wharf with `threads = 1`.
    WharfOnOneThread,
    Wharf,
    Rival,
}

/// Paths of the programs.
#[derive(Debug)]
pub(crate) struct Programs {
    own: PathBuf,
    wharf: PathBuf,
    before: Option<PathBuf>,
    rival: Option<PathBuf>,
    /// Whether wharf is also measured with one thread.
    one_thread: bool,
}

/// The server behind a gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpstreamServer {
    pub(crate) transport: UpstreamTransport,
    /// Number of its tools.
    pub(crate) tools: usize,
    /// Number of entries of wharf's agent file that name this server. The tools of the first have no prefix.
    pub(crate) sources: usize,
}

/// A running gateway and its server; both stop when it is dropped.
#[derive(Debug)]
pub(crate) struct RunningGateway {
    pub(crate) target: Target,
    /// Time from the start to the first tool list.
    pub(crate) started: Duration,
    /// URL of its server, if that is reached over HTTP.
    upstream: String,
    gateway: Child,
    _server: Option<Child>,
    _folder: TempDir,
}

impl UpstreamServer {
    /// A server with two tools.
    pub(crate) fn small(transport: UpstreamTransport) -> UpstreamServer {
        UpstreamServer { transport, tools: 2, sources: 1 }
    }
}

impl Programs {
    #[expect(clippy::disallowed_methods, reason = "it starts itself in its other roles")]
    pub(crate) fn of(command_line: &CommandLine) -> Result<Programs, String> {
        let own = std::env::current_exe().map_err(|it| it.to_string())?;
        let wharf = command_line.text("wharf").ok_or("missing `--wharf PROGRAM`")?;
        let path = |name| command_line.text(name).map(PathBuf::from);
        let one_thread = command_line.is_given("one-thread");
        Ok(Programs { own, wharf: wharf.into(), before: path("before"), rival: path("rival"), one_thread })
    }

    /// Lists the gateways to measure.
    pub(crate) fn gateways(&self) -> Vec<GatewayKind> {
        let before = self.before.as_ref().map(|_| GatewayKind::WharfBefore);
        let rival = self.rival.as_ref().map(|_| GatewayKind::Rival);
        let one_thread = self.one_thread.then_some(GatewayKind::WharfOnOneThread);
        let all = [Some(GatewayKind::Probe), before, one_thread, Some(GatewayKind::Wharf), rival];
        all.into_iter().flatten().collect()
    }

    /// Starts a gateway in front of a server.
    pub(crate) async fn start(
        &self,
        kind: GatewayKind,
        UpstreamServer { transport, tools, sources }: UpstreamServer,
    ) -> Result<RunningGateway, String> {
        let folder = TempDir::new().map_err(|it| it.to_string())?;
        let tools = tools.to_string();
        let echo = || {
            let mut echo = Command::new(&self.own);
            echo.args(["echo", "http", "--tools", &tools]);
            echo
        };
        let mut server = None;
        let mut upstream = String::new();
        if transport == UpstreamTransport::Http && kind != GatewayKind::NoGateway {
            let (child, url) = start_and_read_url(&mut echo()).await?;
            (server, upstream) = (Some(child), url);
        }
        let wharf = |program: &Path| {
            let configuration = WharfConfiguration {
                own: &self.own,
                upstream: (transport, &tools, &upstream),
                sources,
                threads: (kind == GatewayKind::WharfOnOneThread).then_some(1),
            };
            configuration.command(program, folder.path())
        };
        let started_at = Instant::now();
        let (gateway, url) = match kind {
            GatewayKind::NoGateway => start_and_read_url(&mut echo()).await?,
            GatewayKind::Probe => start_and_read_url(&mut self.probe(transport, &tools, &upstream)).await?,
            GatewayKind::Wharf | GatewayKind::WharfOnOneThread => {
                start_and_read_url(&mut wharf(&self.wharf)?).await?
            }
            GatewayKind::WharfBefore => {
                let program = self.before.as_ref().ok_or("missing `--before PROGRAM`")?;
                start_and_read_url(&mut wharf(program)?).await?
            }
            GatewayKind::Rival => self.rival(transport, &tools, &upstream, folder.path())?,
        };
        let target = Target {
            address: Address::of(&url),
            bearer: kind.is_wharf().then(|| format!("Bearer {TOKEN}")),
            tool: if kind == GatewayKind::Rival { "up/{}" } else { "{}" }.to_owned(),
            gateway: gateway.id().map(Gateway),
        };
        let started = Duration::ZERO;
        let mut running =
            RunningGateway { target, started, upstream, gateway, _server: server, _folder: folder };
        running.wait_for_tools().await?;
        running.started = started_at.elapsed();
        Ok(running)
    }

    fn probe(&self, transport: UpstreamTransport, tools: &str, upstream: &str) -> Command {
        let mut command = Command::new(&self.own);
        command.arg("probe");
        match transport {
            UpstreamTransport::Http => command.args(["--http", upstream]),
            UpstreamTransport::Stdio => {
                command.arg("--").arg(&self.own).args(["echo", "stdio", "--tools", tools])
            }
        };
        command
    }

    /// Runs `mcp-proxy`, which does not print its port, so it gets a port that was free a moment ago.
    fn rival(
        &self,
        transport: UpstreamTransport,
        tools: &str,
        upstream: &str,
        folder: &Path,
    ) -> Result<(Child, String), String> {
        let program = self.rival.as_ref().ok_or("there is no rival")?;
        let free =
            TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).map_err(|it| it.to_string())?;
        let port = free.port();
        let backend = match transport {
            UpstreamTransport::Http => format!("transport = \"http\"\nurl = \"{upstream}\"\n"),
            UpstreamTransport::Stdio => format!(
                "transport = \"stdio\"\ncommand = \"{}\"\nargs = [\"echo\", \"stdio\", \"--tools\", \"{tools}\"]\n",
                self.own.display()
            ),
        };
        let settings = format!(
            "[proxy]\nname = \"load\"\nseparator = \"/\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\
             [[backends]]\nname = \"up\"\n{backend}"
        );
        let file = folder.join("proxy.toml");
        fs::write(&file, settings).map_err(|it| it.to_string())?;
        let mut command = Command::new(program);
        let child = quiet(command.arg("--config").arg(&file)).stdout(Stdio::null()).spawn();
        Ok((child.map_err(|it| it.to_string())?, format!("http://127.0.0.1:{port}/")))
    }
}

/// The configuration of our gateway: the defaults, with token, checks, circuit breakers and journal.
struct WharfConfiguration<'a> {
    /// This program, which is the server.
    own: &'a Path,
    /// Transport, number of tools and URL of the server.
    upstream: (UpstreamTransport, &'a str, &'a str),
    sources: usize,
    threads: Option<usize>,
}

impl WharfConfiguration<'_> {
    /// Writes the configuration to `folder` and returns the command that runs a build of the gateway with it.
    fn command(&self, program: &Path, folder: &Path) -> Result<Command, String> {
        let own = self.own.display();
        let (transport, tools, upstream) = self.upstream;
        let endpoint = match transport {
            UpstreamTransport::Http => format!("transport: http\n    url: \"{upstream}\""),
            UpstreamTransport::Stdio => {
                format!("command: \"{own}\"\n    args: [\"echo\", \"stdio\", \"--tools\", \"{tools}\"]")
            }
        };
        let mut agent = "tools:\n".to_owned();
        for source in 0..self.sources {
            let (name, prefix) = match source {
                0 => ("up".to_owned(), String::new()),
                other => (format!("up{other}"), format!("up{other}")),
            };
            let _ = write!(
                agent,
                "  - name: {name}\n    description: echo\n    type: mcp\n    server: {name}\n    prefix: \"{prefix}\"\n    {endpoint}\n"
            );
        }
        let threads = self.threads.map(|it| format!("[server]\nthreads = {it}\n")).unwrap_or_default();
        let settings = format!("[grants]\ncommands = [\"{own}\"]\n{threads}");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).map_err(|it| it.to_string());
        write("agent.yaml", &agent)?;
        write("wharf.toml", &settings)?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--settings", "wharf.toml"])
            .current_dir(folder)
            .env("WHARF_HOME", folder.join("home"))
            .env("WHARF_TOKEN", TOKEN);
        Ok(command)
    }
}

impl GatewayKind {
    pub(crate) fn is_wharf(self) -> bool {
        matches!(self, GatewayKind::Wharf | GatewayKind::WharfBefore | GatewayKind::WharfOnOneThread)
    }
}

impl RunningGateway {
    async fn wait_for_tools(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let listed = self.tools().await;
            match listed {
                Ok(()) => return Ok(()),
                Err(why) if Instant::now() >= deadline => {
                    return Err(format!("it never listed its tools: {why}"));
                }
                Err(_) => time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    async fn tools(&self) -> Result<(), String> {
        let mut client = Client::connect(&self.target).await?;
        let answer = client.post(Bytes::from_static(LIST.as_bytes())).await?;
        let name = format!("\"{}\"", self.target.tool.replace("{}", "echo"));
        match memchr::memmem::find(&answer.body, name.as_bytes()) {
            Some(_) => Ok(()),
            None => Err(format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body))),
        }
    }

    /// Registers the server this many more times.
    pub(crate) async fn register_sources(&self, count: usize) -> Result<(), String> {
        let mut api =
            HttpConnection::to(&Address { path: SOURCES_PATH.to_owned(), ..self.target.address.clone() });
        let headers: Vec<_> = self.target.bearer.iter().map(|it| ("authorization", it)).collect();
        for number in 0..count {
            let (name, url) = (format!("more{number}"), &self.upstream);
            let source = format!(
                r#"{{"name":"{name}","description":"echo","type":"mcp","server":"{name}","transport":"http","url":"{url}"}}"#
            );
            let answer = api.post(&headers, source.into()).await?;
            if answer.status != 201 {
                return Err(format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body)));
            }
        }
        Ok(())
    }

    /// Stops the gateway with SIGTERM.
    pub(crate) async fn stop(mut self) {
        let pid = self.gateway.id().and_then(|it| Pid::from_raw(it.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
            let _ = time::timeout(START_TIMEOUT, self.gateway.wait()).await;
        }
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true)
}

/// Starts a program that prints its URL on stdout.
async fn start_and_read_url(command: &mut Command) -> Result<(Child, String), String> {
    let mut child = quiet(command).stdout(Stdio::piped()).spawn().map_err(|it| it.to_string())?;
    let stdout = child.stdout.take().ok_or("it has no stdout")?;
    let mut lines = BufReader::new(stdout).lines();
    let address = async {
        while let Ok(Some(line)) = lines.next_line().await {
            let url = line.split_whitespace().find(|it| it.starts_with("http://") && it.ends_with("/mcp"));
            if let Some(url) = url {
                return Some(url.to_owned());
            }
        }
        None
    };
    let address = time::timeout(START_TIMEOUT, address).await.ok().flatten();
    address.map(|it| (child, it)).ok_or_else(|| "it did not print its URL".to_owned())
}
