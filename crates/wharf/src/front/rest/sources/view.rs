//! JSON form of a source, whether it is from the agent file, built in or registered, and whether or not it runs. It
//! never contains a secret.

use crate::registry::{Entry, Registry};
use serde_json::{Value, json};
use std::sync::Arc;
use wharf_config::{Builtin, Endpoint};
use wharf_runtime::{Catalog, Handle, SourceState, catalog::Discovery, project};

/// A source as REST shows it.
pub(super) enum View {
    /// A running source, with its entry if it was registered.
    Running(Box<SourceState>, Option<Arc<Entry>>),
    /// A registered source that does not run.
    Idle(Arc<Entry>),
}

impl View {
    /// Returns all sources: running ones in the order of the plan, then idle ones.
    pub(super) fn all(handle: &Handle, registry: &Registry) -> Vec<View> {
        let book = registry.book();
        let running = handle.sources().into_iter().map(|it| {
            let entry = book.running(it.source.name.expose()).cloned();
            View::Running(Box::new(it), entry)
        });
        let idle = book.idle().into_iter().map(|it| View::Idle(it.clone()));
        running.chain(idle).collect()
    }

    /// Finds a source by id, otherwise by name.
    pub(super) fn find<'a>(all: &'a [View], word: &str) -> Option<&'a View> {
        all.iter().find(|it| it.id() == word).or_else(|| all.iter().find(|it| it.name() == word))
    }

    /// The id of a registered source; the name of any other.
    pub(super) fn id(&self) -> &str {
        self.entry().map_or_else(|| self.name(), |it| &it.row.id)
    }

    pub(super) fn name(&self) -> &str {
        match self {
            View::Running(state, _) => state.source.name.expose(),
            View::Idle(entry) => &entry.row.name,
        }
    }

    pub(super) fn entry(&self) -> Option<&Arc<Entry>> {
        match self {
            View::Running(_, entry) => entry.as_ref(),
            View::Idle(entry) => Some(entry),
        }
    }

    pub(super) fn show(&self, catalog: &Catalog, registry: &Registry) -> Value {
        let mut shown = match self {
            View::Running(state, entry) => running(state, entry.as_deref(), catalog),
            View::Idle(entry) => idle(entry),
        };
        let entry = self.entry();
        shown["id"] = json!(self.id());
        shown["enabled"] = json!(entry.is_none_or(|it| it.row.enabled));
        shown["state"] = json!(entry.map_or("ready", |it| it.state.as_str()));
        shown["missing"] = json!(entry.map(|it| it.missing()).unwrap_or_default());
        shown["epoch"] = json!(entry.map(|it| it.row.epoch));
        let kept = entry.and_then(|it| it.row.inventory_hash.clone());
        shown["inventory_hash"] = json!(registry.inventory().hash(self.name()).or(kept));
        shown
    }
}

fn running(state: &SourceState, entry: Option<&Entry>, catalog: &Catalog) -> Value {
    let SourceState { source, standing, connection, .. } = state;
    let name = source.name.expose();
    let (discovery, error) = match catalog.discovery(name) {
        None | Some(Discovery::Pending) => ("pending", None),
        Some(Discovery::Asleep) => ("asleep", None),
        Some(Discovery::Done) => ("done", None),
        Some(Discovery::Failed(fault)) => ("failed", Some(fault)),
    };
    // The connection may have failed after the lists were read.
    let error = error.or(standing.fault.as_ref()).map(|it| project::error(it));
    let origin = match (entry, &source.endpoint) {
        (Some(entry), _) => entry.row.origin.as_str(),
        (None, Endpoint::Builtin(Builtin::Todo)) => "builtin",
        (None, _) => "file",
    };
    // The stored health is used until the source has been contacted for the first time.
    let health = match (standing.health.as_str(), entry) {
        ("unknown", Some(entry)) => entry.row.health.as_str(),
        (health, _) => health,
    };
    let mut shown = json!({
        "id": name,
        "name": source.name.shown(),
        "description": source.description.shown(),
        "origin": origin,
        "enabled": true,
        "state": "ready",
        "missing": [],
        "transport": source.endpoint.transport(),
        "lifecycle": source.lifecycle.as_str(),
        "required": source.required,
        "connection_state": connection.as_str(),
        "session_state": standing.session.as_str(),
        "health": health,
        "discovery": discovery,
        "error": error,
        "tools": catalog.tools.iter().filter(|it| it.source == name).count(),
    });
    if let Some(what) = &standing.downloading {
        shown["downloading"] = json!(what);
    }
    shown
}

fn idle(entry: &Entry) -> Value {
    let row = &entry.row;
    let definition: Value = serde_json::from_str(&row.definition).unwrap_or_default();
    json!({
        "id": row.id,
        "name": row.name,
        "description": definition["description"].as_str().unwrap_or_default(),
        "origin": row.origin,
        "enabled": row.enabled,
        "state": entry.state.as_str(),
        "missing": entry.missing(),
        "transport": null,
        "lifecycle": row.lifecycle,
        "required": false,
        "connection_state": "startup",
        "session_state": "created",
        "health": row.health,
        "discovery": "asleep",
        "error": entry.fault().map(|it| project::error(&it)),
        "tools": 0,
    })
}
