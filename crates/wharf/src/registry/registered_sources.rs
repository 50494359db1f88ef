//! A snapshot of the registered sources and their states. Together with the agent file it determines the running
//! plan.
//!
//! A source that cannot run is included too, with the reason and the fault that its callers receive.

use super::RegistryState;
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::SystemTime,
};
use wharf_config::{Env, Grants, Lifecycle, Plan, Source};
use wharf_runtime::{Fault, MaskedString, catalog::UnavailableSources};
use wharf_store::{SourceRow, StoreError};

/// The registered sources, beside the plan of the agent file.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredSources {
    /// The plan of the agent file.
    pub(crate) file: Arc<Plan>,
    /// The operator's grants.
    pub(crate) grants: Grants,
    /// When the agent file was applied.
    pub(crate) applied_at: SystemTime,
    /// The registered sources, sorted by name.
    pub(crate) entries: Vec<Arc<RegisteredSource>>,
}

/// One registered source.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredSource {
    pub(crate) row: SourceRow,
    pub(crate) state: RegistrationState,
}

/// The state of a registered source.
#[derive(Clone, Debug)]
pub(crate) enum RegistrationState {
    /// Runs with this definition.
    Ready(Box<Source>),
    /// Disabled.
    Disabled,
    /// Requires these variables, which are not set.
    MissingVariables(Vec<String>),
    /// Unusable: the reason and a hint.
    Unusable(String, String),
    /// Hidden by a source of the same name in the agent file, which takes precedence.
    Shadowed,
}

impl RegisteredSources {
    /// Creates a snapshot without registered sources.
    pub(super) fn new(file: Plan, grants: Grants) -> RegisteredSources {
        let applied_at = SystemTime::now();
        RegisteredSources { file: Arc::new(file), grants, applied_at, entries: Vec::new() }
    }

    /// Returns a snapshot with the current rows of the table. Ready sources with an unchanged row are kept as they are,
    /// except `force`.
    pub(super) async fn reloaded(
        &self,
        shared: &RegistryState,
        force: Option<&str>,
    ) -> Result<RegisteredSources, StoreError> {
        let rows = shared.store.sources().await?;
        let mut known = self.clone();
        known.entries.retain(|it| Some(it.row.id.as_str()) != force);
        let entries = rows.into_iter().map(|row| known.lowered(row, shared)).collect();
        Ok(RegisteredSources { entries, ..known })
    }

    /// Returns a snapshot for another agent file. All sources are lowered again, because their meaning depends on the
    /// grants.
    pub(super) fn with_agent_file(
        &self,
        file: Plan,
        grants: Grants,
        shared: &RegistryState,
    ) -> RegisteredSources {
        let mut registered =
            RegisteredSources { entries: Vec::new(), ..RegisteredSources::new(file, grants) };
        let rows = self.entries.iter().map(|it| it.row.clone());
        registered.entries = rows.map(|row| registered.lowered(row, shared)).collect();
        registered
    }

    fn lowered(&self, row: SourceRow, shared: &RegistryState) -> Arc<RegisteredSource> {
        let same = |it: &&Arc<RegisteredSource>| it.row.id == row.id && it.row.epoch == row.epoch;
        let state = match self.entries.iter().find(same).map(|it| &it.state) {
            _ if self.is_in_agent_file(&row.name) => RegistrationState::Shadowed,
            Some(ready @ RegistrationState::Ready(_)) => ready.clone(),
            _ => RegistrationState::of(&row, &self.grants, shared),
        };
        Arc::new(RegisteredSource { row, state })
    }

    /// The plan to run: the agent file's sources, then the registered ones that are ready.
    pub(crate) fn plan(&self) -> Plan {
        let mut plan = (*self.file).clone();
        plan.sources.extend(self.entries.iter().filter_map(|it| match &it.state {
            RegistrationState::Ready(source) => Some((**source).clone()),
            _ => None,
        }));
        plan
    }

    /// The faults for callers of sources that do not run.
    pub(crate) fn absent(&self) -> UnavailableSources {
        let fault_of = |it: &Arc<RegisteredSource>| Some((it.row.name.clone(), Arc::new(it.fault()?)));
        self.entries.iter().filter_map(fault_of).collect()
    }

    /// Returns whether the agent file has a source of this name.
    pub(crate) fn is_in_agent_file(&self, name: &str) -> bool {
        self.file.sources.iter().any(|it| it.name.expose() == name)
    }

    /// Finds a registered source by id, otherwise by name.
    pub(crate) fn entry(&self, id_or_name: &str) -> Option<&Arc<RegisteredSource>> {
        let by_id = self.entries.iter().find(|it| it.row.id == id_or_name);
        by_id.or_else(|| self.entries.iter().find(|it| it.row.name == id_or_name))
    }

    /// Finds the registered source that runs under this name.
    pub(crate) fn running(&self, name: &str) -> Option<&Arc<RegisteredSource>> {
        self.entries.iter().find(|it| it.row.name == name && matches!(it.state, RegistrationState::Ready(_)))
    }

    /// The registered sources that do not run and whose name is not used by the agent file.
    pub(crate) fn idle(&self) -> Vec<&Arc<RegisteredSource>> {
        let running: HashSet<&str> = self.file.sources.iter().map(|it| it.name.expose()).collect();
        let idle = self.entries.iter().filter(|it| !matches!(it.state, RegistrationState::Ready(_)));
        idle.filter(|it| !running.contains(it.row.name.as_str())).collect()
    }
}

