//! `wharf stdio`: every tool as one MCP server on our own stdin and stdout.

use crate::{
    dock::{Dock, interrupted},
    exit::Exit,
    gateway::{Gateway, announce},
};
use std::time::Duration;
use wharf_mcp::serve::{Service, over_streams};

/// How long calls that are out may take once the client has left: it will not hear their answers.
const GRACE: Duration = Duration::from_millis(200);

pub(super) async fn run(dock: Dock) -> Exit {
    let runtime = dock.start();
    let handle = runtime.handle();
    let (telemetry, exporter) = dock.telemetry();
    let gateway = Gateway::new(handle.clone(), None).traced(telemetry.clone());
    let serving = async {
        let service = Service::new(gateway);
        let exit = tokio::select! {
            // A client that breaks off is nothing to report.
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
            tokio::join!(telemetry.follow(handle.clone()), exporting);
        }
    };
    tokio::join!(serving, exporting).0
}
