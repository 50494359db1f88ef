//! Writes calls to SQLite in batches, on a blocking thread and a connection of its own.
//!
//! Every call ends up here, so the cost per row matters. This writer binds each value from borrowed memory; the
//! connection pool would need an owned copy of each value, sent to another thread.

use crate::{CallRow, StoreError, calls::COLUMNS};
use rusqlite::{Connection, TransactionBehavior, params};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::Mutex as Turn, task};

/// Maximum number of rows per transaction, so that other writers get a turn in between.
const BATCH: usize = 2_048;

/// Borrowed form of a [`CallRow`].
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "a row has the same, and says what they are")]
pub struct CallView<'a> {
    pub request_id: &'a str,
    pub thread_id: Option<&'a str>,
    pub source: &'a str,
    pub tool_name: &'a str,
    pub parameters: &'a str,
    pub execution_start: i64,
    pub execution_duration_ms: f64,
    pub status: &'a str,
    pub result: Option<&'a str>,
    pub error: Option<&'a str>,
    pub error_type: Option<&'a str>,
    pub door: Option<&'a str>,
    pub principal: Option<&'a str>,
}

/// Iterator over the calls of a page.
pub type Calls<'a> = Box<dyn Iterator<Item = CallView<'a>> + Send + 'a>;

/// Decodes the calls of a page.
pub type ReadPage = for<'a> fn(&'a [u8]) -> Calls<'a>;

/// Writes calls to a SQLite file.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    path: Arc<Path>,
    patience: Duration,
    /// Opened by the first write.
    connection: Arc<Mutex<Option<Connection>>>,
}

impl Recorder {
    pub(crate) fn new(path: &Path, patience: Duration) -> Recorder {
        Recorder { path: path.into(), patience, connection: Arc::default() }
    }

    /// Writes calls batch by batch and stops at the first error; earlier batches stay written. Locks `write_lock` for
    /// each batch.
    pub(crate) async fn record<P>(
        &self,
        page: P,
        read: for<'a> fn(&'a P) -> Calls<'a>,
        write_lock: Arc<Turn<()>>,
    ) -> Result<(), StoreError>
    where
        P: Send + 'static,
    {
        let this = self.clone();
        let written = task::spawn_blocking(move || this.write(read(&page), &write_lock));
        match written.await {
            Ok(written) => written.map_err(|error| StoreError::Engine(error.to_string())),
            Err(_) => Err(StoreError::Engine("the writing of calls was broken off".to_owned())),
        }
    }

    pub(crate) async fn close(&self) {
        let connection = self.connection.clone();
        let closing = task::spawn_blocking(move || {
            drop(connection.lock().unwrap_or_else(PoisonError::into_inner).take());
        });
        let _ = closing.await;
    }

    fn write(&self, calls: Calls<'_>, write_lock: &Turn<()>) -> rusqlite::Result<()> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match &mut *connection {
            Some(open) => open,
            none => none.insert(self.open()?),
        };
        let values = "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?";
        let insert =
            format!("INSERT INTO calls ({COLUMNS}) VALUES ({values}) ON CONFLICT (request_id) DO NOTHING");
        let mut calls = calls.peekable();
        while calls.peek().is_some() {
            let _lock = write_lock.blocking_lock();
            // Takes the write lock at once: upgrading a read transaction later can fail.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let mut insert = transaction.prepare(&insert)?;
                calls.by_ref().take(BATCH).try_for_each(|call| insert_one(&mut insert, &call))?;
            }
            transaction.commit()?;
        }
        Ok(())
    }

    /// Opens the connection with `synchronous = NORMAL`: records survive a crash of the process, but the latest may
    /// be lost in a power cut.
    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(PathBuf::from(&*self.path))?;
        connection.busy_timeout(self.patience)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        // Number of pages. A rarer, larger checkpoint costs less in total.
        connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
        Ok(connection)
    }
}

fn insert_one(insert: &mut rusqlite::Statement<'_>, call: &CallView<'_>) -> rusqlite::Result<()> {
    insert.execute(params![
        clean(call.request_id),
        call.thread_id.map(clean),
        clean(call.source),
        clean(call.tool_name),
        clean(call.parameters),
        call.execution_start,
        call.execution_duration_ms,
        clean(call.status),
        call.result.map(clean),
        call.error.map(clean),
        call.error_type.map(clean),
        call.door.map(clean),
        call.principal.map(clean),
    ])?;
    Ok(())
}

/// Replaces U+0000, which PostgreSQL cannot store, so that a call reads the same on both engines.
fn clean(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}").into(),
        false => text.into(),
    }
}

impl CallRow {
    pub(crate) fn view(&self) -> CallView<'_> {
        CallView {
            request_id: &self.request_id,
            thread_id: self.thread_id.as_deref(),
            source: &self.source,
            tool_name: &self.tool_name,
            parameters: &self.parameters,
            execution_start: self.execution_start,
            execution_duration_ms: self.execution_duration_ms,
            status: &self.status,
            result: self.result.as_deref(),
            error: self.error.as_deref(),
            error_type: self.error_type.as_deref(),
            door: self.door.as_deref(),
            principal: self.principal.as_deref(),
        }
    }
}

impl From<CallView<'_>> for CallRow {
    fn from(view: CallView<'_>) -> CallRow {
        let own = |it: Option<&str>| it.map(str::to_owned);
        CallRow {
            request_id: view.request_id.to_owned(),
            thread_id: own(view.thread_id),
            source: view.source.to_owned(),
            tool_name: view.tool_name.to_owned(),
            parameters: view.parameters.to_owned(),
            execution_start: view.execution_start,
            execution_duration_ms: view.execution_duration_ms,
            status: view.status.to_owned(),
            result: own(view.result),
            error: own(view.error),
            error_type: own(view.error_type),
            door: own(view.door),
            principal: own(view.principal),
        }
    }
}
