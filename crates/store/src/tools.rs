//! The table of tools: what each source offered when it was listed last, and which of it an operator has switched off.

use crate::{
    Change, Store, StoreError, clock,
    rows::{Touched, plain_row},
    statement::Statement,
};
use std::collections::HashMap;

const COLUMNS: &str =
    "source, wire_name, definition, definition_hash, status, enabled, reason, first_seen, last_seen";

/// One tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRow {
    /// The name of the source it is of.
    pub source: String,
    /// Its name on the wire.
    pub wire_name: String,
    /// Everything its source says of it, as JSON.
    pub definition: String,
    /// A hash of that.
    pub definition_hash: String,
    /// `active`, or `deprecated` once its source no longer lists it.
    pub status: String,
    /// Whether it may be called.
    pub enabled: bool,
    /// Why not.
    pub reason: Option<String>,
    /// When it was first listed, in microseconds since 1970.
    pub first_seen: i64,
    /// When it was last in a list that was not as the one before.
    pub last_seen: i64,
}

plain_row!(ToolRow {
    source,
    wire_name,
    definition,
    definition_hash,
    status,
    enabled,
    reason,
    first_seen,
    last_seen,
});

/// A tool as its source lists it.
#[derive(Clone, Debug)]
pub struct ListedTool {
    /// Its name on the wire.
    pub wire_name: String,
    /// Everything its source says of it, as JSON.
    pub definition: String,
    /// A hash of that.
    pub definition_hash: String,
}

/// What a listing changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InventoryChange {
    /// Tools that were not known.
    pub created: usize,
    /// Tools that are defined otherwise than before, or came back.
    pub updated: usize,
    /// Tools that are no longer listed.
    pub deprecated: usize,
}

impl InventoryChange {
    /// What a listing changes in what was known.
    pub fn between(before: &[ToolRow], listed: &[ListedTool]) -> InventoryChange {
        let known: HashMap<&str, &ToolRow> = before.iter().map(|it| (it.wire_name.as_str(), it)).collect();
        let mut change = InventoryChange::default();
        let mut still = 0;
        for tool in listed {
            match known.get(tool.wire_name.as_str()) {
                None => change.created += 1,
                Some(row) => {
                    let was_active = row.status == "active";
                    still += usize::from(was_active);
                    let same = was_active && row.definition_hash == tool.definition_hash;
                    change.updated += usize::from(!same);
                }
            }
        }
        let active = before.iter().filter(|it| it.status == "active").count();
        change.deprecated = active.saturating_sub(still);
        change
    }
}

impl Store {
    /// The tools of a source, by name, the deprecated ones among them.
    pub async fn tools(&self, source: &str) -> Result<Vec<ToolRow>, StoreError> {
        let mut all: Vec<ToolRow> = self.read(select().and("source = ", Some(source))).await?;
        all.sort_by(|one, other| one.wire_name.cmp(&other.wire_name));
        Ok(all)
    }

    /// All tools that an operator has switched off.
    pub async fn disabled_tools(&self) -> Result<Vec<ToolRow>, StoreError> {
        self.read(select().and("enabled = ", Some(false))).await
    }

    /// Notes what a source lists now, all or none. What it no longer lists stays, as deprecated. A list that is as it was
    /// is not written.
    pub async fn replace_tools(
        &self,
        source: &str,
        listed: &[ListedTool],
    ) -> Result<InventoryChange, StoreError> {
        let before = self.tools(source).await?;
        let change = InventoryChange::between(&before, listed);
        if change == InventoryChange::default() {
            return Ok(change);
        }
        let now = clock::now();
        let mut statements: Vec<Statement> =
            vec![Statement::new("UPDATE tools SET status = 'deprecated' WHERE source = ").value(source)];
        statements.extend(listed.iter().map(|tool| upsert(source, tool, now)));
        let _: Vec<Touched> = self.write(statements).await?;
        Ok(change)
    }

    /// Switches a tool on or off, whether or not its source was ever listed here.
    pub async fn enable_tool(
        &self,
        source: &str,
        tool: &ListedTool,
        enabled: bool,
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        let statement = insert(source, tool, enabled, reason, clock::now());
        let statement = statement.sql(
            ") ON CONFLICT (source, wire_name) DO UPDATE SET enabled = excluded.enabled, reason = excluded.reason",
        );
        let _: Vec<Touched> = self.write_and_tell(&Change::Tools, vec![statement]).await?;
        Ok(())
    }
}

fn select() -> Statement {
    Statement::new("SELECT ").sql(COLUMNS).sql(" FROM tools WHERE 1 = 1")
}

fn upsert(source: &str, tool: &ListedTool, now: i64) -> Statement {
    insert(source, tool, true, None, now).sql(
        ") ON CONFLICT (source, wire_name) DO UPDATE SET definition = excluded.definition, \
         definition_hash = excluded.definition_hash, status = 'active', last_seen = excluded.last_seen",
    )
}

/// A row, as far as its last bracket.
fn insert(source: &str, tool: &ListedTool, enabled: bool, reason: Option<&str>, now: i64) -> Statement {
    let ListedTool { wire_name, definition, definition_hash } = tool;
    let statement = Statement::new("INSERT INTO tools (").sql(COLUMNS).sql(") VALUES (");
    statement.values([
        source.into(),
        wire_name.as_str().into(),
        definition.as_str().into(),
        definition_hash.as_str().into(),
        "active".into(),
        enabled.into(),
        reason.into(),
        now.into(),
        now.into(),
    ])
}
