//! The table of calls: written in batches, read newest first.

use crate::{
    Calls, ReadPage, Store, StoreError,
    rows::{Touched, plain_row},
    statement::{Statement, Value},
    store::Pools,
};

pub(crate) const COLUMNS: &str = "request_id, thread_id, source, tool_name, parameters, execution_start, \
    execution_duration_ms, status, result, error, error_type, door, principal";

/// The most rows in one statement. With thirteen values each they stay far below what either engine can bind, and the
/// statements of all lengths fit among those that it remembers.
const CHUNK: usize = 256;

/// One call, as it is kept. Whoever records it has redacted and bounded what it holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallRow {
    /// What the call is known by.
    pub request_id: String,
    /// The conversation it belongs to.
    pub thread_id: Option<String>,
    /// The source that was called.
    pub source: String,
    /// The tool.
    pub tool_name: String,
    /// What it was called with, as JSON.
    pub parameters: String,
    /// When it began, in microseconds since 1970.
    pub execution_start: i64,
    /// How long it took.
    pub execution_duration_ms: f64,
    /// `success`, `failure` or `timeout`.
    pub status: String,
    /// What came of it, as JSON.
    pub result: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// The name of the error.
    pub error_type: Option<String>,
    /// Where the call came in: `rest`, `mcp`, `cli`, `agent`.
    pub door: Option<String>,
    /// Who made it.
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

/// Which calls are wanted. All that is given must be met.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// Of this source.
    pub source: Option<String>,
    /// Of this tool.
    pub tool_name: Option<String>,
    /// Of this conversation.
    pub thread_id: Option<String>,
    /// Of this status.
    pub status: Option<String>,
    /// Begun at this time or later, in microseconds since 1970.
    pub since: Option<i64>,
    /// Begun before this time.
    pub until: Option<i64>,
}

/// Where a page ends: the last call on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCursor {
    /// When that call began.
    pub execution_start: i64,
    /// What it is known by.
    pub request_id: String,
}

/// Some calls, the newest first.
#[derive(Clone, Debug, Default)]
pub struct CallPage {
    /// The calls.
    pub calls: Vec<CallRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<CallCursor>,
}

impl Store {
    /// Keeps calls. A call that is kept already stays as it is, so those whose fate is unknown, because it failed in the
    /// middle, can all be given again.
    pub async fn record_calls(&self, calls: impl IntoIterator<Item = CallRow>) -> Result<(), StoreError> {
        if let Pools::Sqlite(files) = &self.pools {
            let rows = Rows(calls.into_iter().collect());
            return files.recorder.record(rows, Rows::views, files.turn.clone()).await;
        }
        let statements = inserts(calls.into_iter());
        if statements.is_empty() {
            return Ok(());
        }
        let _: Vec<Touched> = self.write(statements).await?;
        Ok(())
    }

    /// Keeps the calls that lie on a page.
    pub async fn record_page(&self, page: Vec<u8>, read: ReadPage) -> Result<(), StoreError> {
        match &self.pools {
            Pools::Sqlite(files) => files.recorder.record((page, read), on_page, files.turn.clone()).await,
            Pools::Postgres(_) => self.record_calls(read(&page).map(CallRow::from)).await,
        }
    }

    /// One call.
    pub async fn call(&self, request_id: &str) -> Result<Option<CallRow>, StoreError> {
        let rows: Vec<CallRow> = self.read(select().and("request_id = ", Some(request_id))).await?;
        Ok(rows.into_iter().next())
    }

    /// The calls that meet a filter, from after the cursor, the newest first.
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
        // Said twice, so that the engines see that the index of troubles will do.
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
