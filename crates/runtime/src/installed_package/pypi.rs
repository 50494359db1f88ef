//! Reads what uvx has installed: the environment of the interpreter that runs the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use wharf_config::{LockedPackage, PackageKind, read_regular, sha256};

/// Maximum number of processes to look at.
const MAX_PROCESSES: usize = 65_536;

/// Maximum size of a metadata file, in bytes.
const MAX_METADATA_BYTES: u64 = 16 * 1024 * 1024;

/// Files of an installation that differ between machines.
const INSTALLER_FILES: [&str; 5] = ["INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json"];

/// Returns the installed package of a server, found through its running processes.
pub(super) fn find(process: u32, spec: &str) -> Option<LockedPackage> {
    let name = normalized(spec.split(['[', '@', '=', '<', '>', '~', '!', ' ']).next().unwrap_or(spec));
    let environments = process_tree(process).into_iter().filter_map(environment);
    environments.into_iter().find_map(|it| read_environment(&it, &name, spec))
}

/// Returns a process and all its descendants.
fn process_tree(root: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten().take(MAX_PROCESSES);
    let ids = entries.filter_map(|it| it.file_name().to_string_lossy().parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = ids.filter_map(|id| Some((id, parent(id)?))).collect();
    let mut found = vec![root];
    let mut seen = BTreeSet::from([root]);
    let mut at = 0;
    while let Some(&id) = found.get(at) {
        found.extend(parents.iter().filter(|it| it.1 == id && seen.insert(it.0)).map(|it| it.0));
        at += 1;
    }
    found
}

fn parent(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of the program, in parentheses, may contain anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the virtual environment that a process runs in.
fn environment(id: u32) -> Option<PathBuf> {
    let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let program = line.split(|byte| *byte == 0).next()?;
    let program = PathBuf::from(String::from_utf8_lossy(program).into_owned());
    let folder = program.parent()?.parent()?;
    folder.join("pyvenv.cfg").is_file().then(|| folder.to_owned())
}

fn read_environment(environment: &Path, name: &str, spec: &str) -> Option<LockedPackage> {
    let libraries = entries(&environment.join("lib")).map(|it| it.join("site-packages"));
    let folders = libraries.flat_map(|it| entries(&it));
    let mut pins = BTreeMap::new();
    let mut package = None;
    for folder in folders {
        let file = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((its_name, version)) = file.strip_suffix(".dist-info").and_then(|it| it.split_once('-'))
        else {
            continue;
        };
        match normalized(its_name) == name {
            true => package = Some((folder.clone(), version.to_owned())),
            false => _ = pins.insert(normalized(its_name), version.to_owned()),
        }
    }
    let (folder, version) = package?;
    let mut package = LockedPackage::new(PackageKind::PyPi, spec);
    package.version = Some(version);
    package.integrity.extend(wheel_tag(&folder).zip(record_hash(&folder)));
    package.dependencies.pins = pins;
    Some(package)
}

/// Returns the first platform tag of an installed wheel.
fn wheel_tag(folder: &Path) -> Option<String> {
    let text = read_text(&folder.join("WHEEL"))?;
    text.lines().find_map(|it| it.strip_prefix("Tag:")).map(|it| it.trim().to_owned())
}

/// Hashes the files of an installed wheel, as its record lists them.
fn record_hash(folder: &Path) -> Option<String> {
    let text = read_text(&folder.join("RECORD"))?;
    let own = folder.file_name()?.to_string_lossy().into_owned();
    let is_kept = |line: &&str| {
        let path = line.split(',').next().unwrap_or_default().trim_matches('"');
        let own_file = path.strip_prefix(&own).and_then(|it| it.strip_prefix('/'));
        !path.starts_with("../")
            && !path.contains("__pycache__/")
            && !own_file.is_some_and(|it| INSTALLER_FILES.contains(&it))
    };
    let mut rows: Vec<String> = text.lines().filter(is_kept).map(|it| format!("{it}\n")).collect();
    rows.sort();
    Some(sha256(rows.concat().as_bytes()))
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read_regular(path, MAX_METADATA_BYTES).ok()?).ok()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path())
}

/// Normalizes the name of a package, so that all its spellings are equal.
fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|it| !it.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}
