//! Reads `wharf.lock`. The first mistake ends it: the file is written by `wharf lock`, not by hand.

use crate::{
    diagnostic::Diagnostics,
    json,
    json_tree::json_tree,
    lock::{
        LINES, LOCK_FILE, LockFile, LockedDependencies, LockedIdentity, LockedItem, LockedPackage,
        LockedServer, MAX_LOCK_BYTES, PackageKind, VERSION, hash,
    },
    masked_string::MaskedString,
};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt};

/// Reason why a lock file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockError {
    /// The file is not a lock file.
    Unreadable(String),
    /// The hash of this tool, prompt or template is not that of its definition.
    WrongHash(String),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Unreadable(why) => f.write_str(why),
            LockError::WrongHash(item) => write!(f, "the hash of `{item}` is not that of its definition"),
        }
    }
}

impl std::error::Error for LockError {}

impl LockFile {
    /// Reads the text of a lock file, and checks every hash.
    pub fn parse(bytes: &[u8]) -> Result<LockFile, LockError> {
        if bytes.len() as u64 > MAX_LOCK_BYTES {
            return Err(unreadable("it is larger than 16 MiB"));
        }
        let text = str::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8"))?;
        let mut diagnostics = Diagnostics::new(LOCK_FILE, text);
        let root = json::parse(text, &mut diagnostics).filter(|_| !diagnostics.has_errors());
        let root = root.ok_or_else(|| {
            let why = diagnostics.items().first().map_or("it is not JSON", |it| it.message.as_str());
            unreadable(why)
        })?;
        let root = json_tree(&root, MaskedString::expose);
        let mut root = object(root, "the file")?;
        if root.remove("version") != Some(VERSION.into()) {
            return Err(unreadable("its version is not 1; a newer wharf may have written it"));
        }
        let servers = object(root.remove("servers").unwrap_or_default(), "servers")?;
        let servers = servers.into_iter().map(|(name, it)| Ok((name.clone(), server(&name, it)?)));
        let servers = servers.collect::<Result<_, LockError>>()?;
        no_more(&root, "the file")?;
        Ok(LockFile { servers })
    }
}

fn server(name: &str, value: Value) -> Result<LockedServer, LockError> {
    let mut members = object(value, name)?;
    let mut take = |key: &str| members.remove(key).unwrap_or_default();
    let package = match take("package") {
        Value::Null => None,
        package => Some(self::package(package)?),
    };
    let server = LockedServer {
        package,
        identity: identity(take("server"))?,
        tools: items(name, take("tools"))?,
        prompts: items(name, take("prompts"))?,
        templates: items(name, take("templates"))?,
    };
    no_more(&members, name)?;
    Ok(server)
}

fn identity(value: Value) -> Result<LockedIdentity, LockError> {
    let mut members = object(value, "server")?;
    let instructions = match members.remove("instructions") {
        None | Some(Value::Null) => None,
        Some(text) => Some(string(text, "instructions")?),
    };
    let mut take = |key: &str| string(members.remove(key).unwrap_or_default(), key);
    let identity = LockedIdentity {
        name: take("name")?,
        version: take("version")?,
        era: take("era")?,
        protocol: take("protocol")?,
        instructions,
    };
    no_more(&members, "server")?;
    Ok(identity)
}

fn package(value: Value) -> Result<LockedPackage, LockError> {
    let mut members = object(value, "package")?;
    let kind = string(members.remove("type").unwrap_or_default(), "type")?;
    let kind = PackageKind::parse(&kind).ok_or_else(|| unreadable("a package has an unknown type"))?;
    let spec = string(members.remove("spec").unwrap_or_default(), "spec")?;
    let version = match members.remove("version") {
        None | Some(Value::Null) => None,
        Some(version) => Some(string(version, "version")?),
    };
    let integrity = match members.remove("integrity") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(Value::String(only)) => BTreeMap::from([(String::new(), only)]),
        Some(by_tag) => strings(by_tag, "integrity")?,
    };
    let is_local = members.remove("local") == Some(Value::Bool(true));
    let mut dependencies = LockedDependencies::default();
    if let Some(value) = members.remove("dependencies") {
        let mut found = object(value, "dependencies")?;
        if let Some(pins) = found.remove("pins") {
            dependencies.pins = strings(pins, "pins")?;
        }
        if let (Some(count), Some(hash)) =
            (found.remove("count").and_then(|it| it.as_u64()), found.remove("hash"))
        {
            dependencies.hash = Some((count, string(hash, "hash")?));
        }
        no_more(&found, "dependencies")?;
    }
    no_more(&members, "package")?;
    Ok(LockedPackage { kind, spec, version, integrity, is_local, dependencies })
}

fn items(server: &str, value: Value) -> Result<BTreeMap<String, LockedItem>, LockError> {
    let item = |(name, value): (String, Value)| {
        let mut members = object(value, &name)?;
        let locked = string(members.remove("hash").unwrap_or_default(), "hash")?;
        let definition = unescape(members.remove("definition").unwrap_or_default());
        no_more(&members, &name)?;
        if hash(&definition) != locked {
            return Err(LockError::WrongHash(format!("{server}:{name}")));
        }
        Ok((name, LockedItem { hash: locked, definition }))
    };
    match value {
        Value::Null => Ok(BTreeMap::new()),
        value => object(value, server)?.into_iter().map(item).collect(),
    }
}

/// Joins lists of lines, and removes the escapes of keys.
fn unescape(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(unescape).collect(),
        Value::Object(members) => match joined(&members) {
            Some(text) => Value::String(text),
            None => {
                let member = |(key, value): (String, Value)| {
                    let is_escaped = key
                        .strip_suffix("lines")
                        .is_some_and(|it| it.len() > 1 && it.bytes().all(|byte| byte == b'$'));
                    let key = if is_escaped { key[1..].to_owned() } else { key };
                    (key, unescape(value))
                };
                Value::Object(members.into_iter().map(member).collect())
            }
        },
        other => other,
    }
}

/// Returns the text of `{"$lines": […]}`.
fn joined(members: &Map<String, Value>) -> Option<String> {
    let lines = members.get(LINES).filter(|_| members.len() == 1)?.as_array()?;
    let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
    Some(lines?.join("\n"))
}

fn object(value: Value, what: &str) -> Result<Map<String, Value>, LockError> {
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(unreadable(&format!("`{what}` is not an object"))),
    }
}

fn string(value: Value, what: &str) -> Result<String, LockError> {
    match unescape(value) {
        Value::String(text) => Ok(text),
        _ => Err(unreadable(&format!("`{what}` is not a string"))),
    }
}

fn strings(value: Value, what: &str) -> Result<BTreeMap<String, String>, LockError> {
    object(value, what)?.into_iter().map(|(key, value)| Ok((key, string(value, what)?))).collect()
}

fn no_more(members: &Map<String, Value>, what: &str) -> Result<(), LockError> {
    match members.keys().next() {
        Some(key) => Err(unreadable(&format!("`{what}` has an unknown key `{key}`"))),
        None => Ok(()),
    }
}

fn unreadable(why: &str) -> LockError {
    LockError::Unreadable(why.to_owned())
}
