//! The task that owns the running plan: it alone applies changes of the agent file or the table to the runtime.

use super::{Book, Shared};
use crate::dock::Dock;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use wharf_config::{Grants, Plan};
use wharf_runtime::{Applied, Runtime};
use wharf_store::StoreError;

/// Maximum number of queued orders.
const QUEUE: usize = 16;

/// Owner of the running plan.
#[derive(Debug)]
pub(crate) struct Registrar {
    shared: Arc<Shared>,
    orders: mpsc::Receiver<Order>,
    book: watch::Sender<Arc<Book>>,
}

/// A request to the registrar.
#[derive(Debug)]
pub(super) enum Order {
    /// Reload the table. `anew` names a source to lower again even if its row is unchanged.
    Again { anew: Option<String>, done: oneshot::Sender<Result<(), StoreError>> },
    /// Apply a changed agent file.
    File(FileChange),
}

/// A changed agent file and its grants.
#[derive(Debug)]
pub(super) struct FileChange {
    pub(super) plan: Box<Plan>,
    pub(super) grants: Box<Grants>,
    pub(super) done: oneshot::Sender<Applied>,
}

impl Registrar {
    pub(super) fn new(
        shared: Arc<Shared>,
        book: Book,
    ) -> (Registrar, mpsc::Sender<Order>, watch::Receiver<Arc<Book>>) {
        let (sender, orders) = mpsc::channel(QUEUE);
        let (book, reader) = watch::channel(Arc::new(book));
        (Registrar { shared, orders, book }, sender, reader)
    }

    /// Starts the registered sources in addition to those already running.
    pub(crate) fn begin(&self, dock: &Dock, runtime: &Runtime) {
        let book = self.book.borrow().clone();
        dock.apply(runtime, &book.plan());
        runtime.handle().leave_out(book.absent());
    }

    /// Processes orders one after the other, until all senders are dropped.
    pub(crate) async fn run(mut self, dock: &Dock, runtime: &Runtime) {
        while let Some(order) = self.orders.recv().await {
            let book = self.book.borrow().clone();
            match order {
                Order::Again { anew, done } => {
                    let filled = book.filled(&self.shared, anew.as_deref()).await;
                    let _ = done.send(filled.map(|book| _ = self.apply(book, dock, runtime)));
                }
                Order::File(FileChange { plan, grants, done }) => {
                    let book = book.beside(*plan, *grants, &self.shared);
                    let _ = done.send(self.apply(book, dock, runtime));
                }
            }
        }
    }

    fn apply(&self, book: Book, dock: &Dock, runtime: &Runtime) -> Applied {
        let applied = dock.apply(runtime, &book.plan());
        runtime.handle().leave_out(book.absent());
        self.book.send_replace(Arc::new(book));
        applied
    }
}
