//! The sources that were registered at run time, and the owner of the running plan.
//!
//! The running plan consists of the agent file's sources and those in the `sources` table. Both can change at any
//! time, so one task, the [`Registrar`], merges them and applies the result to the runtime. Other code holds a
//! [`Registry`]: it writes to the table, asks the registrar to reload it, and reads the result in the [`Book`].

mod book;
mod change;
mod inventory;
mod registrar;
mod vault;

use crate::{dock::Dock, surroundings::Surroundings};
pub(crate) use book::{Book, Entry, State};
pub(crate) use change::Change;
pub(crate) use inventory::{Inventory, Listed, switched_off};
pub(crate) use registrar::Registrar;
use registrar::{FileChange, Order};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;
pub(crate) use vault::VaultError;
use vault::{Secrets, Vault};
use wharf_config::{DatabasePlace, Diagnostics, Env, Grants, Plan, Registration, ServerSettings, TokenPlace};
use wharf_runtime::Applied;
use wharf_store::{SourceRow, Store, StoreError};

/// Prefixes of environment variables that registered sources never receive, whatever their manifest declares, because
/// they belong to the gateway.
const OURS: [&str; 3] = ["WHARF_", "OTEL_", "PGPASS"];

/// Maximum number of registered sources.
const MOST: usize = 1_000;

/// Handle to the registered sources. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    book: watch::Receiver<Arc<Book>>,
}

/// State that the registry and the registrar share.
#[derive(Debug)]
struct Shared {
    store: Store,
    vault: Vault,
    around: Surroundings,
    /// Path of the agent file; relative paths are resolved against its folder.
    file: PathBuf,
    inventory: Inventory,
}

/// The reason why a registration or change is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The definition is invalid.
    Wrong(Diagnostics),
    /// The source does not exist.
    Unknown,
    /// The source is defined in the agent file and can only be changed there.
    OfFile,
    /// Another source has this name; `by_file` if it is one of the agent file.
    Taken { by_file: bool },
    /// The maximum number of sources is reached.
    Full,
    /// The source was changed concurrently; contains its current epoch.
    Stale(i64),
    /// Its secrets cannot be sealed or opened.
    Vault(VaultError),
    /// The database failed.
    Store(StoreError),
}

impl Registry {
    /// Loads the registered sources from the database and creates the task that owns the plan. Loading them here
    /// makes the first running plan complete.
    pub(crate) async fn open(
        store: Store,
        around: &Surroundings,
        file: &Path,
        dock: &Dock,
    ) -> Result<(Registry, Registrar), StoreError> {
        let (vault, inventory) = (Vault::new(around.secret_key()), Inventory::new(store.clone()));
        let (around, file) = (without_ours(around, dock.server()), file.to_owned());
        let shared = Arc::new(Shared { store, vault, around, file, inventory });
        let book = Book::new(dock.plan().clone(), dock.grants().clone()).filled(&shared, None).await?;
        let (registrar, orders, book) = Registrar::new(shared.clone(), book);
        Ok((Registry { shared, orders, book }, registrar))
    }

    /// A snapshot of the registered sources and their states.
    pub(crate) fn book(&self) -> Arc<Book> {
        self.book.borrow().clone()
    }

    /// The stored inventory and health of all sources.
    pub(crate) fn inventory(&self) -> &Inventory {
        &self.shared.inventory
    }

    /// Stores changes of inventory and health. Runs until the runtime has shut down.
    pub(crate) async fn follow(&self, handle: wharf_runtime::Handle) {
        inventory::follow(self, handle).await;
    }

    /// Reads the table again and applies changes to the runtime.
    pub(crate) async fn reload(&self) -> Result<(), StoreError> {
        self.again(None).await
    }

    /// Reads the table again, and lowers this source again even if its row is unchanged, because its manifest or its
    /// variables may have changed.
    pub(crate) async fn renew(&self, id: &str) -> Result<(), StoreError> {
        self.again(Some(id.to_owned())).await
    }

    async fn again(&self, anew: Option<String>) -> Result<(), StoreError> {
        let (done, told) = oneshot::channel();
        if self.orders.send(Order::Again { anew, done }).await.is_err() {
            // The registrar has ended, and the runtime with it.
            return Ok(());
        }
        told.await.unwrap_or(Ok(()))
    }

