//! The server for the official conformance suite: the suite's fixtures on our own server code.

mod fixtures;
mod jobs;
mod prompts;
mod questions;
mod tools;
mod transports;

use fixtures::Fixtures;
use std::{env, error::Error, net::SocketAddr, process::ExitCode};
use tokio::sync::mpsc;
use transports::{Server, Transport};
use wharf_mcp::serve::{Eras, Service};

const USAGE: &str = "usage: conformance-server [--era legacy|modern|dual] \
    [--transport http|stdio|sse|ws] [--listen ADDRESS:PORT]";

struct Settings {
    eras: Eras,
    transport: Transport,
    listen: SocketAddr,
}

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        #[expect(clippy::print_stderr, reason = "the error goes to stderr")]
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let Settings { eras, transport, listen } = Settings::parse(arguments)?;
    let (announce, mut news) = mpsc::unbounded_channel();
    let service = Service::new(Fixtures::new(eras, announce)?);
    let announcing = async {
        while let Some(news) = news.recv().await {
            service.announce(news);
        }
    };
    tokio::select! {
        served = Server { service: service.clone(), transport, listen }.serve() => Ok(served?),
        () = announcing => Ok(()),
    }
}

impl Settings {
    fn parse(arguments: &[String]) -> Result<Settings, Box<dyn Error>> {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut settings = Settings { eras: Eras::Both, transport: Transport::Http, listen };
        for pair in arguments.chunks(2) {
            match pair.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["--era", "legacy"] => settings.eras = Eras::LegacyOnly,
                ["--era", "modern"] => settings.eras = Eras::ModernOnly,
                ["--era", "dual"] => settings.eras = Eras::Both,
                ["--transport", "http"] => settings.transport = Transport::Http,
                ["--transport", "stdio"] => settings.transport = Transport::Stdio,
                ["--transport", "sse"] => settings.transport = Transport::Sse,
                ["--transport", "ws"] => settings.transport = Transport::WebSocket,
                ["--listen", address] => settings.listen = address.parse()?,
                _ => return Err(USAGE.into()),
            }
        }
        Ok(settings)
    }
}
