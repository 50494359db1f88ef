//! The layers that decide about a tool.

use super::{Audience, ToolLayer};
use crate::{
    BreakerState, Catalog, Fault, FaultKind, Handle,
    active_source::SourceState,
    catalog::{BlockReason, Discovery, QuarantineCause, ToolEntry, tool_names::plain_name},
    fault::Stage,
    lock::{describe_mismatch, review_hint},
    source_status::{SessionState, SourceStatus},
    time_format::rfc3339,
};
use std::sync::Arc;
use wharf_config::{EraChoice, Glob, LockMode, Source};

/// A tool that is being explained.
pub(super) struct ToolSubject {
    /// The source that has the tool or should have it.
    state: Option<SourceState>,
    /// The fault of a source that cannot be used.
    unavailable: Option<Arc<Fault>>,
    discovery: Option<Discovery>,
    entry: Option<Arc<ToolEntry>>,
    /// Names of all tools with this bare name, if there are several.
    same: Vec<String>,
    /// Name on the wire, as far as it follows from the name that was asked for.
    wire_name: String,
    /// Whether the lock has the tool, so that the server listed it before.
    is_locked: bool,
}

impl ToolSubject {
    pub(super) fn tool_id(&self, name: &str) -> String {
        match (&self.entry, &self.state) {
            (Some(entry), _) => entry.id(),
            (None, Some(state)) => format!("{}:{}", state.source.name.expose(), self.wire_name),
            (None, None) => name.to_owned(),
        }
    }

    fn source(&self) -> Option<&Arc<Source>> {
        self.state.as_ref().map(|it| &it.source)
    }
}

/// Finds the tool and its source by any name.
pub(super) fn find_subject(handle: &Handle, catalog: &Catalog, name: &str) -> ToolSubject {
    let entry = catalog.tool(name).cloned();
    let states = handle.sources();
    let named = |it: &SourceState, start: &str, separator: &str| {
        let rest = name.strip_prefix(start).and_then(|it| it.strip_prefix(separator));
        rest.map(|rest| (it.source.name.expose().to_owned(), rest.to_owned()))
    };
    let by_id = || states.iter().find_map(|it| named(it, it.source.name.expose(), ":"));
    let by_prefix = || {
        let prefixed = states.iter().filter(|it| !it.source.prefix.expose().is_empty());
        prefixed.into_iter().find_map(|it| named(it, it.source.prefix.expose(), "__"))
    };
    let found = match &entry {
        Some(entry) => Some((entry.source.clone(), entry.wire_name.to_string())),
        None => by_id().or_else(by_prefix).or_else(|| hidden_by_override(&states, name)),
    };
    let source = found.as_ref().map(|(source, _)| source.as_str()).unwrap_or_default();
    let unavailable = handle.unavailable_source(name);
    let same = catalog.tools.iter().filter(|it| entry.is_none() && *it.wire_name == *name);
    let state = states.into_iter().find(|it| it.source.name.expose() == source);
    let discovery = catalog.discovery(source).cloned();
    let wire_name = found.map_or_else(|| name.to_owned(), |(_, wire_name)| wire_name);
    let is_locked = |it: &SourceState| {
        handle.lock().server(&it.source).is_some_and(|server| server.tools.contains_key(&wire_name))
    };
    ToolSubject {
        discovery,
        same: same.map(|it| it.name.clone()).collect(),
        is_locked: state.as_ref().is_some_and(is_locked),
        state,
        wire_name,
        unavailable,
        entry,
    }
}

/// Finds the source whose override hides a tool of this bare name.
fn hidden_by_override(states: &[SourceState], name: &str) -> Option<(String, String)> {
    let hides = |it: &&SourceState| it.source.overrides.exact.get(name).is_some_and(|it| !it.enabled);
    states.iter().find(hides).map(|it| (it.source.name.expose().to_owned(), name.to_owned()))
}

/// Returns the layers in the order of a call. Layers behind an unknown tool are left out.
pub(super) fn layers(subject: &ToolSubject, audience: Audience) -> Vec<ToolLayer> {
    let mut layers = vec![config(subject)];
    if layers[0].is_ok {
        layers.extend(discovery(subject));
    }
    if layers.iter().all(|it| it.is_ok) {
        layers.push(override_hides(subject).unwrap_or_else(|| listing(subject)));
    }
    let Some(entry) = subject.entry.as_ref().filter(|_| layers.iter().all(|it| it.is_ok)) else {
        return layers;
    };
    layers.push(quarantine(entry));
    layers.push(lock(entry));
    layers.push(override_applies(entry));
    layers.push(switch(entry));
    layers.push(offer(entry, audience));
    layers.push(name(entry));
    if let Some(state) = &subject.state {
        layers.push(session(state));
        layers.push(breaker(state));
    }
    layers
}

fn passed(name: &'static str, detail: impl Into<String>) -> ToolLayer {
    ToolLayer { name, is_ok: true, code: None, detail: detail.into(), hint: None, at: None }
}