impl RegistrationState {
    fn of(row: &SourceRow, grants: &Grants, shared: &RegistryState) -> RegistrationState {
        if !row.enabled {
            return RegistrationState::Disabled;
        }
        let secrets = match shared.secrets(row) {
            Ok(secrets) => secrets,
            Err(error) => return RegistrationState::Unusable(error.to_string(), error.hint().to_owned()),
        };
        let (restored, diagnostics) = wharf_config::restore(&row.definition, &secrets, &shared.env(grants));
        match restored {
            Some(it) if !it.missing.is_empty() => RegistrationState::MissingVariables(it.missing),
            Some(it) => it.source.map_or_else(unusable, |source| {
                RegistrationState::Ready(Box::new(with_row_settings(source, row, shared)))
            }),
            None => {
                let first = diagnostics.items().first();
                let why = first.map_or_else(String::new, |it| it.message.clone());
                let hint = first.and_then(|it| it.hint.clone());
                RegistrationState::Unusable(
                    why,
                    hint.unwrap_or_else(|| "remove it and register it again".to_owned()),
                )
            }
        }
    }

    /// Returns the definition with values for one call. The source need not be ready without them.
    pub(super) fn with_values(
        &self,
        row: &SourceRow,
        values: BTreeMap<String, String>,
        grants: &Grants,
        shared: &RegistryState,
    ) -> Result<Source, CallValuesError> {
        let fault = |it: &RegistrationState| {
            let entry = RegisteredSource { row: row.clone(), state: it.clone() };
            entry.fault().map_or_else(
                || CallValuesError::Invalid(String::new()),
                |it| CallValuesError::NotReady(Box::new(it)),
            )
        };
        if !matches!(self, RegistrationState::Ready(_) | RegistrationState::MissingVariables(_)) {
            return Err(fault(self));
        }
        let secrets = shared.secrets(row).map_err(|error| CallValuesError::Invalid(error.to_string()))?;
        let env = Env { call_values: values, ..shared.env(grants) };
        let (restored, diagnostics) = wharf_config::restore(&row.definition, &secrets, &env);
        let Some(restored) = restored else {
            let first = diagnostics.items().first();
            return Err(CallValuesError::Invalid(first.map_or_else(String::new, |it| it.message.clone())));
        };
        if let Some(name) = restored.rejected.first() {
            let what = format!("a call may not set `{name}`; `mcp_call_vars` lists what it may set");
            return Err(CallValuesError::Invalid(what));
        }
        let missing = RegistrationState::MissingVariables(restored.missing);
        let source = restored.source.ok_or_else(|| fault(&missing))?;
        let source = with_row_settings(source, row, shared);
        match source.lifecycle {
            Lifecycle::Transient => Ok(source),
            Lifecycle::Singleton => Err(CallValuesError::Invalid(
                "`env` needs a server that is started for each call (`transient`)".to_owned(),
            )),
        }
    }

    /// The state as REST shows it.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            RegistrationState::Ready(_) => "ready",
            RegistrationState::Disabled => "disabled",
            RegistrationState::MissingVariables(_)
            | RegistrationState::Unusable(..)
            | RegistrationState::Shadowed => "not_ready",
        }
    }
}

/// The reason why a call with values of its own is refused.
#[derive(Debug)]
pub(crate) enum CallValuesError {
    /// The source cannot be used, with or without the values.
    NotReady(Box<Fault>),
    /// The values do not fit.
    Invalid(String),
}

fn unusable() -> RegistrationState {
    RegistrationState::Unusable(
        "it cannot be started".to_owned(),
        "remove it and register it again".to_owned(),
    )
}

/// Applies name and lifecycle of the row, which take precedence over the definition, and the operator's lock settings.
fn with_row_settings(mut source: Source, row: &SourceRow, shared: &RegistryState) -> Source {
    source.name = MaskedString::plain(&row.name);
    source.lifecycle = Lifecycle::parse(&row.lifecycle).unwrap_or(source.lifecycle);
    source.lock = shared.lock.settings();
    source
}

impl RegisteredSource {
    /// The required variables that are not set.
    pub(crate) fn missing(&self) -> &[String] {
        match &self.state {
            RegistrationState::MissingVariables(missing) => missing,
            _ => &[],
        }
    }

    /// The fault for its callers, unless it runs or is shadowed.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let name = &self.row.name;
        let (cause, hint) = match &self.state {
            RegistrationState::Ready(_) | RegistrationState::Shadowed => return None,
            RegistrationState::Disabled => {
                (format!("`{name}` is disabled"), "an admin can enable it".to_owned())
            }
            RegistrationState::MissingVariables(missing) => {
                let all: Vec<String> = missing.iter().map(|it| format!("`{it}`")).collect();
                let cause = format!("`{name}` is not ready: {} not set", all.join(", ") + verb(missing));
                (cause, "set them with PATCH /api/v1/sources/{id}, or register the source again".to_owned())
            }
            RegistrationState::Unusable(why, hint) => (format!("`{name}` is not ready: {why}"), hint.clone()),
        };
        Some(Fault::not_ready(name, cause, hint))
    }
}

fn verb(missing: &[String]) -> &'static str {
    if missing.len() == 1 { " is" } else { " are" }
}
