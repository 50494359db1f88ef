//! `wharf.lock`: which packages and which definitions an agent was reviewed with.
//!
//! The file lies beside agent.yaml and is committed with it. It contains no time, path or host name, so the same
//! servers give the same bytes on every machine. Each definition is stored in full beside its hash. The reader computes
//! the hash again, so nobody can show one text in a review and lock another.

mod settings;
mod writer;

use serde_json::{Map, Value};
pub use settings::{DependencyCheck, LockBasis, LockMode, LockSettings, RegisteredLock};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
pub(crate) use writer::LINES;

/// Name of the file.
pub const LOCK_FILE: &str = "wharf.lock";

/// Maximum size of the file, in bytes.
pub const MAX_LOCK_BYTES: u64 = 16 * 1024 * 1024;

/// Version of the format.
pub(crate) const VERSION: u64 = 1;

/// Members of a definition that the hash leaves out: servers may change them without changing what the tool does.
const UNLOCKED_MEMBERS: [&str; 2] = ["_meta", "icons"];

/// The content of a lock file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockFile {
    /// The locked servers, by name of the entry.
    pub servers: BTreeMap<String, LockedServer>,
}

/// One locked server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockedServer {
    /// Package, image, program or address that runs the server. `None` for a built-in server.
    pub package: Option<LockedPackage>,
    /// How the server describes itself.
    pub identity: LockedIdentity,
    /// Its tools, by name on the wire.
    pub tools: BTreeMap<String, LockedItem>,
    /// Its prompts, by name on the wire.
    pub prompts: BTreeMap<String, LockedItem>,
    /// Its resource templates, by URI template.
    pub templates: BTreeMap<String, LockedItem>,
}

/// The self-description of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockedIdentity {
    /// Name of the server.
    pub name: String,
    /// Version of the server.
    pub version: String,
    /// Protocol era.
    pub era: String,
    /// Protocol version.
    pub protocol: String,
    /// Instructions for models.
    pub instructions: Option<String>,
}

/// The definition of a tool, prompt or template.
#[derive(Clone, Debug, PartialEq)]
pub struct LockedItem {
    /// Hash of the definition.
    pub hash: String,
    /// The definition, without the members that the hash leaves out.
    pub definition: Value,
}

/// The package, image, program or address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedPackage {
    /// Kind of the package.
    pub kind: PackageKind,
    /// Package or image as agent.yaml names it, or the address without its query.
    pub spec: String,
    /// Installed version.
    pub version: Option<String>,
    /// Hashes of the package, by platform tag. A package that is the same on all platforms has one, with an empty tag.
    pub integrity: BTreeMap<String, String>,
    /// Whether the image is known on this machine only.
    pub is_local: bool,
    /// Installed dependencies.
    pub dependencies: LockedDependencies,
}

/// Kinds of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageKind {
    /// A package of npm.
    Npm,
    /// A package of PyPI.
    PyPi,
    /// A container image.
    Docker,
    /// A server at an address.
    Remote,
    /// A program that the operator granted.
    Program,
}

/// The dependencies of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockedDependencies {
    /// Name and version of each, if the launcher can pin them.
    pub pins: BTreeMap<String, String>,
    /// Number and hash of all, if the launcher cannot pin them.
    pub hash: Option<(u64, String)>,
}

crate::keywords::keywords!(PackageKind {
    Npm = "npm",
    PyPi = "pypi",
    Docker = "docker",
    Remote = "remote",
    Program = "program"
});

impl LockedItem {
    /// Locks a definition as a server sent it.
    pub fn of(definition: Value) -> LockedItem {
        let definition = strip(definition);
        LockedItem { hash: hash(&definition), definition }
    }
}

impl LockedPackage {
    /// Creates a package of which only the name is known.
    pub fn new(kind: PackageKind, spec: impl Into<String>) -> LockedPackage {
        LockedPackage {
            kind,
            spec: spec.into(),
            version: None,
            integrity: BTreeMap::new(),
            is_local: false,
            dependencies: LockedDependencies::default(),
        }
    }
}

/// Removes the members that the hash leaves out.
fn strip(definition: Value) -> Value {
    match definition {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(key, _)| !UNLOCKED_MEMBERS.contains(&key.as_str()));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// Hashes canonical JSON (RFC 8785): `sha256-` and hexadecimal digits.
pub(crate) fn hash(definition: &Value) -> String {
    // The canonical form exists for every value that serde_json can hold.
    let canonical = serde_json_canonicalizer::to_vec(definition).unwrap_or_default();
    sha256(&canonical)
}

/// Hashes bytes: `sha256-` and hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256-{digits}")
}
