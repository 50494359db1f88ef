//! `wharf mock`: serves a recording to any MCP client.

use super::listen_error::cannot_listen;
use crate::{
    cassette_file::read_cassette,
    cassette_server::CassetteServer,
    cli::{ExhaustedAnswer, MockArgs, TodoTransport},
    command_error::CommandError,
    exit::Exit,
    fault_file::read_fault_file,
    output::Output,
    signals::interrupted,
    todo::transports::{self, PortTransport},
    wire_faults::WireFaults,
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, runtime};
use wharf_mcp::serve::Service;
use wharf_runtime::{
    cassette::{CassettePlayer, Exhausted},
    upstream::FaultInjection,
};

/// Shutdown timeout for tasks that cannot be cancelled, such as a blocking read of stdin.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

/// Serves the recording until the client leaves or a signal arrives.
pub(super) fn run(args: &MockArgs, output: Output) -> Exit {
    let player = match read_cassette(&args.file) {
        Ok(cassette) => {
            let misses = args.miss || args.exhausted == ExhaustedAnswer::Miss;
            CassettePlayer::new(cassette, if misses { Exhausted::Miss } else { Exhausted::Repeat })
        }
        Err(error) => return output.fail(&error),
    };
    if let Some(source) = args.server.as_deref().filter(|it| !player.cassette().servers.contains_key(*it)) {
        let complaint = format!("the recording has no server '{source}'");
        return output.fail(&CommandError::new("MCPToolNotFoundError", &complaint, Exit::NotFound));
    }
    let rules = match args.faults.as_deref().map(read_fault_file).transpose() {
        Ok(rules) => rules,
        Err(error) => return output.fail(&error),
    };
    let faults = rules.map(|it| (FaultInjection::new(it), Arc::new(WireFaults::new())));
    let wire_faults = faults.as_ref().map(|(_, it)| it.clone());
    let server = CassetteServer::new(Arc::new(player), args.server.as_deref());
    let service = Service::new(server.with_faults(faults));
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return output.fail(&CommandError::new("MCPError", &error.to_string(), Exit::InternalError));
        }
    };
    let served = runtime.block_on(serve(service, args, wire_faults, output));
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    served.unwrap_or_else(|complaint| {
        output.fail(&CommandError::new("MCPError", &complaint, Exit::Unavailable))
    })
}

async fn serve(
    service: Service<CassetteServer>,
    args: &MockArgs,
    faults: Option<Arc<WireFaults>>,
    output: Output,
) -> Result<Exit, String> {
    let transport = match args.transport {
        TodoTransport::Stdio => {
            return Ok(tokio::select! {
                exit = transports::serve_stdio(service.into(), faults) => exit,
                exit = interrupted() => exit,
            });
        }
        TodoTransport::Http => PortTransport::Http,
        TodoTransport::Sse => PortTransport::Sse,
        TodoTransport::Websocket => PortTransport::WebSocket,
    };
    let unusable = |error| cannot_listen(&args.listen, None, &error);
    let is_loopback = args.listen.parse::<SocketAddr>().is_ok_and(|it| it.ip().is_loopback());
    if !is_loopback {
        return Err("a recording is served on loopback only\nhelp: use --listen 127.0.0.1:PORT".to_owned());
    }
    let listener = TcpListener::bind(&args.listen).await.map_err(unusable)?;
    let url = transport.url(&listener).map_err(unusable)?;
    output.data(&format!("{url}\n"));
    Ok(transports::serve_port(service.into(), transport, listener, faults, interrupted()).await)
}
