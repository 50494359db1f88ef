//! The `results` and `result_chunks` tables: results of calls that were too large for their readers.
//!
//! Every function that finds a result takes its principal, so nobody finds another one's. PostgreSQL has the content in rows,
//! because replicas share it; beside SQLite it is in files, so that large results do not pass through the database.

use crate::{
    Store, StoreError, clock,
    result_files::ResultFiles,
    rows::{AnyRow, plain_row},
    statement::Statement,
    store::Pools,
};

const COLUMNS: &str = "id, conversation_id, number, principal, request_id, source, tool_name, kind, bytes, sha256, \
    created_at, expires_at";
/// Size of a part of a content, in bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// Number of attempts to number a result, if other processes number results of the same conversation.
const MAX_ATTEMPTS: usize = 5;
/// Condition for content whose result no longer exists.
const LOST_CHUNKS: &str = " WHERE id NOT IN (SELECT id FROM results)";

/// One stored result, without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultRow {
    /// Id that nobody can guess.
    pub id: String,
    /// The conversation, if it belongs to one.
    pub conversation_id: Option<String>,
    /// Number in the conversation. Set by the store.
    pub number: Option<i64>,
    /// The principal that owns it.
    pub principal: String,
    /// Request id of the call.
    pub request_id: String,
    /// Name of the source.
    pub source: String,
    /// Name of the tool on the wire.
    pub tool_name: String,
    /// Kind of the document.
    pub kind: String,
    /// Size of the content, in bytes.
    pub bytes: i64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// Time, in microseconds since 1970. Set by the store.
    pub created_at: i64,
    /// Time of deletion, in microseconds since 1970. The store sets none if the conversation is kept.
    pub expires_at: Option<i64>,
}

plain_row!(ResultRow {
    id,
    conversation_id,
    number,
    principal,
    request_id,
    source,
    tool_name,
    kind,
    bytes,
    sha256,
    created_at,
    expires_at
});

struct ChunkRow {
    bytes: Vec<u8>,
}

plain_row!(ChunkRow { bytes });

struct LostChunk {
    id: String,
}

plain_row!(LostChunk { id });

/// Limits on stored results.
#[derive(Clone, Copy, Debug)]
pub struct ResultLimits {
    /// Maximum size of the results of one principal, in bytes.
    pub per_principal: i64,
    /// Maximum number of results of one principal.
    pub count: i64,
    /// Maximum size of all results, in bytes.
    pub total: i64,
}

impl Store {
    /// Stores a result and deletes the oldest beyond the limits. Returns it with its number, or `None` if it is larger
    /// than the limits allow.
    pub async fn put_result(
        &self,
        row: &ResultRow,
        content: &[u8],
        limits: ResultLimits,
    ) -> Result<Option<ResultRow>, StoreError> {
        let mut written = self.try_put(row, content, limits).await;
        for _ in 1..MAX_ATTEMPTS {
            if !matches!(written, Err(StoreError::Conflict)) {
                break;
            }
            written = self.try_put(row, content, limits).await;
        }
        let written = written?;
        if let (Some(files), Some(_)) = (self.result_files(), &written)
            && let Err(error) = files.write(&row.id, content).await
        {
            self.delete_result(&row.principal, &row.id).await?;
            return Err(error);
        }
        self.delete_lost_chunks().await?;
        Ok(written)
    }

    fn result_files(&self) -> Option<&ResultFiles> {
        match &self.pools {
            Pools::Sqlite(files) => Some(&files.result_files),
            Pools::Postgres(_) => None,
        }
    }

    async fn try_put(
        &self,
        row: &ResultRow,
        content: &[u8],
        limits: ResultLimits,
    ) -> Result<Option<ResultRow>, StoreError> {
        let mut statements = vec![insert(row)];
        let parts: Vec<&[u8]> = match self.result_files() {
            // The row says that there is a file.
            Some(_) => vec![&[]],
            None => content.chunks(CHUNK_BYTES).collect(),
        };
        for (part, bytes) in parts.into_iter().enumerate() {
            let values = [row.id.as_str().into(), (part as i64).into(), Some(bytes.to_vec()).into()];
            let statement = Statement::new("INSERT INTO result_chunks (id, part, bytes) VALUES (");
            statements.push(statement.values(values).sql(")"));
        }
        let ranked = "DELETE FROM results WHERE id IN (SELECT id FROM (SELECT id, \
            sum(bytes) OVER (ORDER BY created_at DESC, id DESC) AS used, \
            row_number() OVER (ORDER BY created_at DESC, id DESC) AS place FROM results";
        let own = Statement::new(ranked).sql(" WHERE principal = ").value(row.principal.as_str());
        let own = own.sql(") AS ranked WHERE used > ").value(limits.per_principal);
        statements.push(own.sql(" OR place > ").value(limits.count).sql(")"));
        let all = Statement::new(ranked).sql(") AS ranked WHERE used > ").value(limits.total);
        statements.push(all.sql(")"));
        statements.push(select().sql(" WHERE id = ").value(row.id.as_str()));
        Ok(self.write(statements).await?.pop())
    }

