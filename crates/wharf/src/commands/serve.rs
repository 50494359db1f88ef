//! `wharf serve`: serves every tool over HTTP on one port.
//!
//! Opens the listener, the database and the journal, runs the gateway, and shuts everything down in order.

mod startup;

use super::{has_agent_file, listening::cannot_listen};
use crate::{
    cli::{Common, ServeArgs},
    command_error::CommandError,
    dock::Dock,
    door::{guard_of, make_room},
    exit::Exit,
    front::{Front, Keys, SHORTEST, Terms, make_or_read, read_token},
    journal::{Journal, Writing},
    registry::{Registrar, Registry, switched_off},
    reload,
    replica::Replica,
    running_gateway::{GatewayClaims, RunningGateway},
    signals::Signals,
    surroundings::Surroundings,
    telemetry::Exporter,
};
use startup::{Access, Startup};
use std::{
    cell::Cell,
    future,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, sync::watch};
use wharf_config::{NamedToken, TokenPlace};
use wharf_mcp::serve::http::Ledger;
use wharf_runtime::{Handle, Runtime, catalog::SwitchedOff};
use wharf_store::{Location, Store};

/// Grace period for calls in flight at shutdown.
const GRACE: Duration = Duration::from_secs(10);

/// The gateway's token, or the file that contains it.
#[derive(Debug)]
pub(crate) enum Token {
    /// The token itself, set by the operator.
    Set(String),
    /// The file that contains the token.
    File(PathBuf),
}

pub(super) async fn run(
    dock: Dock,
    args: ServeArgs,
    token: Option<Token>,
    followed: (Common, Surroundings),
) -> Exit {
    match GatewayClaims::take(dock.database(), followed.1.spool().as_deref()).await {
        Ok(claims) => serve(dock, args, token, followed, claims).await,
        Err(complaint) => dock.output.fail(&CommandError::new("MCPError", &complaint, Exit::Unavailable)),
    }
}

/// Runs the gateway. `claims` guarantees that no other gateway uses the same SQLite file.
async fn serve(
    mut dock: Dock,
    args: ServeArgs,
    token: Option<Token>,
    (common, around): (Common, Surroundings),
    mut claims: GatewayClaims,
) -> Exit {
    let output = dock.output;
    make_room();
    let opened = open_for(&dock, &args, token, (&common, &around)).await;
    let (listener, keys, startup) = match opened {
        Ok(opened) => opened,
        Err(complaint) => return output.fail(&CommandError::usage(&complaint)),
    };
    // Sources and the database are both slow to start, so start them in parallel. With a shared database, the runtime
    // has to join the other replicas first.
    let alone = matches!(dock.database(), Some(Location::Sqlite(_)));
    let early = alone.then(|| dock.start());
    let opened = match Opened::open(&dock, &around, &common.file).await {
        Ok(opened) => opened,
        Err(complaint) => {
            if let Some(runtime) = early {
                runtime.shutdown(Duration::ZERO).await;
            }
            return output.fail(&CommandError::new("MCPError", &complaint, Exit::Unavailable));
        }
    };
    let Opened { store, off, journal: (journal, writing), registered: (registry, registrar) } = opened;
    let (telemetry, exporter) = dock.telemetry();
    let journal = journal.traced(telemetry);
    let (replica, ledger) = join(&mut dock, &store, &journal);
    let runtime = early.unwrap_or_else(|| dock.start());
    registrar.begin(&dock, &runtime);
    let abandoned = journal.clone().follow(runtime.handle());
    let exporting = export(exporter, runtime.handle());
    let (drain, draining) = watch::channel(false);
    runtime.handle().switch_off(off);
    let guard = guard_of(&listener, &dock.server().hosts, &dock.server().origins);
    let (max_calls, max_streams) = (dock.server().max_calls, dock.server().max_streams);
    let terms = Terms { address: startup.address, guard, keys, max_calls, max_streams, ledger };
    let front = Front::new(runtime.handle(), journal, registry.clone(), terms, draining);
    // Install the signal handlers before the address is printed: a caller that reads it may send a signal at once.
    let mut signals = Signals::listen();
    claims.publish(&RunningGateway::new(startup.address, &around.folder.join(&common.file)));
    startup.print_addresses(&runtime.handle());
    let serving = async {
        let leave = wait_to_leave(&runtime, &drain, &mut signals);
        let following = follow(replica, runtime.handle(), front.clone(), &registry);
        let exit = tokio::select! {
            exit = front.serve(listener, leave) => exit,
            () = following => Exit::OurBug,
            () = reload::follow(common, around, &registry) => Exit::OurBug,
            () = registrar.run(&dock, &runtime) => Exit::OurBug,
            () = registry.follow(runtime.handle()) => Exit::OurBug,
            () = dock.retention().run(store.clone()) => Exit::OurBug,
            () = startup.report_servers(runtime.handle()) => Exit::OurBug,
        };
        startup.print_document(&runtime.handle());
        runtime.shutdown(GRACE).await;
        exit
    };
    // The journal writer ends when the last `Journal` handle is dropped, so it is awaited until every record is
    // written. The exporter also runs to its end, to send the last traces.
    let (exit, (), (), ()) = tokio::join!(serving, abandoned, writing, exporting);
    store.close().await;
    exit
}

/// Sends traces until the runtime is gone, if the operator wants them.
async fn export(exporter: Option<Exporter>, handle: Handle) {
    if let Some(exporter) = exporter {
        exporter.run(handle).await;
    }
}

