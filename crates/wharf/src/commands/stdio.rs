//! `wharf stdio`: serves every tool as one MCP server on stdin and stdout.

use super::recording::Recording;
use crate::{
    accepted_definitions::accepted_definitions,
    app::App,
    cli::{CassetteArgs, GlobalOptions},
    environment::Environment,
    exit::Exit,
    gateway::{Gateway, TaskIds, ToolMode, announce},
    registry::{SourceRegistry, disabled_tools},
    signals::interrupted,
};
use std::{sync::Arc, time::Duration};
use tokio::time;
use wharf_mcp::serve::{Service, over_streams};
use wharf_runtime::{Runtime, cassette::ConversationNaming};
use wharf_store::{Location, Store, StoreError};

/// Grace period for calls in flight after the client disconnects. Short, because their results cannot be delivered.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(200);

/// Timeout for the database, which the client may not need.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn run(
    mut app: App,
    args: CassetteArgs,
    (common, environment): (GlobalOptions, Environment),
) -> Exit {
    let recording = match Recording::begin(&mut app, &args, ConversationNaming::Numbered) {
        Ok(recording) => recording,
        Err(error) => return app.output.fail(&error),
    };
    let runtime = app.start();
    let added = time::timeout(DATABASE_TIMEOUT, add_registered(&app, &runtime, &common, &environment)).await;
    if let Some(why) = added.map_or(Some("the database does not answer".to_owned()), |it| it.err()) {
        tracing::warn!(target: "wharf::stdio", "registered servers are not served: {why}");
    }
    let handle = runtime.handle();
    app.keep_temporary_results(&handle);
    let (telemetry, exporter) = app.telemetry();
    let gateway = Gateway::new(handle.clone(), None, TaskIds::random()).traced(telemetry.clone());
    let gateway = gateway.with_tool_mode(Arc::new(ToolMode::of(&app.plan.agent.context)));
    let serving = async {
        let service = Service::new(gateway);
        let exit = tokio::select! {
            // A client that disconnects is not an error.
            _ = over_streams(service.clone(), tokio::io::stdin(), tokio::io::stdout()) => Exit::Success,
            () = announce(service.clone(), handle.clone()) => Exit::InternalError,
            () = recording.follow_servers(&handle) => Exit::InternalError,
            exit = interrupted() => exit,
        };
        service.handler().shutdown();
        recording.add_servers_of(&handle);
        runtime.shutdown(SHUTDOWN_GRACE).await;
        exit
    };
    let exporting = async {
        if let Some(exporter) = exporter {
            let exporting = exporter.run(handle.clone());
            tokio::join!(telemetry.record_calls(handle.clone()), exporting);
        }
    };
    let exit = tokio::join!(serving, exporting).0;
    recording.end(exit, app.output)
}

/// Starts the sources registered in the database in addition to those of the agent file, and disables the tools that
/// an operator has switched off. This process starts its own servers. It only reads the database, which a gateway may
/// use at the same time.
async fn add_registered(
    app: &App,
    runtime: &Runtime,
    common: &GlobalOptions,
    environment: &Environment,
) -> Result<(), String> {
    // A SQLite file that does not exist has no registered sources.
    let is_there = |it: &&Location| !matches!(it, Location::Sqlite(path) if !path.exists());
    let Some(location) = app.database.as_ref().filter(is_there) else { return Ok(()) };
    let to_message = |error: StoreError| error.to_string();
    let store = Store::open(location).await.map_err(to_message)?;
    runtime.handle().set_disabled_tools(disabled_tools(&store).await.map_err(to_message)?);
    runtime.handle().set_accepted_definitions(accepted_definitions(&store).await.map_err(to_message)?);
    let (_, plan_owner) =
        SourceRegistry::open(store.clone(), environment, &common.file, app).await.map_err(to_message)?;
    plan_owner.start_sources(app, runtime);
    drop(plan_owner);
    store.close().await;
    Ok(())
}
