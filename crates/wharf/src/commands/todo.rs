//! `wharf todo`: runs the Todo server as a process of its own.

use super::listen_error::cannot_listen;
use crate::{
    cli::{GlobalOptions, TodoArgs, TodoTransport},
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    output::Output,
    signals::interrupted,
    todo::{
        self,
        transports::{self, PortTransport},
    },
};
use std::{io, time::Duration};
use tokio::{net::TcpListener, runtime};
use wharf_config::ServerSettings;
use wharf_store::{Location, Store};

/// Shutdown timeout for tasks that cannot be cancelled, such as a blocking read of stdin.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

pub(super) fn run(
    common: &GlobalOptions,
    args: &TodoArgs,
    environment: &Environment,
    output: Output,
) -> Exit {
    let settings = match environment.settings(common.settings.as_deref()) {
        Ok(settings) => settings,
        Err(diagnostics) => {
            return output.fail_loading(&diagnostics);
        }
    };
    let location = match location(args, environment, &settings.server) {
        Ok(location) => location,
        Err(complaint) => return output.fail(&CommandError::usage(&complaint)),
    };
    let runtime = match runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return output.fail(&CommandError::new("MCPError", &error.to_string(), Exit::InternalError));
        }
    };
    let served = runtime.block_on(serve(args, &location, output));
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    served.unwrap_or_else(|complaint| {
        output.fail(&CommandError::new("MCPError", &complaint, Exit::Unavailable))
    })
}

/// Opens the database before the listener, so that the first client already finds everything ready.
async fn serve(args: &TodoArgs, location: &Location, output: Output) -> Result<Exit, String> {
    let store = Store::open(location).await.map_err(|error| error.to_string())?;
    let (service, announcing) = todo::service(store.clone()).await;
    let serving = async {
        let transport = match args.transport {
            TodoTransport::Stdio => {
                return Ok(tokio::select! {
                    exit = transports::serve_stdio(service.into(), None) => exit,
                    exit = interrupted() => exit,
                });
            }
            TodoTransport::Http => PortTransport::Http,
            TodoTransport::Sse => PortTransport::Sse,
            TodoTransport::Websocket => PortTransport::WebSocket,
        };
        let listener = TcpListener::bind(&args.listen).await.map_err(|error| unusable(args, &error))?;
        let url = transport.url(&listener).map_err(|error| unusable(args, &error))?;
        warn_if_exposed(&listener, output);
        output.data(&format!("{url}\n"));
        Ok(transports::serve_port(service.into(), transport, listener, None, interrupted()).await)
    };
    let exit = tokio::select! {
        exit = serving => exit,
        () = announcing => Ok(Exit::Success),
    };
    store.close().await;
    exit
}

fn location(
    args: &TodoArgs,
    environment: &Environment,
    settings: &ServerSettings,
) -> Result<Location, String> {
    environment.database(args.database.as_deref(), settings)?.ok_or_else(|| {
        "there is no folder for the todos\nhelp: set WHARF_HOME, or give --database".to_owned()
    })
}

/// Warns if the server is reachable from other machines: it has no authentication.
fn warn_if_exposed(listener: &TcpListener, output: Output) {
    if let Some(address) = listener.local_addr().ok().filter(|it| !it.ip().is_loopback()) {
        output.print_info(&format!(
            "warning: everyone who can reach {address} can read and change these todos"
        ));
    }
}

fn unusable(args: &TodoArgs, error: &io::Error) -> String {
    cannot_listen(&args.listen, None, error)
}