fn stopped(name: &'static str, code: &'static str, detail: impl Into<String>, hint: &str) -> ToolLayer {
    let hint = Some(hint.to_owned()).filter(|it| !it.is_empty());
    ToolLayer { name, is_ok: false, code: Some(code), detail: detail.into(), hint, at: None }
}

fn config(subject: &ToolSubject) -> ToolLayer {
    if let Some(fault) = &subject.unavailable {
        return stopped(
            "registration",
            "not_ready",
            fault.cause.clone(),
            fault.hint.as_deref().unwrap_or_default(),
        );
    }
    match subject.source() {
        Some(source) => {
            let at = Some(source.at.to_string()).filter(|_| source.at.line > 0);
            ToolLayer { at, ..passed("config", format!("the entry `{}`", source.name.shown())) }
        }
        None if !subject.same.is_empty() => stopped(
            "name",
            "ambiguous",
            "several servers have a tool of this name",
            &format!("choose one: {}", subject.same.join(", ")),
        ),
        None => stopped(
            "config",
            "source_unknown",
            "no server has this name or prefix",
            "`wharf tools` lists all tools",
        ),
    }
}

fn discovery(subject: &ToolSubject) -> Option<ToolLayer> {
    Some(match subject.discovery.as_ref()? {
        Discovery::Done => passed("discovery", "the server has been listed"),
        Discovery::NotStarted if subject.entry.is_some() => {
            passed("discovery", "the server starts with its first call")
        }
        Discovery::NotStarted => {
            stopped("discovery", "asleep", "the server has not been started", "it starts with the first call")
        }
        Discovery::Pending if subject.entry.is_some() => {
            passed("discovery", "the server is being listed again")
        }
        Discovery::Pending => {
            stopped("discovery", "pending", "the server is being started", "try again in a moment")
        }
        Discovery::Failed(fault) if fault.kind == FaultKind::ProcessLimitReached => {
            stopped("processes", "limit", fault.cause.clone(), fault.hint.as_deref().unwrap_or_default())
        }
        Discovery::Failed(fault) if fault.kind == FaultKind::LockMismatch => {
            stopped("lock", "package", fault.cause.clone(), fault.hint.as_deref().unwrap_or_default())
        }
        Discovery::Failed(fault) if is_era_refused(subject, fault) => {
            let asked = subject.source().map(|it| it.era.as_str()).unwrap_or_default();
            let detail = format!("the entry asks for the era `{asked}`, but {}", fault.message());
            stopped("capability", "era", detail, "remove `era` from the entry; wharf then asks the server")
        }
        Discovery::Failed(fault) => {
            let stderr = fault.stderr.lines().next_back().map(|it| format!(" ({it})")).unwrap_or_default();
            let since = subject.state.as_ref().and_then(|it| it.status.failed_at);
            let since = since.map(|it| format!(" (since {})", rfc3339(it))).unwrap_or_default();
            let detail = format!("{}{stderr}{since}", fault.message());
            stopped("discovery", "failed", detail, fault.hint.as_deref().unwrap_or_default())
        }
    })
}

/// Returns whether the server refused the handshake of the only era that its entry allows.
fn is_era_refused(subject: &ToolSubject, fault: &Fault) -> bool {
    let is_chosen = subject.source().is_some_and(|it| it.era != EraChoice::Auto);
    is_chosen && fault.phase == Stage::Handshake && fault.kind == FaultKind::Protocol
}

fn override_hides(subject: &ToolSubject) -> Option<ToolLayer> {
    let changes = subject.source()?.overrides.find(&subject.wire_name).filter(|it| !it.enabled)?;
    let hint = "remove `enabled: false` from the override";
    Some(ToolLayer {
        at: Some(changes.at.to_string()),
        ..stopped("override", "hidden", "an override hides the tool from everybody", hint)
    })
}

fn listing(subject: &ToolSubject) -> ToolLayer {
    let status = subject.state.as_ref().map(|it| &it.status);
    let has_no_tools = |it: &SourceStatus| it.capabilities.is_some() && !it.offers("tools", None);
    if subject.entry.is_none() && status.is_some_and(has_no_tools) {
        let detail = "the server declares no tools";
        return stopped(
            "capability",
            "no_tools",
            detail,
            "it may have prompts or resources; see `wharf doctor`",
        );
    }
    match &subject.entry {
        Some(entry) => passed("listing", format!("the server lists `{}`", entry.wire_name)),
        None if subject.is_locked => stopped(
            "listing",
            "vanished",
            "the lock has the tool, but the server no longer lists it",
            "ask the operator of the server, or lock it again",
        ),
        None => stopped(
            "listing",
            "not_listed",
            "the server does not list such a tool",
            "`wharf tools` lists all tools",
        ),
    }
}

