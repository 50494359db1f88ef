//! Makes a launcher start the locked version of a package.
//!
//! npx gets `NAME@VERSION`, uvx `--from NAME==VERSION` and a file with the versions of all dependencies, docker the digest
//! of the image. A package whose version is not known is started as written.

use crate::{
    download::Download,
    lock::{LockedPackage, PackageKind},
    masked_string::MaskedString,
    plan::{Arg, ArgOrigin, Endpoint, Launch, Source},
};

/// Name of the file with the versions of dependencies, in the private folder of the server.
pub const CONSTRAINTS_FILE: &str = "wharf-constraints.txt";

/// The version that agent.yaml asks for, if it is not the locked one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OtherVersion {
    pub(crate) asked: String,
    pub(crate) locked: String,
}

/// Changes the arguments so that the locked version starts.
pub(crate) fn pin(launch: &mut Launch, package: &LockedPackage) -> Result<(), OtherVersion> {
    let Some(download) = launch.download.clone() else { return Ok(()) };
    let written = match &download {
        Download::Npm { packages, .. } => packages.first().cloned(),
        Download::PyPi { package, .. } => Some(package.clone()),
        Download::Image { image, .. } => Some(image.clone()),
    };
    let Some(written) = written else { return Ok(()) };
    let kind = match &download {
        Download::Npm { .. } => PackageKind::Npm,
        Download::PyPi { .. } => PackageKind::PyPi,
        Download::Image { .. } => PackageKind::Docker,
    };
    let (name, asked) = split_spec(kind, written.expose());
    let (locked_name, _) = split_spec(package.kind, &package.spec);
    let version = package.version.clone().unwrap_or_default();
    let is_other = asked.is_some_and(|it| is_exact(kind, it) && it != version) && !version.is_empty();
    if kind != package.kind || name != locked_name || is_other {
        let locked = if version.is_empty() { package.spec.clone() } else { version };
        return Err(OtherVersion { asked: written.shown().to_owned(), locked });
    }
    match kind {
        PackageKind::Npm if !version.is_empty() => pin_npm(launch, &written, &format!("{name}@{version}")),
        PackageKind::PyPi if !version.is_empty() => {
            pin_pypi(launch, &written, &format!("{name}=={version}"), package);
        }
        PackageKind::Docker => pin_image(launch, &written, name, package),
        _ => {}
    }
    Ok(())
}

/// Returns a source with another version of its package. The error says why it cannot have one.
pub fn with_version(source: &Source, version: &str) -> Result<Source, String> {
    let mut changed = Source { package: None, ..source.clone() };
    let Endpoint::Stdio(launch) = &mut changed.endpoint else {
        return Err(format!("`{}` has no package, so it has no versions", source.name.shown()));
    };
    set_version(launch, version).map_err(|why| format!("`{}`: {why}", source.name.shown()))?;
    Ok(changed)
}

/// Changes the arguments so that this version starts, whatever agent.yaml and the lock say.
fn set_version(launch: &mut Launch, version: &str) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '!' | '_' | ':');
    if !version.starts_with(|c: char| c.is_ascii_alphanumeric()) || !version.chars().all(is_word) {
        return Err(format!("'{version}' is not a version"));
    }
    match launch.download.clone() {
        Some(Download::Npm { packages, .. }) => {
            let Some(written) = packages.first() else { return Ok(()) };
            let (name, _) = split_spec(PackageKind::Npm, written.expose());
            pin_npm(launch, written, &format!("{name}@{version}"));
        }
        Some(Download::PyPi { package, .. }) => {
            let (name, _) = split_spec(PackageKind::PyPi, package.expose());
            let unlocked = LockedPackage::new(PackageKind::PyPi, name);
            pin_pypi(launch, &package, &format!("{name}=={version}"), &unlocked);
        }
        Some(Download::Image { image, .. }) => {
            let (name, _) = split_spec(PackageKind::Docker, image.expose());
            let separator = if version.starts_with("sha256:") { '@' } else { ':' };
            set_image(launch, &image, &format!("{name}{separator}{version}"));
        }
        None => return Err("its package has no versions; it is not started by npx, uvx or docker".to_owned()),
    }
    Ok(())
}

