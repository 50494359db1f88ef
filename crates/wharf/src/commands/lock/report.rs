//! Shows how servers differ from the lock.

use crate::{command_error::CommandError, content::printable, exit::Exit};
use serde_json::Value;
use wharf_config::{LockFile, LockedServer};
use wharf_runtime::lock::{
    Difference, DifferenceKind, DifferenceSeverity, ItemDifferences, LockedKind, compare_servers,
    show_invisible, word_diff,
};

/// Longest value that is shown in full.
const MAX_SHOWN_CHARS: usize = 80;

/// All differences between two locks.
pub(super) struct Changes {
    items: Vec<ItemDifferences>,
    added: Vec<String>,
    removed: Vec<String>,
}

impl Changes {
    pub(super) fn between(before: &LockFile, after: &LockFile) -> Changes {
        let both = after.servers.iter().filter_map(|(name, it)| Some((name, before.servers.get(name)?, it)));
        let only = |one: &LockFile, other: &LockFile| {
            let missing = one.servers.keys().filter(|it| !other.servers.contains_key(*it));
            missing.cloned().collect::<Vec<_>>()
        };
        Changes {
            items: both.flat_map(|(name, before, after)| compare_servers(name, before, after)).collect(),
            added: only(after, before),
            removed: only(before, after),
        }
    }

    /// Keeps the changes of one server, or of one tool.
    pub(super) fn only(mut self, filter: Option<&str>) -> Changes {
        if let Some(filter) = filter {
            self.items.retain(|it| it.source == filter || it.id() == filter);
            self.added.retain(|it| it == filter);
            self.removed.retain(|it| it == filter);
        }
        self
    }

    /// Returns whether there is more than notes.
    pub(super) fn matter(&self) -> bool {
        let matters = self.items.iter().any(|it| it.severity() > DifferenceSeverity::Note);
        matters || !self.added.is_empty() || !self.removed.is_empty()
    }

    /// Returns the worst severity. New and removed entries of the agent file need no review.
    pub(super) fn worst(&self) -> Option<DifferenceSeverity> {
        self.items.iter().map(ItemDifferences::severity).max()
    }

    /// Returns the earlier lock with only the chosen changes.
    pub(super) fn accept(
        &self,
        before: &LockFile,
        after: &LockFile,
        chosen: &[String],
    ) -> Result<LockFile, CommandError> {
        let mut accepted = before.clone();
        for id in chosen {
            let mut found = self.items.iter().filter(|it| it.id() == *id || it.source == *id).peekable();
            if found.peek().is_none() {
                let complaint = format!("`{id}` does not differ from wharf.lock");
                return Err(CommandError::new("MCPToolNotFoundError", &complaint, Exit::NotFound));
            }
            for change in found {
                let (Some(old), Some(new)) =
                    (accepted.servers.get_mut(&change.source), after.servers.get(&change.source))
                else {
                    continue;
                };
                take_over(old, new, change);
            }
        }
        Ok(accepted)
    }

    pub(super) fn to_json(&self) -> Vec<Value> {
        let json = |it: &ItemDifferences| {
            let name = it.item.as_ref().map(|(_, name)| name.clone());
            let lines = it.differences.iter();
            lines.map(|one| one.to_json(&it.source, name.as_deref())).collect::<Vec<_>>()
        };
        self.items.iter().flat_map(json).collect()
    }
}

/// Takes over one change into a locked server.
fn take_over(old: &mut LockedServer, new: &LockedServer, change: &ItemDifferences) {
    let Some((kind, name)) = &change.item else {
        (old.package, old.identity) = (new.package.clone(), new.identity.clone());
        return;
    };
    let (old, new) = match kind {
        LockedKind::Tool => (&mut old.tools, &new.tools),
        LockedKind::Prompt => (&mut old.prompts, &new.prompts),
        LockedKind::Template | LockedKind::Instructions => (&mut old.templates, &new.templates),
    };
    match new.get(name) {
        Some(item) => _ = old.insert(name.clone(), item.clone()),
        None => _ = old.remove(name),
    }
}

/// Formats all changes as text.
pub(super) fn text(changes: &Changes) -> String {
    let mut out = String::new();
    for name in &changes.added {
        out.push_str(&format!("{}   new server\n", printable(name)));
    }
    for name in &changes.removed {
        out.push_str(&format!("{}   no longer in the agent file\n", printable(name)));
    }
    for item in &changes.items {
        let width = item.differences.iter().map(|it| it.path.chars().count()).max().unwrap_or(0).clamp(8, 40);
        out.push_str(&format!("{}   {}\n", printable(&item.id()), item.severity().as_str()));
        for difference in &item.differences {
            let path = printable(&difference.path);
            out.push_str(&format!("  {path:<width$}  {}\n", describe(difference).replace('\n', "\n    ")));
        }
    }
    if out.is_empty() { "nothing has changed\n".to_owned() } else { out }
}

fn describe(difference: &Difference) -> String {
    let Difference { kind, before, after, .. } = difference;
    match kind {
        DifferenceKind::TextChanged => {
            let text =
                |it: &Option<Value>| it.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
            printable(&word_diff(&text(before), &text(after)))
        }
        DifferenceKind::ToolAdded => "new".to_owned(),
        DifferenceKind::ToolRemoved => "removed".to_owned(),
        DifferenceKind::ArgumentAdded => format!("new argument{}", type_of(after)),
        DifferenceKind::RequiredArgumentAdded => format!("new required argument{}", type_of(after)),
        DifferenceKind::ArgumentRemoved => "argument removed".to_owned(),
        DifferenceKind::HiddenCharacters => "has characters that people do not see".to_owned(),
        DifferenceKind::OutputAdded => "new field of the result".to_owned(),
        DifferenceKind::OutputRemoved => "field of the result removed".to_owned(),
        DifferenceKind::DependenciesChanged => "dependencies changed".to_owned(),
        _ => format!("{} → {}", short(before), short(after)),
    }
}

fn type_of(schema: &Option<Value>) -> String {
    let name = schema.as_ref().and_then(|it| it["type"].as_str());
    name.map(|it| format!(", {}", printable(it))).unwrap_or_default()
}

fn short(value: &Option<Value>) -> String {
    let Some(value) = value else { return "none".to_owned() };
    let text = show_invisible(&value.to_string());
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
