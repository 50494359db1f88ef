//! The `tools` table: the tools each source listed last, and which of them an operator has disabled.

use crate::{
    Change, Store, StoreError, clock,
    rows::{AnyRow, plain_row},
    statement::Statement,
    tool_definitions::{DefinitionRow, add_edition},
};
use std::collections::HashMap;

const COLUMNS: &str = "source, wire_name, definition, definition_hash, status, enabled, reason, first_seen, last_seen, \
    disabled_by, disabled_at, vanished_at";

/// One tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRow {
    /// Name of the source.
    pub source: String,
    /// Name on the wire.
    pub wire_name: String,
    /// The complete definition from the source, as JSON.
    pub definition: String,
    /// Hash of the definition.
    pub definition_hash: String,
    /// `active`, or `deprecated` once its source no longer lists it.
    pub status: String,
    /// Whether the tool may be called.
    pub enabled: bool,
    /// Reason why it is disabled.
    pub reason: Option<String>,
    /// Time of the first listing, in microseconds since 1970.
    pub first_seen: i64,
    /// Time of the last listing that differed from the one before it.
    pub last_seen: i64,
    /// The principal that disabled it.
    pub disabled_by: Option<String>,
    /// Time at which it was disabled.
    pub disabled_at: Option<i64>,
    /// Time of the first listing without it, while it is deprecated.
    pub vanished_at: Option<i64>,
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
    disabled_by,
    disabled_at,
    vanished_at,
});

/// A tool as its source lists it.
#[derive(Clone, Debug)]
pub struct ListedTool {
    /// Name on the wire.
    pub wire_name: String,
    /// The complete definition from the source, as JSON.
    pub definition: String,
    /// Hash of the definition.
    pub definition_hash: String,
}

/// Decision of an operator to disable a tool.
#[derive(Clone, Debug, Default)]
pub struct ToolSwitch {
    /// The operator.
    pub principal: String,
    /// The reason, if there is one.
    pub reason: Option<String>,
}

/// Differences between a stored tool list and a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InventoryChange {
    /// Number of new tools.
    pub created: usize,
    /// Number of tools with a changed definition, or listed again after being deprecated.
    pub updated: usize,
    /// Number of tools that are no longer listed.
    pub deprecated: usize,
}

impl InventoryChange {
    /// Compares the stored tools with a new list.
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
    /// Returns the tools of a source, sorted by name, including deprecated ones.
    pub async fn tools(&self, source: &str) -> Result<Vec<ToolRow>, StoreError> {
        let mut all: Vec<ToolRow> = self.read(select().and("source = ", Some(source))).await?;
        all.sort_by(|one, other| one.wire_name.cmp(&other.wire_name));
        Ok(all)
    }

    /// Returns all tools that an operator has disabled.
    pub async fn disabled_tools(&self) -> Result<Vec<ToolRow>, StoreError> {
        self.read(select().and("enabled = ", Some(false))).await
    }

    /// Stores the tool list of a source in one transaction. Tools that are no longer listed become deprecated. An
    /// unchanged list is not written.
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
        let deprecate = "UPDATE tools SET status = 'deprecated', vanished_at = coalesce(vanished_at, CAST(";
        let deprecate =
            Statement::new(deprecate).value(now).sql(" AS BIGINT)) WHERE source = ").value(source);
        let mut statements = vec![deprecate];
        statements.extend(listed.iter().map(|tool| upsert(source, tool, now)));
        statements.extend(new_editions(&before, listed, now).iter().flat_map(|it| add_edition(source, it)));
        let _: Vec<AnyRow> = self.write(statements).await?;
        Ok(change)
    }

    /// Enables a tool, or disables it if `off` is set. Works even if the tool has never been stored.
    pub async fn switch_tool(
        &self,
        source: &str,
        tool: &ListedTool,
        off: Option<&ToolSwitch>,
    ) -> Result<(), StoreError> {
        let statement = insert(source, tool, off, clock::now()).sql(
            ") ON CONFLICT (source, wire_name) DO UPDATE SET enabled = excluded.enabled, reason = excluded.reason, \
             disabled_by = excluded.disabled_by, disabled_at = excluded.disabled_at",
        );
        let _: Vec<AnyRow> = self.write_and_notify(&Change::Tools, vec![statement]).await?;
        Ok(())
    }
}

/// Returns the editions of tools that are new or have changed.
fn new_editions(before: &[ToolRow], listed: &[ListedTool], now: i64) -> Vec<DefinitionRow> {
    let known: HashMap<&str, &str> =
        before.iter().map(|it| (it.wire_name.as_str(), it.definition_hash.as_str())).collect();
    let is_new = |it: &&ListedTool| known.get(it.wire_name.as_str()) != Some(&it.definition_hash.as_str());
    let edition = |it: &ListedTool| DefinitionRow {
        wire_name: it.wire_name.clone(),
        first_seen: now,
        definition_hash: it.definition_hash.clone(),
        definition: it.definition.clone(),
    };
    listed.iter().filter(is_new).map(edition).collect()
}

fn select() -> Statement {
    Statement::new("SELECT ").sql(COLUMNS).sql(" FROM tools WHERE 1 = 1")
}

fn upsert(source: &str, tool: &ListedTool, now: i64) -> Statement {
    insert(source, tool, None, now).sql(
        ") ON CONFLICT (source, wire_name) DO UPDATE SET definition = excluded.definition, \
         definition_hash = excluded.definition_hash, status = 'active', last_seen = excluded.last_seen, \
         vanished_at = NULL",
    )
}

/// Builds an `INSERT` of one row up to the closing bracket, so that the caller can append a conflict clause.
fn insert(source: &str, tool: &ListedTool, off: Option<&ToolSwitch>, now: i64) -> Statement {
    let ListedTool { wire_name, definition, definition_hash } = tool;
    let statement = Statement::new("INSERT INTO tools (").sql(COLUMNS).sql(") VALUES (");
    statement.values([
        source.into(),
        wire_name.as_str().into(),
        definition.as_str().into(),
        definition_hash.as_str().into(),
        "active".into(),
        off.is_none().into(),
        off.and_then(|it| it.reason.as_deref()).into(),
        now.into(),
        now.into(),
        off.map(|it| it.principal.as_str()).into(),
        off.map(|_| now).into(),
        None::<i64>.into(),
    ])
}
