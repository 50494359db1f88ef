//! Deleting old calls, and finding out whether there are too many.

use crate::{
    Store, StoreError,
    rows::{Touched, plain_row},
    statement::Statement,
    store::Pools,
};

/// How large the journal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalSize {
    /// The bytes that are in use: on SQLite those of the whole file without its free pages, on PostgreSQL those of the calls.
    pub bytes: u64,
    /// The calls.
    pub calls: u64,
}

struct SizeRow {
    bytes: i64,
    calls: i64,
}

plain_row!(SizeRow { bytes, calls });

/// What a deleted call leaves is used again by later ones, so a file does not grow beyond what was in it at one time.
const OF_FILE: &str = "SELECT (page_count - freelist_count) * page_size AS bytes, (SELECT count(*) FROM calls) AS calls \
    FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()";

/// The size of the table would count deleted calls until the server cleans up. The last number is what a row is beside
/// its three long columns.
const OF_SERVER: &str = "SELECT CAST(coalesce(sum(coalesce(pg_column_size(parameters), 0) + \
    coalesce(pg_column_size(result), 0) + coalesce(pg_column_size(error), 0) + 256), 0) AS BIGINT) AS bytes, \
    count(*) AS calls FROM calls";

impl Store {
    /// How large the journal is. On PostgreSQL this reads all of it.
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

    /// Deletes at most so many calls, the oldest first, of those that began before a time (in microseconds since 1970), or
    /// of all. How many those were.
    pub async fn delete_oldest_calls(&self, before: Option<i64>, most: usize) -> Result<usize, StoreError> {
        let oldest = "DELETE FROM calls WHERE request_id IN (SELECT request_id FROM calls WHERE 1 = 1";
        let statement = Statement::new(oldest).and("execution_start < ", before);
        let statement = statement.sql(" ORDER BY execution_start, request_id LIMIT ").value(most as i64);
        let deleted: Vec<Touched> = self.write_one(statement.sql(") RETURNING request_id")).await?;
        Ok(deleted.len())
    }
}
