//! Reads what the servers offer now, in the form of a lock file.

use super::super::list::fault_text;
use crate::{
    app::{App, ConnectedSource, Connections},
    command_error::CommandError,
    exit::Exit,
};
use std::collections::BTreeMap;
use wharf_config::{LockFile, LockedIdentity, LockedServer, PackageKind, Plan};
use wharf_mcp::session::{Era, List};
use wharf_runtime::{installed_package, secret_in_lock};

/// The current state of the servers.
pub(super) struct CurrentLock {
    servers: BTreeMap<String, LockedServer>,
    has_failures: bool,
    /// Names of all entries of the agent file.
    entries: Vec<String>,
}

/// Connects to the servers that `is_wanted` selects and reads their lists.
pub(super) async fn current_lock(app: &App, is_wanted: impl Fn(&str) -> bool) -> CurrentLock {
    let connections = read_all(app, is_wanted).await;
    let is_whole = |it: &ConnectedSource| it.is_connected() && it.unread.is_empty();
    let mut servers = BTreeMap::new();
    for whole in connections.sources.iter().filter(|it| is_whole(it)) {
        servers.insert(whole.source.name.expose().to_owned(), locked_server(whole, &connections).await);
    }
    let current = CurrentLock {
        servers,
        has_failures: !connections.sources.iter().all(is_whole),
        entries: app.plan.sources.iter().map(|it| it.name.expose().to_owned()).collect(),
    };
    connections.close().await;
    current
}

/// Connects to the servers that `is_wanted` selects, reads their lists and reports failures.
pub(super) async fn read_all(app: &App, is_wanted: impl Fn(&str) -> bool) -> Connections {
    let lists = [List::Tools, List::Prompts, List::Resources, List::Templates];
    let connections = app.connect(|it| is_wanted(it.name.expose()), &lists).await;
    for fault in connections.faults() {
        app.output.print_error(&fault_text(fault));
    }
    let unread = connections.sources.iter().flat_map(|it| &it.unread);
    unread.for_each(|(_, fault)| app.output.print_error(&fault_text(fault)));
    connections
}

/// Returns what a connected server offers, in the form of a lock file.
pub(super) async fn locked_server(connected: &ConnectedSource, connections: &Connections) -> LockedServer {
    let ConnectedSource { source, status, .. } = connected;
    let described = |key: &str| {
        let text = status.server.as_ref().and_then(|it| it.member(key));
        text.and_then(|it| it.decode::<String>().ok()).unwrap_or_default()
    };
    LockedServer {
        package: installed_package(source, status.pid).await,
        identity: LockedIdentity {
            name: described("name"),
            version: described("version"),
            era: match status.era {
                Some(Era::Legacy) => "legacy".to_owned(),
                Some(Era::Modern) => "modern".to_owned(),
                None => String::new(),
            },
            protocol: status.version.clone().unwrap_or_default(),
            instructions: status.instructions.as_deref().map(str::to_owned),
        },
        ..connections.catalog.locked_definitions(source.name.expose())
    }
}

/// Refuses to lock a definition that contains the value of a secret of the plan (L-06).
pub(super) fn check_secrets(plan: &Plan, name: &str, server: &LockedServer) -> Result<(), CommandError> {
    let Some(secret) = secret_in_lock(plan, server) else { return Ok(()) };
    let complaint = format!(
        "L-06: a definition of `{name}` contains the value of {secret}, and wharf.lock is not secret\nhelp: the server has to \
         keep the value out of its definitions"
    );
    Err(CommandError::new("ConfigError", &complaint, Exit::ToolError))
}

impl CurrentLock {
    /// Returns whether a server could not be read.
    pub(super) fn has_failures(&self) -> bool {
        self.has_failures
    }

    /// Returns the file with the current servers. Servers that were not read keep their entry; those that the agent file
    /// no longer has lose it if `all` were read.
    pub(super) fn merged(&self, before: Option<&LockFile>, all: bool) -> LockFile {
        let mut merged = before.cloned().unwrap_or_default();
        if all {
            merged.servers.retain(|name, _| self.entries.contains(name));
        }
        for (name, server) in &self.servers {
            let mut server = server.clone();
            let known = before.and_then(|it| it.servers.get(name)).and_then(|it| it.package.as_ref());
            if let (Some(known), Some(package)) = (known, &mut server.package) {
                // The pinned launch names the version; the file keeps what agent.yaml says. Hashes of other platforms stay.
                if known.kind == package.kind && known.version == package.version {
                    let others = known.integrity.clone();
                    let own = std::mem::replace(&mut package.integrity, others);
                    package.integrity.extend(own);
                }
            }
            merged.servers.insert(name.clone(), server);
        }
        merged
    }

    /// Refuses to lock definitions that contain the value of a secret of the plan (L-06).
    pub(super) fn check_secrets(&self, plan: &Plan) -> Result<(), CommandError> {
        self.servers.iter().try_for_each(|(name, server)| check_secrets(plan, name, server))
    }

    /// Describes the packages whose version or content could not be found.
    pub(super) fn unknown_packages(&self) -> Vec<String> {
        let unknown = self.servers.iter().filter(|(_, server)| {
            server.package.as_ref().is_some_and(|it| {
                it.integrity.is_empty()
                    && matches!(it.kind, PackageKind::Npm | PackageKind::PyPi | PackageKind::Docker)
            })
        });
        let line = |name: &String| {
            format!("the version of the package of `{name}` is not known, so it is locked without one")
        };
        unknown.map(|(name, _)| line(name)).collect()
    }
}
