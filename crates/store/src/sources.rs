//! The `sources` table: sources registered at run time.

use crate::{
    Change, Store, StoreError, clock,
    rows::{AnyRow, plain_row},
    statement::{Statement, Value},
};

const COLUMNS: &str = "id, name, definition, origin, enabled, lifecycle, health, consecutive_failures, \
    inventory_hash, secrets, created_at, updated_at, epoch";

/// One registered source.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SourceRow {
    /// Permanent id.
    pub id: String,
    /// Unique name.
    pub name: String,
    /// The registered definition, as JSON, without secrets.
    pub definition: String,
    /// Origin of the registration, such as `rest`.
    pub origin: String,
    /// Whether the source is in use.
    pub enabled: bool,
    /// `transient` or `singleton`.
    pub lifecycle: String,
    /// `unknown`, `healthy`, `degraded` or `unhealthy`.
    pub health: String,
    /// Number of failures since the last success.
    pub consecutive_failures: i64,
    /// Hash of the tool list as last read.
    pub inventory_hash: Option<String>,
    /// Secrets, encrypted by the caller.
    pub secrets: Option<Vec<u8>>,
    /// Registration time, in microseconds since 1970; set by the store.
    pub created_at: i64,
    /// Time of the last change; set by the store.
    pub updated_at: i64,
    /// Number of changes; set by the store.
    pub epoch: i64,
}

plain_row!(SourceRow {
    id,
    name,
    definition,
    origin,
    enabled,
    lifecycle,
    health,
    consecutive_failures,
    inventory_hash,
    secrets,
    created_at,
    updated_at,
    epoch,
});

impl Store {
    /// Registers a source and returns it with its timestamps. Fails with [`StoreError::Conflict`] if the id or name
    /// is taken.
    pub async fn insert_source(&self, source: &SourceRow) -> Result<SourceRow, StoreError> {
        let now = clock::now();
        let source = SourceRow { created_at: now, updated_at: now, epoch: 1, ..source.clone() };
        let statement = Statement::new("INSERT INTO sources (").sql(COLUMNS).sql(") VALUES (");
        let statement = statement.values(source.values()).sql(")");
        let _: Vec<AnyRow> = self.write_and_notify(&Change::Sources, vec![statement]).await?;
        Ok(source)
    }

    /// Returns all sources, sorted by name.
    pub async fn sources(&self) -> Result<Vec<SourceRow>, StoreError> {
        let mut all: Vec<SourceRow> = self.read(select()).await?;
        // Sorted here, because the engines collate text differently.
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Returns one source.
    pub async fn source(&self, id: &str) -> Result<Option<SourceRow>, StoreError> {
        Ok(self.read(select().and("id = ", Some(id))).await?.into_iter().next())
    }

    /// Updates a source if it still has the epoch of `source`, and returns the new row. Returns `None` if another
    /// writer changed or deleted it first.
    pub async fn update_source(&self, source: &SourceRow) -> Result<Option<SourceRow>, StoreError> {
        let SourceRow { id, name, definition, origin, enabled, lifecycle, health, .. } = source;
        let statement = Statement::new("UPDATE sources SET epoch = epoch + 1, updated_at = ")
            .value(clock::now())
            .sql(", name = ")
            .value(name.as_str())
            .sql(", definition = ")
            .value(definition.as_str())
            .sql(", origin = ")
            .value(origin.as_str())
            .sql(", enabled = ")
            .value(*enabled)
            .sql(", lifecycle = ")
            .value(lifecycle.as_str())
            .sql(", health = ")
            .value(health.as_str())
            .sql(", consecutive_failures = ")
            .value(source.consecutive_failures)
            .sql(", inventory_hash = ")
            .value(source.inventory_hash.as_deref())
            .sql(", secrets = ")
            .value(source.secrets.clone())
            .sql(" WHERE id = ")
            .value(id.as_str())
            .sql(" AND epoch = ")
            .value(source.epoch)
            .sql(" RETURNING ")
            .sql(COLUMNS);
        Ok(self.write_and_notify(&Change::Sources, vec![statement]).await?.into_iter().next())
    }

    /// Records the health of a source. The epoch stays the same, because the definition does not change.
    pub async fn store_health(&self, id: &str, health: &str, failures: i64) -> Result<(), StoreError> {
        let statement = Statement::new("UPDATE sources SET health = ").value(health);
        let statement = statement.sql(", consecutive_failures = ").value(failures);
        let _: Vec<AnyRow> = self.write_one(statement.sql(" WHERE id = ").value(id)).await?;
        Ok(())
    }

    /// Records the hash of a source's tool list. The epoch stays the same.
    pub async fn store_inventory_hash(&self, id: &str, hash: &str) -> Result<(), StoreError> {
        let statement = Statement::new("UPDATE sources SET inventory_hash = ").value(hash);
        let _: Vec<AnyRow> = self.write_one(statement.sql(" WHERE id = ").value(id)).await?;
        Ok(())
    }

    /// Deletes a source and its tools. Returns whether it existed.
    pub async fn delete_source(&self, id: &str) -> Result<bool, StoreError> {
        let tools = Statement::new("DELETE FROM tools WHERE source = (SELECT name FROM sources WHERE id = ");
        let source = Statement::new("DELETE FROM sources WHERE id = ").value(id).sql(" RETURNING epoch");
        let editions = Statement::new(
            "DELETE FROM tool_definitions WHERE source = (SELECT name FROM sources WHERE id = ",
        );
        let statements = vec![tools.value(id).sql(")"), editions.value(id).sql(")"), source];
        let gone: Vec<AnyRow> = self.write_and_notify(&Change::Sources, statements).await?;
        Ok(!gone.is_empty())
    }
}

fn select() -> Statement {
    Statement::new("SELECT ").sql(COLUMNS).sql(" FROM sources WHERE 1 = 1")
}

impl SourceRow {
    fn values(&self) -> [Value; 13] {
        [
            self.id.as_str().into(),
            self.name.as_str().into(),
            self.definition.as_str().into(),
            self.origin.as_str().into(),
            self.enabled.into(),
            self.lifecycle.as_str().into(),
            self.health.as_str().into(),
            self.consecutive_failures.into(),
            self.inventory_hash.as_deref().into(),
            self.secrets.clone().into(),
            self.created_at.into(),
            self.updated_at.into(),
            self.epoch.into(),
        ]
    }
}

impl std::fmt::Debug for SourceRow {
    /// Omits the fields that may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SourceRow { id, name, enabled, health, epoch, .. } = self;
        let mut shown = f.debug_struct("SourceRow");
        shown.field("id", id).field("name", name).field("enabled", enabled).field("health", health);
        shown.field("epoch", epoch).finish_non_exhaustive()
    }
}
