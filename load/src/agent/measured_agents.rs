//! The agents that are measured: `wharf serve`, and another one from PyPI.

use super::{
    AgentPrograms,
    chat_client::{Exchange, ResponseStream},
    scripted_agent::Task,
};
use crate::{machine::Gateway, post::Address};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Bearer token in a measurement.
const TOKEN: &str = "a-token-for-measuring-only";
/// The program that drives the other agent.
const OTHER_AGENT: &str = include_str!("other_agent.py");

/// Both agents.
pub(super) struct MeasuredAgents {
    pub(super) wharf: WharfAgent,
    pub(super) other: OtherAgent,
}

/// A process in its own folder. Ends when it is dropped.
pub(super) struct AgentProcess {
    child: Child,
    _folder: TempDir,
}

impl AgentProcess {
    /// Waits for its end.
    pub(super) fn wait(&mut self) -> Result<(), String> {
        self.child.wait().map(drop).map_err(|it| it.to_string())
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // A gateway stops its servers.
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// `wharf serve` with the scripted model and one server.
pub(super) struct WharfAgent {
    process: AgentProcess,
    address: Address,
}

fn io_error(error: std::io::Error) -> String {
    error.to_string()
}

/// Returns the entry of agent.yaml for the echo server over stdio.
fn echo_server(own: &Path) -> String {
    format!("command: \"{}\"\n    args: [\"echo\", \"stdio\"]", own.display())
}

/// Writes the configuration of wharf into a new folder.
fn configure(programs: &AgentPrograms, model: &str, endpoint: &str) -> Result<TempDir, String> {
    let folder = TempDir::new().map_err(io_error)?;
    let agent = format!(
        "model:\n  provider: openai\n  name: m\n  endpoint: {model}\n  api_key: k\n\
         approval: {{default: allow, after_untrusted: allow, ask: ['up:payload']}}\n\
         tools:\n  - name: up\n    description: echo\n    type: mcp\n    server: up\n    {endpoint}\n"
    );
    let settings = format!("[grants]\ncommands = [\"{}\"]\n", programs.own.display());
    fs::write(folder.path().join("agent.yaml"), agent).map_err(io_error)?;
    fs::write(folder.path().join("wharf.toml"), settings).map_err(io_error)?;
    Ok(folder)
}

fn wharf_command(programs: &AgentPrograms, folder: &TempDir) -> Command {
    let mut command = Command::new(&programs.wharf);
    command
        .current_dir(folder.path())
        .env("WHARF_HOME", folder.path().join("home"))
        .env("WHARF_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs `wharf run` once.
pub(super) fn run_wharf_once(programs: &AgentPrograms, model: &str) -> Result<AgentProcess, String> {
    let folder = configure(programs, model, &echo_server(&programs.own))?;
    let mut command = wharf_command(programs, &folder);
    command.args(["run", Task::Answer.message(), "--settings", "wharf.toml"]).stdout(Stdio::null());
    Ok(AgentProcess { child: command.spawn().map_err(io_error)?, _folder: folder })
}

impl WharfAgent {
    pub(super) fn start(programs: &AgentPrograms, model: &str) -> Result<WharfAgent, String> {
        WharfAgent::serve(programs, model, &echo_server(&programs.own))
    }

    /// Starts it with a server over HTTP.
    pub(super) fn start_with_server(
        programs: &AgentPrograms,
        model: &str,
        server: &str,
    ) -> Result<WharfAgent, String> {
        WharfAgent::serve(programs, model, &format!("transport: http\n    url: \"{server}\""))
    }

    fn serve(programs: &AgentPrograms, model: &str, endpoint: &str) -> Result<WharfAgent, String> {
        let folder = configure(programs, model, endpoint)?;
        let mut command = wharf_command(programs, &folder);
        command.args(["serve", "--listen", "127.0.0.1:0", "--settings", "wharf.toml"]).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(io_error)?;
        let stdout = child.stdout.take().ok_or("it has no stdout")?;
        let process = AgentProcess { child, _folder: folder };
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let mut words = lines.flat_map(|it| it.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let url = words.find(|it| it.starts_with("http://") && it.ends_with("/mcp"));
        let address = Address::of(&url.ok_or("it did not print its URL")?);
        let agent = WharfAgent { process, address };
        // The first message waits until the tools are listed.
        agent.ask(Task::Answer, true)?;
        Ok(agent)
    }

    pub(super) fn gateway(&self) -> Gateway {
        Gateway(self.process.child.id())
    }

    /// Sends a message, and reads the events to the end.
    pub(super) fn ask(&self, task: Task, is_kept: bool) -> Result<Exchange, String> {
        let begun = Instant::now();
        let mut stream = self.post(&json!({ "message": task.message(), "keep": is_kept }))?;
        stream.read_until("event: response_delta")?;
        let first = begun.elapsed();
        stream.read_until("event: done")?;
        stream.read_until("\r\n0\r\n\r\n")?;
        Ok(Exchange { first, whole: begun.elapsed() })
    }

    /// Begins a run and leaves it under way. Returns its conversation.
    pub(super) fn begin(&self, task: Task) -> Result<(String, ResponseStream), String> {
        let mut stream = self.post(&json!({ "message": task.message(), "on_disconnect": "continue" }))?;
        stream.read_until("\r\n\r\n")?;
        let head = stream.text.to_lowercase();
        let id = head.split("x-conversation-id: ").nth(1).and_then(|it| it.split("\r\n").next());
        Ok((id.ok_or("the response has no conversation")?.to_owned(), stream))
    }

    /// Leaves a run that waits for a decision.
    pub(super) fn park(&self) -> Result<(), String> {
        let (_, mut stream) = self.begin(Task::Park)?;
        stream.read_until("event: approval_request")
    }

    pub(super) fn cancel(&self, (conversation, _): &(String, ResponseStream)) -> Result<(), String> {
        let path = format!("/api/v1/conversations/{conversation}/cancel");
        ResponseStream::post(&self.address, &path, TOKEN, &json!({}))?.read_until("HTTP/1.1 202")
    }

    fn post(&self, body: &Value) -> Result<ResponseStream, String> {
        ResponseStream::post(&self.address, "/api/v1/chat", TOKEN, body)
    }
}

/// The agent from PyPI, in a process that takes orders.
pub(super) struct OtherAgent {
    process: AgentProcess,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
}

impl OtherAgent {
    pub(super) fn start(programs: &AgentPrograms, model: &str) -> Result<OtherAgent, String> {
        let mut process = OtherAgent::spawn(programs, model, "serve")?;
        let orders = process.child.stdin.take().ok_or("it has no stdin")?;
        let reports = BufReader::new(process.child.stdout.take().ok_or("it has no stdout")?);
        Ok(OtherAgent { process, orders, reports })
    }

    /// Sends one message and ends.
    pub(super) fn run_once(programs: &AgentPrograms, model: &str) -> Result<AgentProcess, String> {
        OtherAgent::spawn(programs, model, "once")
    }

    fn spawn(programs: &AgentPrograms, model: &str, mode: &str) -> Result<AgentProcess, String> {
        let folder = TempDir::new().map_err(io_error)?;
        let mut command = Command::new(&programs.python);
        let command = command.args(["-c", OTHER_AGENT, mode, model]).arg(&programs.own);
        command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(AgentProcess { child: command.spawn().map_err(io_error)?, _folder: folder })
    }

    pub(super) fn gateway(&self) -> Gateway {
        Gateway(self.process.child.id())
    }

    /// Sends messages one after the other.
    pub(super) fn ask(&mut self, task: Task, messages: usize) -> Result<Vec<Exchange>, String> {
        let report = self.order(&json!({ "message": task.message(), "count": messages, "save": false }))?;
        let times: Vec<[f64; 2]> = serde_json::from_value(report).map_err(|it| it.to_string())?;
        let seconds = Duration::from_secs_f64;
        Ok(times
            .into_iter()
            .map(|[first, whole]| Exchange { first: seconds(first), whole: seconds(whole) })
            .collect())
    }

    /// Begins conversations that it keeps in a database.
    pub(super) fn converse(&mut self, count: usize) -> Result<(), String> {
        self.order(&json!({ "message": Task::Answer.message(), "count": count, "save": true })).map(drop)
    }

    fn order(&mut self, order: &Value) -> Result<Value, String> {
        writeln!(self.orders, "{order}").map_err(io_error)?;
        let mut line = String::new();
        self.reports.read_line(&mut line).map_err(io_error)?;
        serde_json::from_str(&line).map_err(|it| format!("the other agent ended: {it}"))
    }
}