fn quarantine(entry: &ToolEntry) -> ToolLayer {
    let quarantined = entry.quarantined.as_ref();
    match quarantined.map(|it| (it.cause, &it.reason)) {
        None | Some((QuarantineCause::Override, _)) => passed("quarantine", "the definition is valid"),
        Some((cause, reason)) => {
            stopped("quarantine", cause.as_str(), reason, "the server has to fix its definition")
        }
    }
}

fn lock(entry: &ToolEntry) -> ToolLayer {
    let Some(differences) = &entry.changed else { return passed("lock", "nothing differs from a lock") };
    let is_new = differences.iter().any(|it| it.kind == crate::lock::DifferenceKind::ToolAdded);
    let code = if is_new { "new" } else { "changed" };
    let detail = describe_mismatch(entry.config(), differences);
    // A tool that is switched off as well is blocked for that reason, but enabling it would not be enough.
    match entry.config().lock.mode {
        LockMode::Enforce => stopped("lock", code, detail, &review_hint(entry.config(), &entry.id())),
        LockMode::Warn | LockMode::Off => ToolLayer { code: Some(code), ..passed("lock", detail) },
    }
}

fn override_applies(entry: &ToolEntry) -> ToolLayer {
    let at = entry.config().overrides.find(&entry.wire_name).map(|it| it.at.to_string());
    match entry.quarantined.as_ref().filter(|it| it.cause == QuarantineCause::Override) {
        Some(quarantine) => ToolLayer {
            at,
            ..stopped("override", "invalid", &quarantine.reason, "change the override in agent.yaml")
        },
        None if at.is_some() => ToolLayer { at, ..passed("override", "an override changes the tool") },
        None => passed("override", "no override"),
    }
}

fn switch(entry: &ToolEntry) -> ToolLayer {
    match &entry.blocked {
        Some(BlockReason::SwitchedOff(reason)) => {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            stopped(
                "switch",
                "switched_off",
                format!("an operator disabled the tool{why}"),
                "an operator can enable it again",
            )
        }
        _ => passed("switch", "enabled"),
    }
}

fn offer(entry: &ToolEntry, audience: Audience) -> ToolLayer {
    let Some(rule) = keeping_rule(entry) else { return passed("offer", "models may use the tool") };
    match audience {
        Audience::Client => ToolLayer {
            code: Some("denied"),
            ..passed("offer", format!("{rule} keeps the tool from models; other clients may call it"))
        },
        Audience::Agent => stopped(
            "offer",
            "denied",
            format!("{rule} keeps the tool from models"),
            "change `allow` or `deny` of the entry",
        ),
    }
}

/// Describes the pattern of the entry that keeps a tool from models, if there is one.
fn keeping_rule(entry: &ToolEntry) -> Option<String> {
    let matches = |it: &&Glob| it.matches(&entry.wire_name) || it.matches(&entry.name);
    let denied = entry.config().deny.iter().find(matches).map(|it| format!("'{}' in `deny`", it.as_str()));
    denied.or_else(|| (!entry.for_models).then(|| "`allow`, which does not name it,".to_owned()))
}

fn name(entry: &ToolEntry) -> ToolLayer {
    let mut detail = format!("shown as `{}`, also callable as `{}`", entry.name, entry.id());
    let own = entry.renamed.as_deref().unwrap_or(&entry.wire_name);
    let is_suffixed = entry.name != plain_name(entry.config().prefix.expose(), own);
    if is_suffixed {
        detail.push_str("; the suffix keeps it apart from a tool of the same name, or within 64 characters");
    }
    let renamed = entry.renamed.as_ref().map(|_| "renamed");
    ToolLayer { code: if is_suffixed { Some("suffixed") } else { renamed }, ..passed("name", detail) }
}

fn session(state: &SourceState) -> ToolLayer {
    match &state.status.fault {
        Some(fault) if state.status.session.as_str() == "error" => {
            let since = state.status.failed_at.map(|it| format!(" (since {})", rfc3339(it)));
            let detail = format!("{}{}", fault.message(), since.unwrap_or_default());
            stopped("session", "down", detail, fault.hint.as_deref().unwrap_or_default())
        }
        _ => {
            let is_open = state.status.session == SessionState::Connected;
            let since = state.status.opened_at.filter(|_| is_open);
            let since = since.map(|it| format!(" since {}", rfc3339(it))).unwrap_or_default();
            passed("session", format!("the session is {}{since}", state.status.session.as_str()))
        }
    }
}

fn breaker(state: &SourceState) -> ToolLayer {
    let snapshot = &state.circuit_breaker;
    match snapshot.state {
        BreakerState::Open { .. } => stopped(
            "breaker",
            "open",
            format!("the circuit breaker is open since {}", rfc3339(snapshot.last_change)),
            &format!("it lets a call through {} s later", snapshot.policy.recovery_timeout.as_secs()),
        ),
        _ => passed("breaker", format!("the circuit breaker is {}", snapshot.state.as_str())),
    }
}