    /// Finds a result of a principal and its content: by id, or by its number in a conversation.
    pub async fn find_result(
        &self,
        principal: &str,
        id: &str,
        numbered: Option<(&str, i64)>,
    ) -> Result<Option<(ResultRow, Vec<u8>)>, StoreError> {
        let statement = select().sql(" WHERE principal = ").value(principal).sql(" AND (id = ").value(id);
        let statement = match numbered {
            Some((conversation, number)) => {
                let statement = statement.sql(" OR conversation_id = ").value(conversation);
                statement.sql(" AND number = ").value(number)
            }
            None => statement,
        };
        let statement =
            statement.sql(") AND (expires_at IS NULL OR expires_at > ").value(clock::now()).sql(")");
        let Some(row) = self.read::<ResultRow>(statement).await?.pop() else { return Ok(None) };
        if let Some(files) = self.result_files()
            && let Some(content) = files.read(&row.id).await?
        {
            return Ok((content.len() as i64 == row.bytes).then_some((row, content)));
        }
        let chunks = Statement::new("SELECT bytes FROM result_chunks WHERE id = ").value(row.id.as_str());
        let chunks: Vec<ChunkRow> = self.read(chunks.sql(" ORDER BY part")).await?;
        let content = chunks.into_iter().flat_map(|it| it.bytes).collect::<Vec<u8>>();
        // It may have been deleted between the two statements.
        Ok((content.len() as i64 == row.bytes).then_some((row, content)))
    }

    /// Returns the results of a principal, the latest first.
    pub async fn results_of(&self, principal: &str) -> Result<Vec<ResultRow>, StoreError> {
        let statement = select().sql(" WHERE principal = ").value(principal);
        let statement = statement.sql(" AND (expires_at IS NULL OR expires_at > ").value(clock::now());
        self.read(statement.sql(") ORDER BY created_at DESC, id DESC")).await
    }

    /// Deletes a result of a principal. Returns whether it existed.
    pub async fn delete_result(&self, principal: &str, id: &str) -> Result<bool, StoreError> {
        let statement = Statement::new("DELETE FROM results WHERE principal = ").value(principal);
        let statement = statement.sql(" AND id = ").value(id).sql(" RETURNING id");
        let deleted: Vec<AnyRow> = self.write_one(statement).await?;
        self.delete_lost_chunks().await?;
        Ok(!deleted.is_empty())
    }

    /// Deletes the results that have expired, and those of conversations that have been deleted.
    pub async fn delete_expired_results(&self) -> Result<usize, StoreError> {
        let statement = Statement::new("DELETE FROM results WHERE expires_at <= ").value(clock::now());
        let statement = statement.sql(
            " OR expires_at IS NULL AND NOT EXISTS (SELECT 1 FROM conversations \
             WHERE conversations.id = results.conversation_id) RETURNING id",
        );
        let deleted: Vec<AnyRow> = self.write_one(statement).await?;
        self.delete_lost_chunks().await?;
        Ok(deleted.len())
    }

    /// Deletes the content of results that no longer exist. A file is removed before the row that marks it.
    pub(crate) async fn delete_lost_chunks(&self) -> Result<(), StoreError> {
        if let Some(files) = self.result_files() {
            let lost = Statement::new("SELECT id FROM result_chunks").sql(LOST_CHUNKS);
            let lost: Vec<LostChunk> = self.read(lost).await?;
            if lost.is_empty() {
                return Ok(());
            }
            files.remove(&lost.into_iter().map(|it| it.id).collect::<Vec<_>>()).await?;
        }
        let delete = Statement::new("DELETE FROM result_chunks").sql(LOST_CHUNKS);
        let _: Vec<AnyRow> = self.write_one(delete).await?;
        Ok(())
    }
}

fn select() -> Statement {
    Statement::new("SELECT ").sql(COLUMNS).sql(" FROM results")
}

fn insert(row: &ResultRow) -> Statement {
    let conversation = || row.conversation_id.as_deref();
    let statement = Statement::new("INSERT INTO results (").sql(COLUMNS).sql(") VALUES (");
    let statement = statement.value(row.id.as_str()).sql(", ").value(conversation()).sql(", ");
    let statement = match conversation() {
        Some(conversation) => statement
            .sql("(SELECT coalesce(max(number), 0) + 1 FROM results WHERE conversation_id = ")
            .value(conversation)
            .sql(")"),
        None => statement.sql("NULL"),
    };
    let statement = statement.sql(", ").values([
        row.principal.as_str().into(),
        row.request_id.as_str().into(),
        row.source.as_str().into(),
        row.tool_name.as_str().into(),
        row.kind.as_str().into(),
        row.bytes.into(),
        row.sha256.as_str().into(),
        clock::now().into(),
    ]);
    let statement = statement.sql(", CASE WHEN EXISTS (SELECT 1 FROM conversations WHERE id = ");
    let statement = statement.value(conversation().unwrap_or_default());
    statement.sql(") THEN NULL ELSE CAST(").value(row.expires_at).sql(" AS BIGINT) END)")
}
