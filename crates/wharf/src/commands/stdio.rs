//! `wharf stdio`: serves every tool as one MCP server on stdin and stdout.

use crate::{
    cli::Common,
    dock::Dock,
    exit::Exit,
    gateway::{Gateway, announce},
    registry::{Registry, switched_off},
    signals::interrupted,
    surroundings::Surroundings,
};
use std::time::Duration;
use tokio::time;
use wharf_mcp::serve::{Service, over_streams};
use wharf_runtime::Runtime;
use wharf_store::{Location, Store, StoreError};

/// Grace period for calls in flight after the client disconnects. Short, because their results cannot be delivered.
const GRACE: Duration = Duration::from_millis(200);

/// Timeout for the database, which the client may not need.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn run(dock: Dock, (common, around): (Common, Surroundings)) -> Exit {
    let runtime = dock.start();
    let added = time::timeout(PATIENCE, add_registered(&dock, &runtime, &common, &around)).await;
    if let Some(why) = added.map_or(Some("the database does not answer".to_owned()), |it| it.err()) {
        tracing::warn!(target: "wharf::stdio", "registered servers are left out: {why}");
    }
    let handle = runtime.handle();
    let (telemetry, exporter) = dock.telemetry();
    let gateway = Gateway::new(handle.clone(), None).traced(telemetry.clone());
    let serving = async {
        let service = Service::new(gateway);
        let exit = tokio::select! {
            // A client that disconnects is not an error.
            _ = over_streams(service.clone(), tokio::io::stdin(), tokio::io::stdout()) => Exit::Fine,
            () = announce(service.clone(), handle.clone()) => Exit::OurBug,
            exit = interrupted() => exit,
        };
        service.handler().leave();
        runtime.shutdown(GRACE).await;
        exit
    };
    let exporting = async {
        if let Some(exporter) = exporter {
            let exporting = exporter.run(handle.clone());
            tokio::join!(telemetry.record_calls(handle.clone()), exporting);
        }
    };
    tokio::join!(serving, exporting).0
}

/// Starts the sources registered in the database in addition to those of the agent file, and disables the tools that
/// an operator has switched off. This process starts its own servers. It only reads the database, which a gateway may
/// use at the same time.
async fn add_registered(
    dock: &Dock,
    runtime: &Runtime,
    common: &Common,
    around: &Surroundings,
) -> Result<(), String> {
    // A SQLite file that does not exist has no registered sources.
    let is_there = |it: &&Location| !matches!(it, Location::Sqlite(path) if !path.exists());
    let Some(location) = dock.database().filter(is_there) else { return Ok(()) };
    let said = |error: StoreError| error.to_string();
    let store = Store::open(location).await.map_err(said)?;
    runtime.handle().switch_off(switched_off(&store).await.map_err(said)?);
    let (_, registrar) = Registry::open(store.clone(), around, &common.file, dock).await.map_err(said)?;
    registrar.begin(dock, runtime);
    drop(registrar);
    store.close().await;
    Ok(())
}