    /// Applies a changed agent file.
    pub(crate) async fn file_changed(&self, plan: Plan, grants: Grants) -> Applied {
        let (done, told) = oneshot::channel();
        let change = FileChange { plan: Box::new(plan), grants: Box::new(grants), done };
        match self.orders.send(Order::File(change)).await {
            Ok(()) => told.await.unwrap_or_default(),
            Err(_) => Applied::default(),
        }
    }

    /// Parses and validates a registration.
    pub(crate) fn read(&self, body: &str) -> Result<Registration, Refusal> {
        let env = self.shared.env(&self.book().grants);
        let (registration, diagnostics) = wharf_config::register(body, &env);
        registration.ok_or(Refusal::Wrong(diagnostics))
    }

    /// Registers a source. Returns when it has started, or is known not to be able to.
    pub(crate) async fn register(&self, registration: Registration) -> Result<Arc<Entry>, Refusal> {
        let Registration { name, definition, secrets, lifecycle } = registration;
        let book = self.book();
        if book.is_of_file(&name) {
            return Err(Refusal::Taken { by_file: true });
        }
        if book.entries.len() >= MOST {
            return Err(Refusal::Full);
        }
        let id = Uuid::new_v4().to_string();
        let row = SourceRow {
            secrets: self.shared.vault.seal(&id, &secrets)?,
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
            StoreError::Conflict => Refusal::Taken { by_file: false },
            error => Refusal::Store(error),
        })?;
        self.reload().await?;
        self.book().entry(&id).cloned().ok_or(Refusal::Unknown)
    }

    /// Changes a registered source. Returns when the change has been applied.
    pub(crate) async fn change(&self, word: &str, change: Change) -> Result<Arc<Entry>, Refusal> {
        let id = self.known(word)?.row.id.clone();
        let row = self.shared.store.source(&id).await?.ok_or(Refusal::Unknown)?;
        if change.epoch.is_some_and(|it| it != row.epoch) {
            return Err(Refusal::Stale(row.epoch));
        }
        let env = self.shared.env(&self.book().grants);
        let row = change.made(row, &self.shared.vault, &env)?;
        if self.shared.store.update_source(&row).await?.is_none() {
            let now = self.shared.store.source(&id).await?.ok_or(Refusal::Unknown)?;
            return Err(Refusal::Stale(now.epoch));
        }
        self.reload().await?;
        self.book().entry(&id).cloned().ok_or(Refusal::Unknown)
    }

    /// Removes a registered source. Returns when its removal has been applied to the runtime.
    pub(crate) async fn remove(&self, word: &str) -> Result<Arc<Entry>, Refusal> {
        let entry = self.known(word)?;
        if !self.shared.store.delete_source(&entry.row.id).await? {
            return Err(Refusal::Unknown);
        }
        self.shared.inventory.forget(&entry.row.name);
        self.reload().await?;
        Ok(entry)
    }

    /// Finds a registered source by id or name.
    fn known(&self, word: &str) -> Result<Arc<Entry>, Refusal> {
        let book = self.book();
        let of_file = || if book.is_of_file(word) { Refusal::OfFile } else { Refusal::Unknown };
        book.entry(word).cloned().ok_or_else(of_file)
    }
}

/// Removes the gateway's own tokens, database address and settings from the environment that sources may use.
fn without_ours(around: &Surroundings, settings: &ServerSettings) -> Surroundings {
    let mut around = around.clone();
    let is_token = |name: &String| {
        let tokens = &settings.tokens;
        tokens.iter().any(|it| matches!(&it.kept, TokenPlace::Variable(variable) if variable == name))
    };
    let database = settings.database.as_ref().map(|it| &it.value);
    let is_database =
        |name: &String| matches!(database, Some(DatabasePlace::Variable(variable)) if variable == name);
    let is_ours = |name: &String| {
        let upper = name.to_ascii_uppercase();
        OURS.iter().any(|it| upper.starts_with(it)) || is_token(name) || is_database(name)
    };
    around.variables.retain(|name, _| !is_ours(name));
    around
}

impl Shared {
    /// The environment for lowering a registration.
    fn env(&self, grants: &Grants) -> Env {
        let env = self.around.env_for(&self.file, grants.clone());
        Env { file: "the registration".to_owned(), ..env }
    }

    /// Opens the sealed secrets of a row.
    fn secrets(&self, row: &SourceRow) -> Result<Secrets, VaultError> {
        self.vault.open(&row.id, row.secrets.as_deref())
    }
}

impl From<VaultError> for Refusal {
    fn from(error: VaultError) -> Refusal {
        Refusal::Vault(error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::Store(error)
    }
}
