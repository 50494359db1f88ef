//! The task that owns the running plan: it alone applies changes of the agent file or the table to the runtime.

use super::{RegisteredSources, RegistryState};
use crate::app::App;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use wharf_config::{Grants, Plan};
use wharf_runtime::{PlanChanges, Runtime};
use wharf_store::StoreError;

/// Maximum number of queued requests.
const MAX_QUEUED_REQUESTS: usize = 16;

/// Owner of the running plan.
#[derive(Debug)]
pub(crate) struct PlanOwner {
    shared: Arc<RegistryState>,
    requests: mpsc::Receiver<PlanRequest>,
    registered: watch::Sender<Arc<RegisteredSources>>,
}

/// A request to the plan owner.
#[derive(Debug)]
pub(super) enum PlanRequest {
    /// Reload the table. `force` names a source to lower again even if its row is unchanged.
    Reload { force: Option<String>, done: oneshot::Sender<Result<(), StoreError>> },
    /// Apply a changed agent file.
    File(AgentFileChange),
}

/// A changed agent file and its grants.
#[derive(Debug)]
pub(super) struct AgentFileChange {
    pub(super) plan: Box<Plan>,
    pub(super) grants: Box<Grants>,
    pub(super) done: oneshot::Sender<PlanChanges>,
}

impl PlanOwner {
    pub(super) fn new(
        shared: Arc<RegistryState>,
        registered: RegisteredSources,
    ) -> (PlanOwner, mpsc::Sender<PlanRequest>, watch::Receiver<Arc<RegisteredSources>>) {
        let (sender, requests) = mpsc::channel(MAX_QUEUED_REQUESTS);
        let (registered, reader) = watch::channel(Arc::new(registered));
        (PlanOwner { shared, requests, registered }, sender, reader)
    }

    /// Starts the registered sources in addition to those already running.
    pub(crate) fn start_sources(&self, app: &App, runtime: &Runtime) {
        let registered = self.registered.borrow().clone();
        app.apply(runtime, &registered.plan());
        runtime.handle().set_unavailable_sources(registered.absent());
    }

    /// Processes requests one after the other, until all senders are dropped.
    pub(crate) async fn run(mut self, app: &App, runtime: &Runtime) {
        while let Some(request) = self.requests.recv().await {
            let registered = self.registered.borrow().clone();
            match request {
                PlanRequest::Reload { force, done } => {
                    let reloaded = registered.reloaded(&self.shared, force.as_deref()).await;
                    let _ = done.send(reloaded.map(|registered| _ = self.apply(registered, app, runtime)));
                }
                PlanRequest::File(AgentFileChange { plan, grants, done }) => {
                    let registered = registered.with_agent_file(*plan, *grants, &self.shared);
                    let _ = done.send(self.apply(registered, app, runtime));
                }
            }
        }
    }

    fn apply(&self, registered: RegisteredSources, app: &App, runtime: &Runtime) -> PlanChanges {
        let applied = app.apply(runtime, &registered.plan());
        runtime.handle().set_unavailable_sources(registered.absent());
        self.registered.send_replace(Arc::new(registered));
        applied
    }
}
