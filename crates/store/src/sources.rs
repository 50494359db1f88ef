//! The table of sources that were registered at run time.

use crate::{
    Change, Store, StoreError, clock,
    rows::{Touched, plain_row},
    statement::{Statement, Value},
};

const COLUMNS: &str = "id, name, definition, origin, enabled, lifecycle, health, consecutive_failures, \
    inventory_hash, secrets, created_at, updated_at, epoch";

/// One source.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SourceRow {
    /// What it is known by, for ever.
    pub id: String,
    /// Its name, which no other source has.
    pub name: String,
    /// What was registered, as JSON, without secrets.
    pub definition: String,
    /// Where it came from, such as `rest`.
    pub origin: String,
    /// Whether it is used.
    pub enabled: bool,
    /// `transient` or `singleton`.
    pub lifecycle: String,
    /// `unknown`, `healthy`, `degraded` or `unhealthy`.
    pub health: String,
    /// How many failures there were since the last success.
    pub consecutive_failures: i64,
    /// What its tools were when they were listed last.
    pub inventory_hash: Option<String>,
    /// Its secrets, encrypted by whoever registered it.
    pub secrets: Option<Vec<u8>>,
    /// When it was registered, in microseconds since 1970; set by the store.
    pub created_at: i64,
    /// When it was changed last; set by the store.
    pub updated_at: i64,
    /// How often it was changed; set by the store.
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
    /// Registers a source and gives it back with its times. [`StoreError::Conflict`] if its id or name is taken.
    pub async fn insert_source(&self, source: &SourceRow) -> Result<SourceRow, StoreError> {
        let now = clock::now();
        let source = SourceRow { created_at: now, updated_at: now, epoch: 1, ..source.clone() };
        let statement = Statement::new("INSERT INTO sources (").sql(COLUMNS).sql(") VALUES (");
        let statement = statement.values(source.values()).sql(")");
        let _: Vec<Touched> = self.write_and_tell(&Change::Sources, vec![statement]).await?;
        Ok(source)
    }

    /// All sources, by name.
    pub async fn sources(&self) -> Result<Vec<SourceRow>, StoreError> {
        let mut all: Vec<SourceRow> = self.read(select()).await?;
        // The engines disagree about the order of text.
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// One source.
    pub async fn source(&self, id: &str) -> Result<Option<SourceRow>, StoreError> {
        Ok(self.read(select().and("id = ", Some(id))).await?.into_iter().next())
    }

    /// Writes a source anew, if it still has the epoch that `source` was read with, and gives it back with the next.
    /// `None` if somebody else was faster, or it is gone.
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
        Ok(self.write_and_tell(&Change::Sources, vec![statement]).await?.into_iter().next())
    }

    /// Notes how a source is, without a new epoch: that is no change of the source.
    pub async fn note_health(&self, id: &str, health: &str, failures: i64) -> Result<(), StoreError> {
        let statement = Statement::new("UPDATE sources SET health = ").value(health);
        let statement = statement.sql(", consecutive_failures = ").value(failures);
        let _: Vec<Touched> = self.write_one(statement.sql(" WHERE id = ").value(id)).await?;
        Ok(())
    }

    /// Notes what a source's tools were when they were listed last, without a new epoch.
    pub async fn note_inventory(&self, id: &str, hash: &str) -> Result<(), StoreError> {
        let statement = Statement::new("UPDATE sources SET inventory_hash = ").value(hash);
        let _: Vec<Touched> = self.write_one(statement.sql(" WHERE id = ").value(id)).await?;
        Ok(())
    }

    /// Removes a source and what is known of its tools. Says whether there was one.
    pub async fn delete_source(&self, id: &str) -> Result<bool, StoreError> {
        let tools = Statement::new("DELETE FROM tools WHERE source = (SELECT name FROM sources WHERE id = ");
        let source = Statement::new("DELETE FROM sources WHERE id = ").value(id).sql(" RETURNING epoch");
        let statements = vec![tools.value(id).sql(")"), source];
        let gone: Vec<Touched> = self.write_and_tell(&Change::Sources, statements).await?;
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
    /// Without what may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SourceRow { id, name, enabled, health, epoch, .. } = self;
        let mut shown = f.debug_struct("SourceRow");
        shown.field("id", id).field("name", name).field("enabled", enabled).field("health", health);
        shown.field("epoch", epoch).finish_non_exhaustive()
    }
}
