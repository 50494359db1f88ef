//! `wharf todo`: runs the Todo server as a process of its own.

use super::listening::cannot_listen;
use crate::{
    cli::{Common, TodoArgs, TodoTransport},
    command_error::CommandError,
    exit::Exit,
    output::Output,
    signals::interrupted,
    surroundings::Surroundings,
    todo::{
        self,
        door::{self, Speech},
    },
};
use std::{io, time::Duration};
use tokio::{net::TcpListener, runtime};
use wharf_config::ServerSettings;
use wharf_store::{Location, Store};

/// Shutdown timeout for tasks that cannot be cancelled, such as a blocking read of stdin.
const LEAVING: Duration = Duration::from_millis(200);

pub(super) fn run(common: &Common, args: &TodoArgs, around: &Surroundings, output: Output) -> Exit {
    let settings = match around.settings(common.settings.as_deref()) {
        Ok(settings) => settings,
        Err(diagnostics) => {
            return output.fail_loading(&diagnostics);
        }
    };
    let location = match location(args, around, &settings.server) {
        Ok(location) => location,
        Err(complaint) => return output.fail(&CommandError::usage(&complaint)),
    };
    let runtime = match runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.fail(&CommandError::new("MCPError", &error.to_string(), Exit::OurBug)),
    };
    let served = runtime.block_on(serve(args, &location, output));
    runtime.shutdown_timeout(LEAVING);
    served.unwrap_or_else(|complaint| {
        output.fail(&CommandError::new("MCPError", &complaint, Exit::Unavailable))
    })
}

/// Opens the database before the listener, so that the first client already finds everything ready.
async fn serve(args: &TodoArgs, location: &Location, output: Output) -> Result<Exit, String> {
    let store = Store::open(location).await.map_err(|error| error.to_string())?;
    let (service, announcing) = todo::service(store.clone()).await;
    let serving = async {
        let speech = match args.transport {
            TodoTransport::Stdio => {
                return Ok(tokio::select! {
                    exit = door::stdio(service) => exit,
                    exit = interrupted() => exit,
                });
            }
            TodoTransport::Http => Speech::Http,
            TodoTransport::Sse => Speech::Sse,
            TodoTransport::Websocket => Speech::WebSocket,
        };
        let listener = TcpListener::bind(&args.listen).await.map_err(|error| unusable(args, &error))?;
        let url = speech.url(&listener).map_err(|error| unusable(args, &error))?;
        warn_strangers(&listener, output);
        output.data(&format!("{url}\n"));
        Ok(door::port(service, speech, listener, interrupted()).await)
    };
    let exit = tokio::select! {
        exit = serving => exit,
        () = announcing => Ok(Exit::Fine),
    };
    store.close().await;
    exit
}

fn location(args: &TodoArgs, around: &Surroundings, settings: &ServerSettings) -> Result<Location, String> {
    around.database(args.database.as_deref(), settings)?.ok_or_else(|| {
        "there is no folder to keep todos in\nhelp: set WHARF_HOME, or give --database".to_owned()
    })
}

/// Warns if the server is reachable from other machines: it has no authentication.
fn warn_strangers(listener: &TcpListener, output: Output) {
    if let Some(address) = listener.local_addr().ok().filter(|it| !it.ip().is_loopback()) {
        output.say(&format!("warning: whoever can reach {address} can read and change these todos"));
    }
}

fn unusable(args: &TodoArgs, error: &io::Error) -> String {
    cannot_listen(&args.listen, None, error)
}