/// Splits a package as it is written into its name (with extras), and the version behind it.
fn split_spec(kind: PackageKind, spec: &str) -> (&str, Option<&str>) {
    let at = match kind {
        // A scoped name begins with `@`.
        PackageKind::Npm => spec.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| (at, 1)),
        PackageKind::PyPi => spec.find(['@', '=', '<', '>', '~', '!']).map(|at| {
            let length =
                if spec[at..].starts_with("==") { 2 } else { usize::from(spec[at..].starts_with('@')) };
            (at, length)
        }),
        PackageKind::Docker => {
            let digest = spec.find('@');
            let start = spec.rfind('/').map_or(0, |it| it + 1);
            let tag = spec[start..].find(':').map(|it| start + it);
            digest.into_iter().chain(tag).min().map(|it| (it, 1))
        }
        PackageKind::Remote | PackageKind::Program => None,
    };
    match at {
        Some((at, length)) => (spec[..at].trim(), Some(spec[at + length..].trim())),
        None => (spec.trim(), None),
    }
}

/// Returns whether a version names exactly one release, not a range or a tag.
fn is_exact(kind: PackageKind, version: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '!');
    let is_plain = version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(is_word);
    match kind {
        PackageKind::Npm => is_plain && version.split('.').count() >= 3 && !version.contains('x'),
        PackageKind::PyPi => is_plain,
        PackageKind::Docker | PackageKind::Remote | PackageKind::Program => false,
    }
}

fn locked(written: &MaskedString, pinned: &str) -> Arg {
    Arg { value: MaskedString::plain(pinned), origin: ArgOrigin::Locked(written.clone()) }
}

fn pin_npm(launch: &mut Launch, written: &MaskedString, pinned: &str) {
    let is_package = |it: &Arg| {
        let value = it.value.expose();
        value == written.expose() || value.strip_prefix("--package=") == Some(written.expose())
    };
    if let Some(arg) = launch.args.iter_mut().find(|it| is_package(it)) {
        let prefix = if arg.value.expose() == written.expose() { "" } else { "--package=" };
        *arg = locked(written, &format!("{prefix}{pinned}"));
    }
    if let Some(Download::Npm { packages, args, .. }) = &mut launch.download {
        let flag = format!("--package={}", written.expose());
        for arg in args.iter_mut().filter(|it| it.expose() == flag) {
            *arg = MaskedString::plain(format!("--package={pinned}"));
        }
        if let Some(first) = packages.first_mut() {
            *first = MaskedString::plain(pinned);
        }
    }
}

fn pin_pypi(launch: &mut Launch, written: &MaskedString, pinned: &str, package: &LockedPackage) {
    let Some(at) = launch.args.iter().position(|it| it.value.expose() == written.expose()) else { return };
    let has_from = at > 0 && launch.args[at - 1].value.expose() == "--from";
    match has_from {
        true => launch.args[at] = locked(written, pinned),
        false => {
            // Without `--from`, the package is also the name of the tool. A version must not be part of that.
            let (name, _) = split_spec(PackageKind::PyPi, written.expose());
            let tool = name.split('[').next().unwrap_or(name).to_owned();
            launch.args[at] = locked(written, &tool);
            launch.args.insert(at, locked(written, pinned));
            launch.args.insert(at, added_flag("--from"));
        }
    }
    let lines: Vec<String> =
        package.dependencies.pins.iter().map(|(name, version)| format!("{name}=={version}\n")).collect();
    let constraints = lines.concat();
    let flags = ["--constraints", CONSTRAINTS_FILE];
    if !constraints.is_empty() {
        flags.iter().rev().for_each(|it| launch.args.insert(0, added_flag(it)));
    }
    if let Some(Download::PyPi { package, args }) = &mut launch.download {
        for arg in args.iter_mut().filter(|it| it.expose() == written.expose()) {
            *arg = MaskedString::plain(pinned);
        }
        if !constraints.is_empty() {
            flags.iter().rev().for_each(|it| args.insert(0, MaskedString::plain(*it)));
        }
        *package = MaskedString::plain(pinned);
    }
    launch.constraints = (!constraints.is_empty()).then_some(constraints);
}

fn added_flag(flag: &str) -> Arg {
    Arg { value: MaskedString::plain(flag), origin: ArgOrigin::Added("starts the version in wharf.lock") }
}

fn pin_image(launch: &mut Launch, written: &MaskedString, name: &str, package: &LockedPackage) {
    let Some(digest) = package.integrity.get("") else { return };
    let pinned = if package.is_local { digest.clone() } else { format!("{name}@{digest}") };
    set_image(launch, written, &pinned);
    // An image that only this machine knows cannot be downloaded.
    if package.is_local {
        launch.download = None;
    }
}

fn set_image(launch: &mut Launch, written: &MaskedString, pinned: &str) {
    if let Some(arg) = launch.args.iter_mut().find(|it| it.value.expose() == written.expose()) {
        *arg = locked(written, pinned);
    }
    if let Some(Download::Image { image, .. }) = &mut launch.download {
        *image = MaskedString::plain(pinned);
    }
}
