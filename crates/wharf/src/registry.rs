//! The sources that were registered at run time, and the owner of the running plan.
//!
//! The running plan consists of the agent file's sources and those in the `sources` table. Both can change at any
//! time, so one task, the [`PlanOwner`], merges them and applies the result to the runtime. Other code holds a
//! [`SourceRegistry`]: it writes to the table, asks the plan owner to reload it, and reads the result in the
//! [`RegisteredSources`].

mod change;
mod first_use;
mod inventory;
mod plan_owner;
mod registered_sources;
mod secret_sealer;

use crate::{app::App, environment::Environment};
pub(crate) use change::SourceChange;
pub(crate) use inventory::{Inventory, ListedTools, disabled_tools};
pub(crate) use plan_owner::PlanOwner;
use plan_owner::{AgentFileChange, PlanRequest};
pub(crate) use registered_sources::{
    CallValuesError, RegisteredSource, RegisteredSources, RegistrationState,
};
pub(crate) use secret_sealer::SealError;
use secret_sealer::{SecretSealer, Secrets};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;
use wharf_config::{
    DatabaseLocation, Diagnostics, Env, Grants, Plan, RegisteredLock, Registration, ServerSettings, Source,
    TokenLocation,
};
use wharf_runtime::PlanChanges;
use wharf_store::{SourceRow, Store, StoreError};

/// Prefixes of environment variables that registered sources never receive, whatever their manifest declares, because
/// they belong to the gateway.
const RESERVED_PREFIXES: [&str; 3] = ["WHARF_", "OTEL_", "PGPASS"];

/// Maximum number of registered sources.
const MAX_REGISTERED_SOURCES: usize = 1_000;

/// Handle to the registered sources. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SourceRegistry {
    shared: Arc<RegistryState>,
    requests: mpsc::Sender<PlanRequest>,
    registered: watch::Receiver<Arc<RegisteredSources>>,
}

/// State that the registry and the plan owner share.
#[derive(Debug)]
struct RegistryState {
    store: Store,
    sealer: SecretSealer,
    environment: Environment,
    /// Path of the agent file; relative paths are resolved against its folder.
    file: PathBuf,
    inventory: Inventory,
    /// Treatment of changed definitions of registered sources.
    lock: RegisteredLock,
}

/// The reason why a registration or change is refused.
#[derive(Debug)]
pub(crate) enum RegistryError {
    /// The definition is invalid.
    Invalid(Diagnostics),
    /// The source does not exist.
    Unknown,
    /// The source is defined in the agent file and can only be changed there.
    InAgentFile,
    /// Another source has this name; `by_file` if it is one of the agent file.
    Taken { by_file: bool },
    /// The maximum number of sources is reached.
    Full,
    /// The source was changed concurrently; contains its current epoch.
    Stale(i64),
    /// Its secrets cannot be sealed or opened.
    SecretSealer(SealError),
    /// The database failed.
    Store(StoreError),
}

impl SourceRegistry {
    /// Loads the registered sources from the database and creates the task that owns the plan. Loading them here
    /// makes the first running plan complete.
    pub(crate) async fn open(
        store: Store,
        environment: &Environment,
        file: &Path,
        app: &App,
    ) -> Result<(SourceRegistry, PlanOwner), StoreError> {
        let (sealer, inventory) =
            (SecretSealer::new(environment.secret_key()), Inventory::new(store.clone()));
        let (environment, file) = (without_own_variables(environment, &app.server), file.to_owned());
        let shared = Arc::new(RegistryState {
            store,
            sealer,
            environment,
            file,
            inventory,
            lock: app.registered_lock,
        });
        let registered =
            RegisteredSources::new(app.plan.clone(), app.grants.clone()).reloaded(&shared, None).await?;
        let (plan_owner, requests, registered) = PlanOwner::new(shared.clone(), registered);
        Ok((SourceRegistry { shared, requests, registered }, plan_owner))
    }

    /// A snapshot of the registered sources and their states.
    pub(crate) fn registered(&self) -> Arc<RegisteredSources> {
        self.registered.borrow().clone()
    }

