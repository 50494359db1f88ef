//! A snapshot of the registered sources and their states. Together with the agent file it determines the running
//! plan.
//!
//! A source that cannot run is included too, with the reason and the fault that its callers receive.

use super::Shared;
use std::{collections::HashSet, sync::Arc};
use wharf_config::{Grants, Lifecycle, Plan, Source};
use wharf_runtime::{Fault, Text, catalog::Absent};
use wharf_store::{SourceRow, StoreError};

/// The registered sources, beside the plan of the agent file.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    /// The plan of the agent file.
    pub(crate) file: Arc<Plan>,
    /// The operator's grants.
    pub(crate) grants: Grants,
    /// The registered sources, sorted by name.
    pub(crate) entries: Vec<Arc<Entry>>,
}

/// One registered source.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) row: SourceRow,
    pub(crate) state: State,
}

/// The state of a registered source.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Runs with this definition.
    Ready(Box<Source>),
    /// Disabled.
    Off,
    /// Requires these variables, which are not set.
    Lacking(Vec<String>),
    /// Unusable: the reason and a hint.
    Broken(String, String),
    /// Hidden by a source of the same name in the agent file, which takes precedence.
    Shadowed,
}

impl Book {
    /// Creates a book without registered sources.
    pub(super) fn new(file: Plan, grants: Grants) -> Book {
        Book { file: Arc::new(file), grants, entries: Vec::new() }
    }

    /// Returns a book with the current rows of the table. Ready sources with an unchanged row are kept as they are,
    /// except `anew`.
    pub(super) async fn filled(&self, shared: &Shared, anew: Option<&str>) -> Result<Book, StoreError> {
        let rows = shared.store.sources().await?;
        let mut known = self.clone();
        known.entries.retain(|it| Some(it.row.id.as_str()) != anew);
        let entries = rows.into_iter().map(|row| known.renewed(row, shared)).collect();
        Ok(Book { entries, ..known })
    }

    /// Returns a book for another agent file. All sources are lowered again, because their meaning depends on the
    /// grants.
    pub(super) fn beside(&self, file: Plan, grants: Grants, shared: &Shared) -> Book {
        let mut book = Book { entries: Vec::new(), ..Book::new(file, grants) };
        let rows = self.entries.iter().map(|it| it.row.clone());
        book.entries = rows.map(|row| book.renewed(row, shared)).collect();
        book
    }

    fn renewed(&self, row: SourceRow, shared: &Shared) -> Arc<Entry> {
        let same = |it: &&Arc<Entry>| it.row.id == row.id && it.row.epoch == row.epoch;
        let state = match self.entries.iter().find(same).map(|it| &it.state) {
            _ if self.is_of_file(&row.name) => State::Shadowed,
            Some(ready @ State::Ready(_)) => ready.clone(),
            _ => State::of(&row, &self.grants, shared),
        };
        Arc::new(Entry { row, state })
    }

    /// The plan to run: the agent file's sources, then the registered ones that are ready.
    pub(crate) fn plan(&self) -> Plan {
        let mut plan = (*self.file).clone();
        plan.sources.extend(self.entries.iter().filter_map(|it| match &it.state {
            State::Ready(source) => Some((**source).clone()),
            _ => None,
        }));
        plan
    }

    /// The faults for callers of sources that do not run.
    pub(crate) fn absent(&self) -> Absent {
        let told = |it: &Arc<Entry>| Some((it.row.name.clone(), Arc::new(it.fault()?)));
        self.entries.iter().filter_map(told).collect()
    }

    /// Returns whether the agent file has a source of this name.
    pub(crate) fn is_of_file(&self, name: &str) -> bool {
        self.file.sources.iter().any(|it| it.name.expose() == name)
    }

    /// Finds a registered source by id, otherwise by name.
    pub(crate) fn entry(&self, word: &str) -> Option<&Arc<Entry>> {
        let by_id = self.entries.iter().find(|it| it.row.id == word);
        by_id.or_else(|| self.entries.iter().find(|it| it.row.name == word))
    }

    /// Finds the registered source that runs under this name.
    pub(crate) fn running(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.iter().find(|it| it.row.name == name && matches!(it.state, State::Ready(_)))
    }

    /// The registered sources that do not run and whose name is not used by the agent file.
    pub(crate) fn idle(&self) -> Vec<&Arc<Entry>> {
        let running: HashSet<&str> = self.file.sources.iter().map(|it| it.name.expose()).collect();
        let idle = self.entries.iter().filter(|it| !matches!(it.state, State::Ready(_)));
        idle.filter(|it| !running.contains(it.row.name.as_str())).collect()
    }
}

impl State {
    fn of(row: &SourceRow, grants: &Grants, shared: &Shared) -> State {
        if !row.enabled {
            return State::Off;
        }
        let secrets = match shared.secrets(row) {
            Ok(secrets) => secrets,
            Err(error) => return State::Broken(error.to_string(), error.hint().to_owned()),
        };
        let (restored, diagnostics) = wharf_config::restore(&row.definition, &secrets, &shared.env(grants));
        match restored {
            Some(it) if !it.missing.is_empty() => State::Lacking(it.missing),
            Some(it) => {
                it.source.map_or_else(unusable, |source| State::Ready(Box::new(dressed(source, row))))
            }
            None => {
                let first = diagnostics.items().first();
                let why = first.map_or_else(String::new, |it| it.message.clone());
                let hint = first.and_then(|it| it.hint.clone());
                State::Broken(why, hint.unwrap_or_else(|| "remove it, and register it anew".to_owned()))
            }
        }
    }

    /// The state as REST shows it.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            State::Ready(_) => "ready",
            State::Off => "disabled",
            State::Lacking(_) | State::Broken(..) | State::Shadowed => "not_ready",
        }
    }
}

fn unusable() -> State {
    State::Broken("it cannot be started".to_owned(), "remove it, and register it anew".to_owned())
}

/// Applies name and lifecycle of the row, which take precedence over the definition.
fn dressed(mut source: Source, row: &SourceRow) -> Source {
    source.name = Text::plain(&row.name);
    source.lifecycle = Lifecycle::parse(&row.lifecycle).unwrap_or(source.lifecycle);
    source
}

impl Entry {
    /// The required variables that are not set.
    pub(crate) fn missing(&self) -> &[String] {
        match &self.state {
            State::Lacking(missing) => missing,
            _ => &[],
        }
    }

    /// The fault for its callers, unless it runs or is shadowed.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let name = &self.row.name;
        let (cause, hint) = match &self.state {
            State::Ready(_) | State::Shadowed => return None,
            State::Off => (format!("`{name}` is switched off"), "an admin can switch it on again".to_owned()),
            State::Lacking(missing) => {
                let all: Vec<String> = missing.iter().map(|it| format!("`{it}`")).collect();
                let cause = format!("`{name}` is not ready: {} not set", all.join(", ") + are(missing));
                (cause, "give them with PATCH /api/v1/sources, or register it anew".to_owned())
            }
            State::Broken(why, hint) => (format!("`{name}` is not ready: {why}"), hint.clone()),
        };
        Some(Fault::not_ready(name, cause, hint))
    }
}

fn are(missing: &[String]) -> &'static str {
    if missing.len() == 1 { " is" } else { " are" }
}
