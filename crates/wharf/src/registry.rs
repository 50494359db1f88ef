//! The sources that were registered at run time, and the one owner of the plan that runs.
//!
//! What runs is what the agent file names and what the table of sources holds. Both change while everything runs, so one
//! task, the [`Registrar`], puts them together and hands the whole to the runtime. Everybody else has a [`Registry`]: it
//! writes to the table, asks the registrar to look again, and reads in the [`Book`] what was found.

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
use wharf_runtime::{
    Applied,
    config::{self, DatabasePlace, Diagnostics, Env, Grants, Plan, Registration, ServerSettings, TokenPlace},
};
use wharf_store::{SourceRow, Store, StoreError};

/// What begins so in the environment is the gateway's own, whatever a manifest declares.
const OURS: [&str; 3] = ["WHARF_", "OTEL_", "PGPASS"];

/// How many sources may be registered.
const MOST: usize = 1_000;

/// What others have of the registered sources; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    book: watch::Receiver<Arc<Book>>,
}

/// What the registry and the registrar both need.
#[derive(Debug)]
struct Shared {
    store: Store,
    vault: Vault,
    around: Surroundings,
    /// The agent file, beside which relative paths are meant.
    file: PathBuf,
    inventory: Inventory,
}

/// Why a source is not registered or changed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// What was sent is wrong.
    Wrong(Diagnostics),
    /// There is no such source.
    Unknown,
    /// The agent file has it, so it is changed there.
    OfFile,
    /// Another source has this name: whether it is one of the agent file.
    Taken { by_file: bool },
    /// There are as many as may be.
    Full,
    /// Somebody else has changed it: its present epoch.
    Stale(i64),
    /// Its secrets cannot be kept, or not be read.
    Vault(VaultError),
    /// The database does not take it.
    Store(StoreError),
}

impl Registry {
    /// What is registered in this database beside the sources of an agent file, and the task that owns the plan. It is read
    /// here, so that the first plan that runs is whole.
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

    /// What is registered, and what runs of it.
    pub(crate) fn book(&self) -> Arc<Book> {
        self.book.borrow().clone()
    }

    /// Where it is written down what sources offer, and how they are.
    pub(crate) fn inventory(&self) -> &Inventory {
        &self.shared.inventory
    }

    /// Notes what sources offer and how they are, for as long as it is polled.
    pub(crate) async fn follow(&self, handle: wharf_runtime::Handle) {
        inventory::follow(self, handle).await;
    }

    /// Reads the rows again and applies what changed to the runtime.
    pub(crate) async fn reload(&self) -> Result<(), StoreError> {
        self.again(None).await
    }

    /// The same, and this source is read anew though its row is as it was: its manifest, or what it needs, may not be.
    pub(crate) async fn renew(&self, id: &str) -> Result<(), StoreError> {
        self.again(Some(id.to_owned())).await
    }

    async fn again(&self, anew: Option<String>) -> Result<(), StoreError> {
        let (done, told) = oneshot::channel();
        if self.orders.send(Order::Again { anew, done }).await.is_err() {
            // Whoever owned the plan has left, and with it everything that ran.
            return Ok(());
        }
        told.await.unwrap_or(Ok(()))
    }

    /// The agent file has changed: this is what it means now.
    pub(crate) async fn file_changed(&self, plan: Plan, grants: Grants) -> Applied {
        let (done, told) = oneshot::channel();
        let change = FileChange { plan: Box::new(plan), grants: Box::new(grants), done };
        match self.orders.send(Order::File(change)).await {
            Ok(()) => told.await.unwrap_or_default(),
            Err(_) => Applied::default(),
        }
    }

    /// What a registration means, or what is wrong with it.
    pub(crate) fn read(&self, body: &str) -> Result<Registration, Refusal> {
        let env = self.shared.env(&self.book().grants);
        let (registration, diagnostics) = config::register(body, &env);
        registration.ok_or(Refusal::Wrong(diagnostics))
    }

    /// Registers a source, and comes back when it runs, or is known not to.
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

    /// Changes a registered source, and comes back when the change runs.
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

    /// Removes a registered source; comes back when its server is told to end.
    pub(crate) async fn remove(&self, word: &str) -> Result<Arc<Entry>, Refusal> {
        let entry = self.known(word)?;
        if !self.shared.store.delete_source(&entry.row.id).await? {
            return Err(Refusal::Unknown);
        }
        self.shared.inventory.forget(&entry.row.name);
        self.reload().await?;
        Ok(entry)
    }

    /// A registered source, by its id or its name.
    fn known(&self, word: &str) -> Result<Arc<Entry>, Refusal> {
        let book = self.book();
        let of_file = || if book.is_of_file(word) { Refusal::OfFile } else { Refusal::Unknown };
        book.entry(word).cloned().ok_or_else(of_file)
    }
}

/// The world without what opens our own doors.
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
    /// What a registration may know of the world.
    fn env(&self, grants: &Grants) -> Env {
        let env = self.around.env_for(&self.file, grants.clone());
        Env { file: "the registration".to_owned(), ..env }
    }

    /// The secrets of a row.
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
