//! The `calls` table, also called the journal: written in batches, read newest first.

use crate::{Store, StoreError, columns::columns, rows::AnyRow, sqlite::Durability, statement::Statement};
use std::sync::Arc;

/// Maximum number of rows per `INSERT`. At 14 values per row this stays far below the bind limit of either engine.
const MAX_INSERT_ROWS: usize = 256;

/// Maximum number of rows per `INSERT` on SQLite. Each statement wakes the driver's thread and ours once.
const MAX_SQLITE_ROWS: usize = 64;

/// On SQLite, the number of rows of a long `INSERT` is a multiple of this.
const SQLITE_ROWS_STEP: usize = 8;

/// Number of calls that one query looks at, if its filter has conditions without an index. The query takes a few
/// milliseconds then, however long the journal is.
const MAX_SCANNED_CALLS: i64 = 5_000;

columns! {
    /// One recorded call. The caller has already redacted and truncated its contents.
    ///
    /// A text is shared, not copied: many calls have the same, and the driver of SQLite takes it as it is.
    ///
    /// The order of the columns is the order in the encoding, which must not change: an upgrade reads spool files of
    /// the version before. A row of that version has no values for the columns that were appended since.
    pub struct CallRow {
        /// Start time, in microseconds since 1970.
        pub execution_start: i64,
        /// Duration in milliseconds.
        pub execution_duration_ms: f64,
        /// Unique id of the call.
        pub request_id: Arc<str>,
        /// Conversation that the call belongs to.
        pub thread_id: Option<Arc<str>>,
        /// Name of the source.
        pub source: Arc<str>,
        /// Name of the tool.
        pub tool_name: Arc<str>,
        /// Arguments, as JSON.
        pub parameters: Arc<str>,
        /// `success`, `failure` or `timeout`.
        pub status: Arc<str>,
        /// Result, as JSON.
        pub result: Option<Arc<str>>,
        /// Error message.
        pub error: Option<Arc<str>>,
        /// Type of the error.
        pub error_type: Option<Arc<str>>,
        /// Interface that received the call: `rest`, `mcp`, or `gone` if the caller disconnected.
        pub via: Option<Arc<str>>,
        /// The authenticated principal, if any.
        pub principal: Option<Arc<str>>,
        /// Phase, sent, hint, trace id and stages, as JSON, if there is anything to say.
        pub details: Option<Arc<str>>,
    }
}

/// Selects calls. A call must match every field that is set.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Interface that received the call.
    pub via: Option<String>,
    /// The authenticated principal.
    pub principal: Option<String>,
    /// Type of the error.
    pub error_type: Option<String>,
    /// Minimum duration in milliseconds.
    pub min_ms: Option<f64>,
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
    /// Cursor for the next page, if there is one. A page may be short, or empty, and still have a next one.
    pub next: Option<CallCursor>,
}

impl Store {
    /// Records calls. A call whose id is already recorded stays unchanged, so a caller can send the whole batch
    /// again after a partial failure. On SQLite a power cut can lose the latest calls, because their commits are not
    /// synced one by one.
    pub async fn record_calls(&self, calls: Vec<CallRow>) -> Result<(), StoreError> {
        let statements = self.inserts(calls);
        if statements.is_empty() {
            return Ok(());
        }
        let _: Vec<AnyRow> = self.write_as(Durability::ProcessCrash, statements).await?;
        Ok(())
    }

    /// Builds the `INSERT` statements. Every number of rows is a statement of its own, which the engine prepares once and
    /// keeps in a cache of 100. On PostgreSQL a prepared statement is cheap and a round trip is not. On SQLite it is the
    /// other way round, so there are only eleven statements.
    fn inserts(&self, calls: Vec<CallRow>) -> Vec<Statement> {
        let mut statements = Vec::new();
        let mut calls = calls.into_iter();
        while calls.len() > 0 {
            let rows =
                if self.is_shared() { calls.len().min(MAX_INSERT_ROWS) } else { sqlite_rows(calls.len()) };
            let (insert, end) = match self.is_shared() {
                true => ("INSERT INTO calls (", " ON CONFLICT (request_id) DO NOTHING"),
                // Unlike `ON CONFLICT`, this cannot fail in the middle, so SQLite writes no journal of the statement.
                false => ("INSERT OR IGNORE INTO calls (", ""),
            };
            let statement = Statement::new(insert).sql(CallRow::COLUMNS).sql(") VALUES ");
            let statement = statement.rows(calls.by_ref().take(rows).map(CallRow::into_values));
            statements.push(statement.sql(end));
        }
        statements
    }

    /// Returns one call.
    pub async fn call(&self, request_id: &str) -> Result<Option<CallRow>, StoreError> {
        let rows: Vec<CallRow> = self.read(select().and("request_id = ", Some(request_id))).await?;
        Ok(rows.into_iter().next())
    }

