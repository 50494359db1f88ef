//! Lowers `lock:` and applies `wharf.lock` to the sources: their settings, and the versions that they start.

use crate::{
    diagnostic::Diagnostics,
    env::{Env, LockUse},
    files::FileError,
    launch::pin,
    lock::{DependencyCheck, LOCK_FILE, LockBasis, LockFile, LockMode, LockSettings, MAX_LOCK_BYTES},
    lock_reader::LockError,
    node::Value,
    place::{Place, PlacedString},
    plan::{Endpoint, Source},
    raw::{Field, RawLock},
    read::Reader,
};
use std::sync::Arc;

/// The settings that one `lock:` makes. Absent ones are inherited.
#[derive(Clone, Copy, Default)]
struct WrittenSettings {
    mode: Option<LockMode>,
    pin: Option<bool>,
    dependencies: Option<DependencyCheck>,
}

/// An entry of `tools:`: its name, and the options that the file also has.
pub(crate) struct EntryOptions {
    pub(crate) name: PlacedString,
    pub(crate) lock: Option<Field>,
    pub(crate) results: Option<Field>,
}

/// Reads the lock and applies it to the sources. Returns it if it is used.
pub(super) fn apply(
    field: Option<Field>,
    entries: Vec<EntryOptions>,
    sources: &mut [Source],
    env: &Env,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<LockFile>> {
    let written_at = field.as_ref().map(|it| it.key_at);
    let top = settings(field, diagnostics);
    let entries: Vec<(PlacedString, Option<Place>, WrittenSettings)> = entries
        .into_iter()
        .map(|it| (it.name, it.lock.as_ref().map(|it| it.key_at), settings(it.lock, diagnostics)))
        .collect();
    let lock = read(env, diagnostics)?;
    let usual = if lock.is_some() { LockMode::Enforce } else { LockMode::Off };
    for (source, (name, at, own)) in sources.iter_mut().zip(&entries) {
        source.lock = LockSettings {
            mode: own.mode.or(top.mode).unwrap_or(usual),
            pin: own.pin.or(top.pin).unwrap_or(true),
            dependencies: own.dependencies.or(top.dependencies).unwrap_or(DependencyCheck::Warn),
            basis: LockBasis::File,
        };
        let at = at.or(written_at).unwrap_or(name.at);
        match &lock {
            None if source.lock.mode == LockMode::Enforce && env.lock == LockUse::Enforce => {
                diagnostics.missing_lock(at);
            }
            None => source.lock.mode = LockMode::Off,
            Some(lock) => apply_to(source, name, lock, env, diagnostics),
        }
    }
    let lock = lock?;
    if env.lock == LockUse::Enforce {
        let is_gone = |name: &&String| !entries.iter().any(|(it, ..)| it.value.expose() == name.as_str());
        lock.servers.keys().filter(is_gone).for_each(|it| diagnostics.locked_entry_gone(it));
    }
    (env.lock == LockUse::Enforce).then(|| Arc::new(lock))
}

fn apply_to(
    source: &mut Source,
    name: &PlacedString,
    lock: &LockFile,
    env: &Env,
    diagnostics: &mut Diagnostics,
) {
    if source.lock.mode == LockMode::Off && env.lock == LockUse::Enforce {
        return;
    }
    let Some(server) = lock.servers.get(name.value.expose()) else {
        if env.lock == LockUse::Enforce {
            diagnostics.entry_not_locked(name.at, name.value.shown(), source.lock.mode);
        }
        return;
    };
    let Some(package) = &server.package else { return };
    if let Endpoint::Stdio(launch) = &mut source.endpoint
        && source.lock.pin
        && let Err(other) = pin::pin(launch, package)
    {
        diagnostics.other_version_locked(name.at, name.value.shown(), &other.asked, &other.locked);
    }
    if env.lock == LockUse::Enforce {
        source.package = Some(package.clone());
    }
}

/// Reads the file. `Some(None)` means that there is none, `None` that a diagnostic was recorded.
fn read(env: &Env, diagnostics: &mut Diagnostics) -> Option<Option<LockFile>> {
    if env.lock == LockUse::Ignore || env.origin.is_registered() {
        return Some(None);
    }
    let bytes = match env.files.read(LOCK_FILE, MAX_LOCK_BYTES) {
        Ok(bytes) => bytes,
        Err(FileError::Missing) => return Some(None),
        Err(error) => {
            diagnostics.unusable_lock(&LockError::Unreadable(error.to_string()));
            return None;
        }
    };
    match LockFile::parse(&bytes) {
        Ok(lock) => Some(Some(lock)),
        Err(error) => {
            diagnostics.unusable_lock(&error);
            None
        }
    }
}

/// Reads `lock: enforce` or `lock: {mode: …}`.
fn settings(field: Option<Field>, diagnostics: &mut Diagnostics) -> WrittenSettings {
    let Some(field) = field else { return WrittenSettings::default() };
    if !matches!(field.node.value, Value::Map(_)) {
        let mut reader = Reader { class: "ConfigError", diagnostics };
        let mode = reader.keyword("lock", Some(field), LockMode::KEYWORDS, LockMode::parse);
        return WrittenSettings { mode, ..WrittenSettings::default() };
    }
    let Some(RawLock { mode, pin, dependencies }) = RawLock::read(field.node, diagnostics) else {
        return WrittenSettings::default();
    };
    let mut reader = Reader { class: "ConfigError", diagnostics };
    WrittenSettings {
        mode: reader.keyword("lock.mode", mode, LockMode::KEYWORDS, LockMode::parse),
        pin: reader.flag("lock.pin", pin),
        dependencies: reader.keyword(
            "lock.dependencies",
            dependencies,
            DependencyCheck::KEYWORDS,
            DependencyCheck::parse,
        ),
    }
}
