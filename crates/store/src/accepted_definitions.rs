//! The `accepted_definitions` table: definitions that differ from the lock and that an operator has accepted.

use crate::{
    Change, Store, StoreError, clock,
    rows::{AnyRow, plain_row},
    statement::{Statement, Value},
};

const COLUMNS: &str = "source, kind, name, hash, definition, principal, reason, accepted_at";

/// One accepted definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedDefinition {
    /// Name of the source.
    pub source: String,
    /// `tool`, `prompt`, `template` or `instructions`.
    pub kind: String,
    /// Name on the wire.
    pub name: String,
    /// Hash of the definition.
    pub hash: String,
    /// The definition, as JSON.
    pub definition: String,
    /// The principal that accepted it.
    pub principal: String,
    /// The principal's reason.
    pub reason: Option<String>,
    /// Time, in microseconds since 1970.
    pub accepted_at: i64,
}

plain_row!(AcceptedDefinition { source, kind, name, hash, definition, principal, reason, accepted_at });

impl AcceptedDefinition {
    /// Returns the values of all columns but the time, in the order of the columns.
    fn texts(&self) -> [Value; 7] {
        let AcceptedDefinition { source, kind, name, hash, definition, principal, reason, accepted_at: _ } =
            self;
        [
            source.as_str().into(),
            kind.as_str().into(),
            name.as_str().into(),
            hash.as_str().into(),
            definition.as_str().into(),
            principal.as_str().into(),
            reason.as_deref().into(),
        ]
    }
}

impl Store {
    /// Returns all accepted definitions.
    pub async fn accepted_definitions(&self) -> Result<Vec<AcceptedDefinition>, StoreError> {
        self.read(Statement::new("SELECT ").sql(COLUMNS).sql(" FROM accepted_definitions")).await
    }

    /// Accepts a definition, in place of an earlier one of the same name. Sets its time.
    pub async fn accept_definition(&self, accepted: &AcceptedDefinition) -> Result<(), StoreError> {
        let statement = Statement::new("INSERT INTO accepted_definitions (").sql(COLUMNS).sql(") VALUES (");
        let statement = statement.values(accepted.texts()).sql(", ").value(clock::now());
        let statement = statement.sql(
            ") ON CONFLICT (source, kind, name) DO UPDATE SET hash = excluded.hash, definition = excluded.definition, \
             principal = excluded.principal, reason = excluded.reason, accepted_at = excluded.accepted_at",
        );
        let _: Vec<AnyRow> = self.write_and_notify(&Change::AcceptedDefinitions, vec![statement]).await?;
        Ok(())
    }

    /// Accepts the first listing of a source, unless one has been accepted. Of several replicas, one accepts its listing.
    /// `first` is the row of the instructions, which marks that a listing has been accepted.
    pub async fn accept_first_listing(
        &self,
        first: &AcceptedDefinition,
        items: &[AcceptedDefinition],
    ) -> Result<(), StoreError> {
        let now = clock::now();
        let mark = Statement::new("INSERT INTO accepted_definitions (").sql(COLUMNS).sql(") VALUES (");
        let mark = mark.values(first.texts()).sql(", ").value(now).sql(") ON CONFLICT DO NOTHING");
        // What follows happens only if this transaction has written the mark.
        let is_marked = |it: Statement| {
            let it = it.sql("first.source = ").value(first.source.as_str()).sql(" AND first.kind = ");
            let it = it.value(first.kind.as_str()).sql(" AND first.name = ").value(first.name.as_str());
            it.sql(" AND first.accepted_at = ").value(now)
        };
        let forget = Statement::new("DELETE FROM accepted_definitions WHERE source = ");
        let forget = forget.value(first.source.as_str()).sql(" AND kind <> ").value(first.kind.as_str());
        let forget = forget.sql(" AND EXISTS (SELECT 1 FROM accepted_definitions AS first WHERE ");
        let mut statements = vec![mark, is_marked(forget).sql(")")];
        statements.extend(items.iter().map(|item| {
            let add = Statement::new("INSERT INTO accepted_definitions (").sql(COLUMNS).sql(") SELECT ");
            let add = add.values(item.texts());
            is_marked(add.sql(", first.accepted_at FROM accepted_definitions AS first WHERE "))
        }));
        let _: Vec<AnyRow> = self.write_and_notify(&Change::AcceptedDefinitions, statements).await?;
        Ok(())
    }

    /// Withdraws all accepted definitions of a source.
    pub async fn withdraw_definitions(&self, source: &str) -> Result<(), StoreError> {
        let statement = Statement::new("DELETE FROM accepted_definitions WHERE source = ").value(source);
        let _: Vec<AnyRow> = self.write_and_notify(&Change::AcceptedDefinitions, vec![statement]).await?;
        Ok(())
    }

    /// Withdraws an accepted definition. Does nothing if there is none.
    pub async fn withdraw_definition(&self, source: &str, kind: &str, name: &str) -> Result<(), StoreError> {
        let statement = Statement::new("DELETE FROM accepted_definitions WHERE source = ").value(source);
        let statement = statement.sql(" AND kind = ").value(kind).sql(" AND name = ").value(name);
        let _: Vec<AnyRow> = self.write_and_notify(&Change::AcceptedDefinitions, vec![statement]).await?;
        Ok(())
    }
}
