//! Parses the command line of the hostile server.

use crate::modes::{self, Mode, Stage};
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// Configuration of a hostile server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Transport.
    pub transport: Transport,
    /// Address to listen on; unused over stdio.
    pub listen: SocketAddr,
    /// Misbehaviours.
    pub modes: Vec<&'static Mode>,
    /// Protocol era.
    pub era: Era,
    /// Stage at which to misbehave, instead of the default of the mode.
    pub at: Option<Stage>,
    /// Number of occasions to skip first.
    pub after: u64,
    /// Probability of misbehaving on each later occasion.
    pub prob: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Amount for the modes that send much: bytes or messages, depending on the mode.
    pub size: u64,
    /// Delay for the modes that are slow.
    pub delay: Duration,
    /// Path of the action log, where the server records its actions before it performs them.
    pub action_log: Option<PathBuf>,
    /// Whether to sync each log entry to the disk.
    pub fsync: bool,
    /// Prefix of the marker file that each mode creates when it misbehaves. While the file exists, the mode is
    /// inactive.
    pub once: Option<PathBuf>,
    /// Protocol version to return from `initialize` regardless of the request.
    pub version: Option<String>,
}

/// Transport of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// Stdin and stdout.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
    /// WebSocket.
    Ws,
}

/// Protocol era of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// The versions with an `initialize` handshake.
    Legacy,
    /// The stateless version 2026-07-28.
    Modern,
    /// Both.
    Dual,
}

impl Transport {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
            Transport::Sse => "sse",
            Transport::Ws => "ws",
        }
    }
}

impl Era {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
            Era::Dual => "dual",
        }
    }
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            transport: Transport::Stdio,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            modes: Vec::new(),
            era: Era::Dual,
            at: None,
            after: 0,
            prob: 1.0,
            seed: 1,
            size: 1 << 30,
            delay: Duration::from_millis(100),
            action_log: None,
            fsync: false,
            once: None,
            version: None,
        }
    }
}

impl ServerOptions {
    /// Parses the arguments, without the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<ServerOptions, String> {
        let mut options = ServerOptions::default();
        let mut arguments = arguments.into_iter();
        while let Some(flag) = arguments.next() {
            if flag == "--fsync" {
                options.fsync = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            options.set(&flag, &value)?;
        }
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let invalid_value = || format!("`{flag} {value}` is not understood");
        match flag {
            "--transport" => self.transport = transport(value).ok_or_else(invalid_value)?,
            "--listen" => self.listen = value.parse().map_err(|_| invalid_value())?,
            "--mode" => {
                let named = value.split(',').filter(|name| *name != "ok");
                let found = named.map(|name| modes::find(name).ok_or_else(|| format!("no mode `{name}`")));
                self.modes = found.collect::<Result<_, _>>()?;
            }
            "--era" => self.era = era(value).ok_or_else(invalid_value)?,
            "--at" => self.at = Some(Stage::named(value).ok_or_else(invalid_value)?),
            "--after" => self.after = value.parse().map_err(|_| invalid_value())?,
            "--prob" => self.prob = value.parse().map_err(|_| invalid_value())?,
            "--seed" => self.seed = value.parse().map_err(|_| invalid_value())?,
            "--size" => self.size = value.parse().map_err(|_| invalid_value())?,
            "--delay" => self.delay = Duration::from_millis(value.parse().map_err(|_| invalid_value())?),
            "--ledger" => self.action_log = Some(value.into()),
            "--once" => self.once = Some(value.into()),
            "--version" => self.version = Some(value.to_owned()),
            _ => return Err(format!("unexpected `{flag}`")),
        }
        Ok(())
    }
}

fn transport(name: &str) -> Option<Transport> {
    [Transport::Stdio, Transport::Http, Transport::Sse, Transport::Ws]
        .into_iter()
        .find(|transport| transport.as_str() == name)
}

fn era(name: &str) -> Option<Era> {
    [Era::Legacy, Era::Modern, Era::Dual].into_iter().find(|era| era.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_parsed() {
        let check = |typed: &str, expected: Result<&str, &str>| {
            let options = ServerOptions::parse(typed.split_whitespace().map(str::to_owned));
            let parsed = options.map(|it| {
                let modes: Vec<&str> = it.modes.iter().map(|mode| mode.name).collect();
                format!("{} {} {} {}", it.transport.as_str(), it.era.as_str(), modes.join("+"), it.after)
            });
            assert_eq!(parsed.as_deref().map_err(String::as_str), expected, "{typed}");
        };
        check("", Ok("stdio dual  0"));
        check("--transport ws --era modern --mode ok", Ok("ws modern  0"));
        check("--mode crlf,bom --after 3", Ok("stdio dual crlf+bom 3"));
        check("--mode nonsense", Err("no mode `nonsense`"));
        check("--transport mail", Err("`--transport mail` is not understood"));
        check("--era", Err("`--era` needs a value"));
        check("--loud yes", Err("unexpected `--loud`"));
    }
}