/// Waits for a signal, announces the shutdown, and waits for calls in flight. A second signal ends the wait at once.
async fn wait_to_leave(runtime: &Runtime, drain: &watch::Sender<bool>, signals: &mut Signals) -> Exit {
    signals.next().await;
    drain.send_replace(true);
    tokio::select! {
        () = runtime.drain(GRACE) => {}
        _ = signals.next() => {}
    }
    Exit::Fine
}

/// The opened database and the state loaded from it.
struct Opened {
    store: Store,
    /// Tools that an operator has disabled; they stay disabled across restarts.
    off: SwitchedOff,
    journal: (Journal, Writing),
    registered: (Registry, Registrar),
}

impl Opened {
    async fn open(dock: &Dock, around: &Surroundings, file: &Path) -> Result<Opened, String> {
        let nowhere = "there is no folder for the database\nhelp: set WHARF_HOME, or give --database";
        let location = dock.database().ok_or_else(|| nowhere.to_owned())?;
        let store = Store::open(location).await.map_err(|error| error.to_string())?;
        let off = switched_off(&store).await.map_err(|error| error.to_string())?;
        let registered = Registry::open(store.clone(), around, file, dock).await;
        let registered = registered.map_err(|error| error.to_string())?;
        let (journal, writing) = Journal::open(store.clone(), location, around.spool().as_deref()).await?;
        let journal = (journal.cutting_at(dock.record_limit()), writing);
        Ok(Opened { store, off, journal, registered })
    }
}

/// Joins the other replicas if the database can be shared. Returns this replica and the session store they share.
fn join(dock: &mut Dock, store: &Store, journal: &Journal) -> (Option<Replica>, Option<Arc<dyn Ledger>>) {
    let Some((replica, council)) = Replica::new(store, journal.reach()) else { return (None, None) };
    dock.agree_with(Arc::new(council));
    let ledger = Arc::new(replica.sessions());
    (Some(replica), Some(ledger))
}

/// Applies the changes that other replicas make in the shared database. Waits forever if the database is not shared.
async fn follow(replica: Option<Replica>, handle: Handle, front: Front, registry: &Registry) {
    match replica {
        Some(replica) => replica.follow(handle, front, registry).await,
        None => future::pending().await,
    }
}

/// Adds the tokens that wharf.toml names.
fn add_tokens(keys: &mut Keys, tokens: &[NamedToken], around: &Surroundings) -> Result<(), String> {
    for NamedToken { name, role, kept } in tokens {
        let token = match kept {
            TokenPlace::File(path) => read_token(path)?,
            TokenPlace::Variable(variable) => {
                let set = around.variables.get(variable).filter(|it| it.len() >= SHORTEST).cloned();
                set.ok_or_else(|| {
                    format!("the token `{name}` is not in `{variable}`\nhelp: set it, to at least {SHORTEST} characters")
                })?
            }
        };
        keys.add(name, *role, &token)?;
    }
    Ok(())
}

/// The address to listen on, and whether clients must authenticate.
struct Place {
    listen: String,
    /// Position of the address in wharf.toml, if it is set there.
    at: Option<String>,
    no_auth: bool,
}

impl Place {
    fn of(args: &ServeArgs, around: &Surroundings, dock: &Dock) -> Place {
        let (listen, at) = around.listen(args.listen.as_deref(), dock.server());
        Place { listen, at, no_auth: args.no_auth || dock.server().no_auth }
    }
}

/// Binds the listener, loads the tokens and collects the information to print at startup.
async fn open_for(
    dock: &Dock,
    args: &ServeArgs,
    token: Option<Token>,
    (common, around): (&Common, &Surroundings),
) -> Result<(TcpListener, Keys, Startup), String> {
    let place = Place::of(args, around, dock);
    let access = match &token {
        _ if place.no_auth => Access::Open,
        Some(Token::File(path)) => Access::File(around.folder.join(path)),
        Some(Token::Set(_)) | None => Access::Variable,
    };
    let (listener, address, mut keys) = open(&place, token).await?;
    add_tokens(&mut keys, &dock.server().tokens, around)?;
    let agent_file = has_agent_file(common).then(|| common.file.clone());
    Ok((
        listener,
        keys,
        Startup { output: dock.output, address, access, agent_file, is_printed: Cell::new(false) },
    ))
}

/// Binds the listener and reads the main token, creating it if necessary.
async fn open(place: &Place, token: Option<Token>) -> Result<(TcpListener, SocketAddr, Keys), String> {
    let listener = TcpListener::bind(&place.listen).await.map_err(|error| unusable(place, &error))?;
    let address = listener.local_addr().map_err(|error| unusable(place, &error))?;
    if place.no_auth {
        if !address.ip().is_loopback() {
            return Err(format!(
                "`--no-auth` would let everybody in who can reach {address}\nhelp: listen on 127.0.0.1, or use the token"
            ));
        }
        return Ok((listener, address, Keys::open()));
    }
    let keys = match token {
        Some(Token::Set(token)) if token.len() < SHORTEST => {
            return Err(format!(
                "WHARF_TOKEN is too short to be a secret\nhelp: at least {SHORTEST} characters"
            ));
        }
        Some(Token::Set(token)) => Keys::of_operator(&token),
        Some(Token::File(path)) => {
            let token = make_or_read(&path)?;
            Keys::of_operator(&token)
        }
        None => return Err("there is no place for a token\nhelp: set WHARF_TOKEN or WHARF_HOME".to_owned()),
    };
    Ok((listener, address, keys))
}

fn unusable(Place { listen, at, .. }: &Place, error: &std::io::Error) -> String {
    cannot_listen(listen, at.as_deref(), error)
}