    /// Returns a receiver of later changes of the agent file and the registered sources.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<RegisteredSources>> {
        self.registered.clone()
    }

    /// The environment that sources are resolved with.
    pub(crate) fn environment(&self) -> &Environment {
        &self.shared.environment
    }

    /// The path of the agent file, which may not exist.
    pub(crate) fn agent_file(&self) -> &Path {
        &self.shared.file
    }

    /// The stored inventory and health of all sources.
    pub(crate) fn inventory(&self) -> &Inventory {
        &self.shared.inventory
    }

    /// Stores changes of inventory and health. Runs until the runtime has shut down.
    pub(crate) async fn follow(&self, handle: wharf_runtime::Handle) {
        inventory::follow(self, handle).await;
    }

    /// Reads the table again and applies changes to the runtime. The source `force` is lowered again even if its row
    /// is unchanged, because its manifest or its variables may have changed.
    pub(crate) async fn reload(&self, force: Option<String>) -> Result<(), StoreError> {
        let (done, reply) = oneshot::channel();
        if self.requests.send(PlanRequest::Reload { force, done }).await.is_err() {
            // The plan owner has ended, and the runtime with it.
            return Ok(());
        }
        reply.await.unwrap_or(Ok(()))
    }

    /// Applies a changed agent file.
    pub(crate) async fn apply_agent_file(&self, plan: Plan, grants: Grants) -> PlanChanges {
        let (done, reply) = oneshot::channel();
        let change = AgentFileChange { plan: Box::new(plan), grants: Box::new(grants), done };
        match self.requests.send(PlanRequest::File(change)).await {
            Ok(()) => reply.await.unwrap_or_default(),
            Err(_) => PlanChanges::default(),
        }
    }

    /// Parses and validates a registration.
    pub(crate) fn read(&self, body: &str) -> Result<Registration, RegistryError> {
        let env = self.shared.env(&self.registered().grants);
        let (registration, diagnostics) = wharf_config::register(body, &env);
        registration.ok_or(RegistryError::Invalid(diagnostics))
    }

    /// Registers a source. Returns when it has started, or is known not to be able to.
    pub(crate) async fn register(
        &self,
        registration: Registration,
    ) -> Result<Arc<RegisteredSource>, RegistryError> {
        let Registration { name, definition, secrets, lifecycle } = registration;
        let registered = self.registered();
        if registered.is_in_agent_file(&name) {
            return Err(RegistryError::Taken { by_file: true });
        }
        if registered.entries.len() >= MAX_REGISTERED_SOURCES {
            return Err(RegistryError::Full);
        }
        let id = Uuid::new_v4().to_string();
        let row = SourceRow {
            secrets: self.shared.sealer.seal(&id, &secrets)?,
            id: id.clone(),
            name,
            definition,
            origin: "rest".to_owned(),
            enabled: true,
            lifecycle: lifecycle.as_str().to_owned(),
            health: "unknown".to_owned(),
            ..SourceRow::default()
        };
        self.shared.store.insert_source(&row).await.map_err(|error| match error {
            StoreError::Conflict => RegistryError::Taken { by_file: false },
            error => RegistryError::Store(error),
        })?;
        self.reload(None).await?;
        self.registered().entry(&id).cloned().ok_or(RegistryError::Unknown)
    }

    /// Changes a registered source. Returns when the change has been applied.
    pub(crate) async fn change(
        &self,
        id_or_name: &str,
        change: SourceChange,
    ) -> Result<Arc<RegisteredSource>, RegistryError> {
        let id = self.find_registered(id_or_name)?.row.id.clone();
        let row = self.shared.store.source(&id).await?.ok_or(RegistryError::Unknown)?;
        if change.epoch.is_some_and(|it| it != row.epoch) {
            return Err(RegistryError::Stale(row.epoch));
        }
        let env = self.shared.env(&self.registered().grants);
        let row = change.apply_to(row, &self.shared.sealer, &env)?;
        if self.shared.store.update_source(&row).await?.is_none() {
            let now = self.shared.store.source(&id).await?.ok_or(RegistryError::Unknown)?;
            return Err(RegistryError::Stale(now.epoch));
        }
        self.reload(None).await?;
        self.registered().entry(&id).cloned().ok_or(RegistryError::Unknown)
    }

    /// Removes a registered source. Returns when its removal has been applied to the runtime.
    pub(crate) async fn remove(&self, id_or_name: &str) -> Result<Arc<RegisteredSource>, RegistryError> {
        let entry = self.find_registered(id_or_name)?;
        if !self.shared.store.delete_source(&entry.row.id).await? {
            return Err(RegistryError::Unknown);
        }
        self.shared.inventory.forget(&entry.row.name);
        self.reload(None).await?;
        if !self.registered().is_in_agent_file(&entry.row.name) {
            // The next source of this name is used for the first time.
            self.shared.store.withdraw_definitions(&entry.row.name).await?;
        }
        Ok(entry)
    }

    /// Returns the definition of a registered plugin with values for one call.
    pub(crate) fn source_with(
        &self,
        name: &str,
        values: BTreeMap<String, String>,
    ) -> Result<Source, CallValuesError> {
        let registered = self.registered();
        let entry = registered.entry(name).filter(|_| !registered.is_in_agent_file(name));
        let entry = entry.ok_or_else(|| {
            CallValuesError::Invalid(format!("`env` is for registered plugins, which `{name}` is not"))
        })?;
        entry.state.with_values(&entry.row, values, &registered.grants, &self.shared)
    }

    /// Finds a registered source by id or name.
    fn find_registered(&self, id_or_name: &str) -> Result<Arc<RegisteredSource>, RegistryError> {
        let registered = self.registered();
        let of_file = || {
            if registered.is_in_agent_file(id_or_name) {
                RegistryError::InAgentFile
            } else {
                RegistryError::Unknown
            }
        };
        registered.entry(id_or_name).cloned().ok_or_else(of_file)
    }
}

/// Removes the gateway's own tokens, database address and settings from the environment that sources may use.
fn without_own_variables(environment: &Environment, settings: &ServerSettings) -> Environment {
    let mut environment = environment.clone();
    let is_token = |name: &String| {
        let tokens = &settings.tokens;
        tokens.iter().any(|it| matches!(&it.stored_at, TokenLocation::Variable(variable) if variable == name))
    };
    let database = settings.database.as_ref().map(|it| &it.value);
    let is_database =
        |name: &String| matches!(database, Some(DatabaseLocation::Variable(variable)) if variable == name);
    let is_reserved = |name: &String| {
        let upper = name.to_ascii_uppercase();
        RESERVED_PREFIXES.iter().any(|it| upper.starts_with(it)) || is_token(name) || is_database(name)
    };
    environment.variables.retain(|name, _| !is_reserved(name));
    environment
}

impl RegistryState {
    /// The environment for lowering a registration.
    fn env(&self, grants: &Grants) -> Env {
        let env = self.environment.env_for(&self.file, grants.clone());
        Env { file: "the registration".to_owned(), ..env }
    }

    /// Opens the sealed secrets of a row.
    fn secrets(&self, row: &SourceRow) -> Result<Secrets, SealError> {
        self.sealer.open(&row.id, row.secrets.as_deref())
    }
}

impl From<SealError> for RegistryError {
    fn from(error: SealError) -> RegistryError {
        RegistryError::SecretSealer(error)
    }
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> RegistryError {
        RegistryError::Store(error)
    }
}
