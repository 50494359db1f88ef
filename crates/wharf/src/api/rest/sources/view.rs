//! JSON form of a source, whether it is from the agent file, built in or registered, and whether or not it runs. It
//! never contains a secret.

use crate::registry::{RegisteredSource, SourceRegistry};
use serde_json::{Value, json};
use std::sync::Arc;
use wharf_config::{Builtin, Endpoint};
use wharf_runtime::{Catalog, Handle, SourceState, catalog::Discovery, views};

/// A source as REST shows it.
pub(super) enum SourceView {
    /// A running source, with its entry if it was registered.
    Running(Box<SourceState>, Option<Arc<RegisteredSource>>),
    /// A registered source that does not run.
    Idle(Arc<RegisteredSource>),
}

impl SourceView {
    /// Returns all sources: running ones in the order of the plan, then idle ones.
    pub(super) fn all(handle: &Handle, registry: &SourceRegistry) -> Vec<SourceView> {
        let registered = registry.registered();
        let running = handle.sources().into_iter().map(|it| {
            let entry = registered.running(it.source.name.expose()).cloned();
            SourceView::Running(Box::new(it), entry)
        });
        let idle = registered.idle().into_iter().map(|it| SourceView::Idle(it.clone()));
        running.chain(idle).collect()
    }

    /// Finds a source by id, otherwise by name.
    pub(super) fn find<'a>(all: &'a [SourceView], id_or_name: &str) -> Option<&'a SourceView> {
        all.iter().find(|it| it.id() == id_or_name).or_else(|| all.iter().find(|it| it.name() == id_or_name))
    }

    /// The id of a registered source; the name of any other.
    pub(super) fn id(&self) -> &str {
        self.entry().map_or_else(|| self.name(), |it| &it.row.id)
    }

    pub(super) fn name(&self) -> &str {
        match self {
            SourceView::Running(state, _) => state.source.name.expose(),
            SourceView::Idle(entry) => &entry.row.name,
        }
    }

    pub(super) fn entry(&self) -> Option<&Arc<RegisteredSource>> {
        match self {
            SourceView::Running(_, entry) => entry.as_ref(),
            SourceView::Idle(entry) => Some(entry),
        }
    }

    pub(super) fn show(&self, catalog: &Catalog, registry: &SourceRegistry) -> Value {
        let mut shown = match self {
            SourceView::Running(state, entry) => running(state, entry.as_deref(), catalog),
            SourceView::Idle(entry) => idle(entry),
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

fn running(state: &SourceState, entry: Option<&RegisteredSource>, catalog: &Catalog) -> Value {
    let SourceState { source, status, connection, .. } = state;
    let name = source.name.expose();
    let (discovery, error) = match catalog.discovery(name) {
        None | Some(Discovery::Pending) => ("pending", None),
        Some(Discovery::NotStarted) => ("asleep", None),
        Some(Discovery::Done) => ("done", None),
        Some(Discovery::Failed(fault)) => ("failed", Some(fault)),
    };
    // The connection may have failed after the lists were read.
    let error = error.or(status.fault.as_ref()).map(|it| views::error(it));
    let origin = match (entry, &source.endpoint) {
        (Some(entry), _) => entry.row.origin.as_str(),
        (None, Endpoint::Builtin(Builtin::Todo)) => "builtin",
        (None, _) => "file",
    };
    // The stored health is used until the source has been contacted for the first time.
    let health = match (status.health.as_str(), entry) {
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
        "session_state": status.session.as_str(),
        "health": health,
        "discovery": discovery,
        "error": error,
        "tools": catalog.tools.iter().filter(|it| it.source == name).count(),
    });
    if let Some(what) = &status.downloading {
        shown["downloading"] = json!(what);
    }
    shown
}

fn idle(entry: &RegisteredSource) -> Value {
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
        "error": entry.fault().map(|it| views::error(&it)),
        "tools": 0,
    })
}
