//! The `tool_definitions` table: the editions of each tool's definition, so that a change can be seen later.

use crate::{Store, StoreError, rows::plain_row, statement::Statement};

/// Maximum number of editions that are kept of one tool.
const MAX_EDITIONS: i64 = 20;

/// One edition of a tool's definition. It is valid until the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionRow {
    /// Name on the wire.
    pub wire_name: String,
    /// Time at which this edition was first listed, in microseconds since 1970.
    pub first_seen: i64,
    /// Hash of the definition.
    pub definition_hash: String,
    /// The complete definition from the source, as JSON.
    pub definition: String,
}

plain_row!(DefinitionRow { wire_name, first_seen, definition_hash, definition });

/// The start and the hash of an edition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditionRow {
    /// Time at which this edition was first listed, in microseconds since 1970.
    pub first_seen: i64,
    /// Hash of the definition.
    pub definition_hash: String,
}

plain_row!(EditionRow { first_seen, definition_hash });

/// When a tool was first listed, and when its definition last changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDates {
    /// Name on the wire.
    pub wire_name: String,
    /// Time of the first listing, in microseconds since 1970.
    pub first_seen: i64,
    /// Start of the latest edition.
    pub edition_since: i64,
    /// Number of known editions.
    pub editions: i64,
}

plain_row!(ToolDates { wire_name, first_seen, edition_since, editions });

impl ToolDates {
    /// Returns when the definition last changed, if it ever did.
    pub fn changed_at(&self) -> Option<i64> {
        (self.editions > 1).then_some(self.edition_since)
    }
}

impl Store {
    /// Returns the latest editions of a tool's definition, newest first.
    pub async fn tool_definitions(
        &self,
        source: &str,
        wire_name: &str,
    ) -> Result<Vec<DefinitionRow>, StoreError> {
        let statement = Statement::new(
            "SELECT wire_name, first_seen, definition_hash, definition FROM tool_definitions WHERE source = ",
        );
        let statement = statement.value(source).sql(" AND wire_name = ").value(wire_name);
        self.read(statement.sql(" ORDER BY first_seen DESC LIMIT ").value(MAX_EDITIONS)).await
    }

    /// Returns the latest editions of a tool without their text, newest first.
    pub async fn tool_editions(&self, source: &str, wire_name: &str) -> Result<Vec<EditionRow>, StoreError> {
        let statement =
            Statement::new("SELECT first_seen, definition_hash FROM tool_definitions WHERE source = ");
        let statement = statement.value(source).sql(" AND wire_name = ").value(wire_name);
        self.read(statement.sql(" ORDER BY first_seen DESC LIMIT ").value(MAX_EDITIONS)).await
    }

    /// Returns the dates of all tools of a source.
    pub async fn tool_dates(&self, source: &str) -> Result<Vec<ToolDates>, StoreError> {
        let statement = Statement::new(
            "SELECT wire_name, min(first_seen) AS first_seen, max(first_seen) AS edition_since, \
             count(*) AS editions FROM tool_definitions WHERE source = ",
        );
        self.read(statement.value(source).sql(" GROUP BY wire_name")).await
    }
}

/// Builds the statements that add an edition of a tool. The same edition is not added twice in a row, even if two
/// replicas see it at the same time.
pub(crate) fn add_edition(source: &str, edition: &DefinitionRow) -> [Statement; 2] {
    [insert_edition(source, edition), trim_editions(source, &edition.wire_name)]
}

fn insert_edition(source: &str, edition: &DefinitionRow) -> Statement {
    let DefinitionRow { wire_name, first_seen, definition, definition_hash } = edition;
    Statement::new(
        "INSERT INTO tool_definitions (source, wire_name, first_seen, definition_hash, definition) SELECT ",
    )
    .values([
        source.into(),
        wire_name.as_str().into(),
        (*first_seen).into(),
        definition_hash.as_str().into(),
        definition.as_str().into(),
    ])
    .sql(" WHERE coalesce((SELECT definition_hash FROM tool_definitions WHERE source = ")
    .value(source)
    .sql(" AND wire_name = ")
    .value(wire_name.as_str())
    .sql(" ORDER BY first_seen DESC LIMIT 1), '') <> ")
    .value(definition_hash.as_str())
    .sql(" ON CONFLICT DO NOTHING")
}

fn trim_editions(source: &str, wire_name: &str) -> Statement {
    Statement::new("DELETE FROM tool_definitions WHERE source = ")
        .value(source)
        .sql(" AND wire_name = ")
        .value(wire_name)
        .sql(" AND first_seen < (SELECT min(first_seen) FROM (SELECT first_seen FROM tool_definitions WHERE source = ")
        .value(source)
        .sql(" AND wire_name = ")
        .value(wire_name)
        .sql(" ORDER BY first_seen DESC LIMIT ")
        .value(MAX_EDITIONS)
        .sql(") AS latest)")
}