    /// Lists the calls that match a filter, newest first, starting after the cursor.
    ///
    /// An index answers one condition of the filter, and the time. For the other conditions this looks at
    /// a limited number of calls: a tool that was called once would otherwise cost a walk through the whole journal. The
    /// next page goes on from there.
    pub async fn list_calls(
        &self,
        filter: &CallFilter,
        after: Option<&CallCursor>,
        limit: usize,
    ) -> Result<CallPage, StoreError> {
        let (indexed, others) = filter.split();
        let page_size = limit as i64 + 1;
        if others == CallFilter::default() {
            let statement = newest_first(indexed.narrow_after(select(), after));
            return Ok(CallPage::of(self.read(statement.value(page_size)).await?, limit, None));
        }
        let end = self.scan_end(&indexed, after).await?;
        let statement = Statement::new("SELECT ").sql(CallRow::COLUMNS).sql(" FROM (SELECT ");
        let statement = statement.sql(CallRow::COLUMNS).sql(FROM_CALLS);
        let statement = indexed.narrow_after(statement, after);
        let statement = match &end {
            Some(end) => compare(statement, " >= ", end),
            None => statement,
        };
        // New calls may have joined since the end was found; they must not push older ones out.
        let statement = newest_first(statement).value(2 * MAX_SCANNED_CALLS);
        let statement = others.narrow(statement.sql(") AS candidates WHERE 1 = 1"));
        let calls = self.read(newest_first(statement).value(page_size)).await?;
        Ok(CallPage::of(calls, limit, end))
    }

    /// Returns the last call that one query looks at, or `None` if it can look at all of them.
    async fn scan_end(
        &self,
        indexed: &CallFilter,
        after: Option<&CallCursor>,
    ) -> Result<Option<CallCursor>, StoreError> {
        // The inner query reads nothing but an index.
        let statement = select().sql(" AND request_id = (SELECT request_id").sql(FROM_CALLS);
        let statement = newest_first(indexed.narrow_after(statement, after));
        let statement = statement.value(1).sql(" OFFSET ").value(MAX_SCANNED_CALLS - 1).sql(")");
        let calls: Vec<CallRow> = self.read(statement).await?;
        Ok(calls.first().map(CallCursor::of))
    }
}

impl CallPage {
    /// Makes a page from one call more than it may have, if there is one. Otherwise the next page starts after `end`.
    fn of(mut calls: Vec<CallRow>, limit: usize, end: Option<CallCursor>) -> CallPage {
        let more = calls.len() > limit;
        calls.truncate(limit);
        let next = if more { calls.last().map(CallCursor::of) } else { end };
        CallPage { calls, next }
    }
}

impl CallCursor {
    /// The position of this call.
    pub fn of(call: &CallRow) -> CallCursor {
        CallCursor { execution_start: call.execution_start, request_id: call.request_id.as_ref().to_owned() }
    }
}

impl CallFilter {
    /// Splits off the condition that an index answers, with the time. The rarest is chosen: calls of one conversation,
    /// calls that failed, calls of one source.
    fn split(&self) -> (CallFilter, CallFilter) {
        let mut others = self.clone();
        let (since, until) = (others.since.take(), others.until.take());
        let mut indexed = CallFilter { since, until, ..CallFilter::default() };
        if others.thread_id.is_some() {
            indexed.thread_id = others.thread_id.take();
        } else if others.status.as_deref().is_some_and(|it| it != "success") {
            indexed.status = others.status.take();
        } else {
            indexed.source = others.source.take();
        }
        (indexed, others)
    }

    fn narrow_after(&self, statement: Statement, after: Option<&CallCursor>) -> Statement {
        let statement = self.narrow(statement);
        match after {
            Some(cursor) => compare(statement, " < ", cursor),
            None => statement,
        }
    }

    fn narrow(&self, statement: Statement) -> Statement {
        let CallFilter {
            source,
            tool_name,
            thread_id,
            status,
            since,
            until,
            via,
            principal,
            error_type,
            min_ms,
        } = self;
        let statement = statement
            .and("source = ", source.as_deref())
            .and("tool_name = ", tool_name.as_deref())
            .and("thread_id = ", thread_id.as_deref())
            .and("via = ", via.as_deref())
            .and("principal = ", principal.as_deref())
            .and("error_type = ", error_type.as_deref())
            .and("execution_duration_ms >= ", *min_ms);
        // This condition is redundant. It lets both engines use the partial index of calls that did not succeed.
        let statement = match status.as_deref() {
            None if error_type.is_some() => statement.sql(" AND status <> 'success'"),
            Some(status) if status != "success" => statement.sql(" AND status <> 'success'"),
            _ => statement,
        };
        let statement = statement.and("status = ", status.as_deref());
        statement.and("execution_start >= ", *since).and("execution_start < ", *until)
    }
}

/// Returns the number of rows of the next `INSERT` on SQLite: a power of two, or a multiple of eight.
fn sqlite_rows(left: usize) -> usize {
    match left.min(MAX_SQLITE_ROWS) {
        few @ ..SQLITE_ROWS_STEP => 1 << few.ilog2(),
        many => many - many % SQLITE_ROWS_STEP,
    }
}

const FROM_CALLS: &str = " FROM calls WHERE 1 = 1";

fn select() -> Statement {
    Statement::new("SELECT ").sql(CallRow::COLUMNS).sql(FROM_CALLS)
}

/// Appends a comparison of a call's position with a cursor.
fn compare(statement: Statement, operator: &'static str, cursor: &CallCursor) -> Statement {
    let statement = statement.sql(" AND (execution_start, request_id)").sql(operator).sql("(");
    statement.value(cursor.execution_start).sql(", ").value(cursor.request_id.as_str()).sql(")")
}

/// Appends the order; the maximum number of rows follows.
fn newest_first(statement: Statement) -> Statement {
    statement.sql(" ORDER BY execution_start DESC, request_id DESC LIMIT ")
}
