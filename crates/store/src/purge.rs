//! Deletes old calls and measures the size of the journal.

use crate::{
    Store, StoreError,
    rows::{AnyRow, plain_row},
    statement::Statement,
    store::Pools,
};

/// Size of the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalSize {
    /// Bytes in use. On SQLite this is the whole file without its free pages; on PostgreSQL, the rows of calls.
    pub bytes: u64,
    /// Number of calls.
    pub calls: u64,
}

struct SizeRow {
    bytes: i64,
    calls: i64,
}

plain_row!(SizeRow { bytes, calls });

/// Excludes free pages: SQLite reuses the pages of deleted calls, so the file does not grow beyond its peak.
const OF_FILE: &str = "SELECT (page_count - freelist_count) * page_size AS bytes, (SELECT count(*) FROM calls) AS calls \
    FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()";

/// Sums the rows instead of taking the size of the table, which includes deleted rows until PostgreSQL vacuums. 256
/// is an estimate for the short columns of a row.
const OF_SERVER: &str = "SELECT CAST(coalesce(sum(coalesce(pg_column_size(parameters), 0) + \
    coalesce(pg_column_size(result), 0) + coalesce(pg_column_size(error), 0) + 256), 0) AS BIGINT) AS bytes, \
    count(*) AS calls FROM calls";

impl Store {
    /// Measures the journal. On PostgreSQL this reads all calls.
    pub async fn journal_size(&self) -> Result<JournalSize, StoreError> {
        let sql = match &self.pools {
            Pools::Sqlite(_) => OF_FILE,
            Pools::Postgres(_) => OF_SERVER,
        };
        let rows: Vec<SizeRow> = self.read(Statement::new(sql)).await?;
        let size =
            |it: SizeRow| JournalSize { bytes: it.bytes.cast_unsigned(), calls: it.calls.cast_unsigned() };
        Ok(rows.into_iter().next().map(size).unwrap_or_default())
    }

    /// Deletes at most `most` calls, oldest first, and returns how many it deleted. With `before` (microseconds
    /// since 1970), deletes only calls that started earlier.
    pub async fn delete_oldest_calls(&self, before: Option<i64>, most: usize) -> Result<usize, StoreError> {
        let oldest = "DELETE FROM calls WHERE request_id IN (SELECT request_id FROM calls WHERE 1 = 1";
        let statement = Statement::new(oldest).and("execution_start < ", before);
        let statement = statement.sql(" ORDER BY execution_start, request_id LIMIT ").value(most as i64);
        let deleted: Vec<AnyRow> = self.write_one(statement.sql(") RETURNING request_id")).await?;
        Ok(deleted.len())
    }
}
