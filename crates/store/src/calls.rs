//! The `calls` table, also called the journal: written in batches, read newest first.

use crate::{
    Calls, ReadPage, Store, StoreError,
    rows::{AnyRow, plain_row},
    statement::{Statement, Value},
    store::Pools,
};

pub(crate) const COLUMNS: &str = "request_id, thread_id, source, tool_name, parameters, execution_start, \
    execution_duration_ms, status, result, error, error_type, door, principal";

/// Maximum number of rows per `INSERT`. At 13 values per row this stays far below the bind limit of either engine,
/// and the statements of every length fit into the statement cache.
const CHUNK: usize = 256;

/// One recorded call. The caller has already redacted and truncated its contents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallRow {
    /// Unique id of the call.
    pub request_id: String,
    /// Conversation that the call belongs to.
    pub thread_id: Option<String>,
    /// Name of the source.
    pub source: String,
    /// Name of the tool.
    pub tool_name: String,
    /// Arguments, as JSON.
    pub parameters: String,
    /// Start time, in microseconds since 1970.
    pub execution_start: i64,
    /// Duration in milliseconds.
    pub execution_duration_ms: f64,
    /// `success`, `failure` or `timeout`.
    pub status: String,
    /// Result, as JSON.
    pub result: Option<String>,
    /// Error message.
    pub error: Option<String>,
    /// Type of the error.
    pub error_type: Option<String>,
    /// Interface that received the call: `rest`, `mcp`, `cli` or `agent`.
    pub door: Option<String>,
    /// The authenticated principal, if any.
    pub principal: Option<String>,
}

plain_row!(CallRow {
    request_id,
    thread_id,
    source,
    tool_name,
    parameters,
    execution_start,
    execution_duration_ms,
    status,
    result,
    error,
    error_type,
    door,
    principal,
});

/// Selects calls. A call must match every field that is set.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// Name of the source.
    pub source: Option<String>,
    /// Name of the tool.
    pub tool_name: Option<String>,
    /// Conversation.
    pub thread_id: Option<String>,
    /// Status.
    pub status: Option<String>,
    /// Earliest start time (inclusive), in microseconds since 1970.
    pub since: Option<i64>,
    /// Latest start time (exclusive).
    pub until: Option<i64>,
}

/// Position in the list: the last call of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCursor {
    /// Start time of that call.
    pub execution_start: i64,
    /// Id of that call.
    pub request_id: String,
}

/// One page of calls, newest first.
#[derive(Clone, Debug, Default)]
pub struct CallPage {
    /// The calls.
    pub calls: Vec<CallRow>,
    /// Cursor for the next page, if there is one.
    pub next: Option<CallCursor>,
}

impl Store {
    /// Records calls. A call whose id is already recorded stays unchanged, so a caller can send the whole batch
    /// again after a partial failure.
    pub async fn record_calls(&self, calls: impl IntoIterator<Item = CallRow>) -> Result<(), StoreError> {
        if let Pools::Sqlite(files) = &self.pools {
            let rows = Rows(calls.into_iter().collect());
            return files.recorder.record(rows, Rows::views, files.write_lock.clone()).await;
        }
        let statements = inserts(calls.into_iter());
        if statements.is_empty() {
            return Ok(());
        }
        let _: Vec<AnyRow> = self.write(statements).await?;
        Ok(())
    }

    /// Records the calls that `read` finds in an encoded page.
    pub async fn record_page(&self, page: Vec<u8>, read: ReadPage) -> Result<(), StoreError> {
        match &self.pools {
            Pools::Sqlite(files) => {
                files.recorder.record((page, read), on_page, files.write_lock.clone()).await
            }
            Pools::Postgres(_) => self.record_calls(read(&page).map(CallRow::from)).await,
        }
    }

    /// Returns one call.
    pub async fn call(&self, request_id: &str) -> Result<Option<CallRow>, StoreError> {
        let rows: Vec<CallRow> = self.read(select().and("request_id = ", Some(request_id))).await?;
        Ok(rows.into_iter().next())
    }

    /// Lists the calls that match a filter, newest first, starting after the cursor.
    pub async fn list_calls(
        &self,
        filter: &CallFilter,
        after: Option<&CallCursor>,
        limit: usize,
    ) -> Result<CallPage, StoreError> {
        let statement = filter.narrow(select());
        let statement = match after {
            Some(CallCursor { execution_start, request_id }) => {
                let statement =
                    statement.sql(" AND (execution_start, request_id) < (").value(*execution_start);
                statement.sql(", ").value(request_id.as_str()).sql(")")
            }
            None => statement,
        };
        let statement = statement.sql(" ORDER BY execution_start DESC, request_id DESC LIMIT ");
        let mut calls: Vec<CallRow> = self.read(statement.value(limit as i64 + 1)).await?;
        let more = calls.len() > limit;
        calls.truncate(limit);
        let next = calls
            .last()
            .filter(|_| more)
            .map(|it| CallCursor { execution_start: it.execution_start, request_id: it.request_id.clone() });
        Ok(CallPage { calls, next })
    }
}

impl CallFilter {
    fn narrow(&self, statement: Statement) -> Statement {
        let CallFilter { source, tool_name, thread_id, status, since, until } = self;
        let statement = statement
            .and("source = ", source.as_deref())
            .and("tool_name = ", tool_name.as_deref())
            .and("thread_id = ", thread_id.as_deref());
        // This condition is redundant. It lets both engines use the partial index of calls that did not succeed.
        let statement = match status.as_deref() {
            Some(status) if status != "success" => statement.sql(" AND status <> 'success'"),
            _ => statement,
        };
        let statement = statement.and("status = ", status.as_deref());
        statement.and("execution_start >= ", *since).and("execution_start < ", *until)
    }
}

fn select() -> Statement {
    Statement::new("SELECT ").sql(COLUMNS).sql(" FROM calls WHERE 1 = 1")
}

struct Rows(Vec<CallRow>);

impl Rows {
    fn views(&self) -> Calls<'_> {
        Box::new(self.0.iter().map(CallRow::view))
    }
}

fn on_page((page, read): &(Vec<u8>, ReadPage)) -> Calls<'_> {
    read(page)
}

fn inserts(mut calls: impl Iterator<Item = CallRow>) -> Vec<Statement> {
    let mut statements = Vec::new();
    while let Some(first) = calls.next() {
        let mut statement = Statement::new("INSERT INTO calls (").sql(COLUMNS).sql(") VALUES (");
        statement = statement.values(first.into_values());
        for call in calls.by_ref().take(CHUNK - 1) {
            statement = statement.sql("), (").values(call.into_values());
        }
        statements.push(statement.sql(") ON CONFLICT (request_id) DO NOTHING"));
    }
    statements
}

impl CallRow {
    fn into_values(self) -> [Value; 13] {
        [
            self.request_id.into(),
            self.thread_id.into(),
            self.source.into(),
            self.tool_name.into(),
            self.parameters.into(),
            self.execution_start.into(),
            self.execution_duration_ms.into(),
            self.status.into(),
            self.result.into(),
            self.error.into(),
            self.error_type.into(),
            self.door.into(),
            self.principal.into(),
        ]
    }
}
