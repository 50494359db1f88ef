//! Writes `wharf.lock`: JSON with sorted keys, two spaces of indentation and a final newline.
//!
//! A text with line breaks is `{"$lines": […]}`, so that a code review shows its lines. A real key `$lines` gets one more
//! `$`. Invisible characters are written as `\uXXXX`, so that a review shows them too.

use super::{LockFile, LockedDependencies, LockedIdentity, LockedItem, LockedPackage, LockedServer, VERSION};
use crate::invisible::is_invisible;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Key of a text that is written as a list of its lines.
pub(crate) const LINES: &str = "$lines";

impl LockFile {
    /// Returns the text of the file. Equal contents give equal bytes.
    pub fn to_text(&self) -> String {
        let servers: Map<String, Value> =
            self.servers.iter().map(|(name, server)| (name.clone(), server_json(server))).collect();
        let mut text = String::new();
        // Our own keys are never escaped, only those of definitions.
        write_value(&mut text, &json!({ "version": VERSION, "servers": servers }), 0);
        text.push('\n');
        text
    }
}

fn server_json(server: &LockedServer) -> Value {
    let LockedServer { package, identity, tools, prompts, templates } = server;
    let LockedIdentity { name, version, era, protocol, instructions } = identity;
    let items = |items: &BTreeMap<String, LockedItem>| -> Map<String, Value> {
        let item = |it: &LockedItem| json!({ "hash": it.hash, "definition": escape_keys(&it.definition) });
        items.iter().map(|(name, it)| (name.clone(), item(it))).collect()
    };
    json!({
        "package": package.as_ref().map(package_json),
        "server": {
            "name": lines(name), "version": lines(version), "era": era, "protocol": lines(protocol),
            "instructions": instructions.as_deref().map(lines),
        },
        "tools": items(tools),
        "prompts": items(prompts),
        "templates": items(templates),
    })
}

fn package_json(package: &LockedPackage) -> Value {
    let LockedPackage { kind, spec, version, integrity, is_local, dependencies } = package;
    let mut members = Map::new();
    members.insert("type".to_owned(), json!(kind.as_str()));
    members.insert("spec".to_owned(), json!(spec));
    members.insert("version".to_owned(), json!(version));
    let integrity = match (integrity.len(), integrity.get("")) {
        (0, _) => Value::Null,
        (1, Some(only)) => json!(only),
        _ => json!(integrity),
    };
    members.insert("integrity".to_owned(), integrity);
    if *is_local {
        members.insert("local".to_owned(), json!(true));
    }
    let LockedDependencies { pins, hash } = dependencies;
    if let Some((count, hash)) = hash {
        members.insert("dependencies".to_owned(), json!({ "count": count, "hash": hash }));
    } else if !pins.is_empty() {
        members.insert("dependencies".to_owned(), json!({ "pins": pins }));
    }
    Value::Object(members)
}

/// Escapes the keys of a definition that would be read as a list of lines, and splits its texts into lines.
fn escape_keys(value: &Value) -> Value {
    match value {
        Value::String(text) => lines(text),
        Value::Array(items) => items.iter().map(escape_keys).collect(),
        Value::Object(members) => {
            let escaped = members.iter().map(|(key, value)| {
                let dollars = key.strip_suffix("lines").filter(|it| !it.is_empty());
                match dollars.is_some_and(|it| it.bytes().all(|byte| byte == b'$')) {
                    true => (format!("${key}"), escape_keys(value)),
                    false => (key.clone(), escape_keys(value)),
                }
            });
            Value::Object(escaped.collect())
        }
        other => other.clone(),
    }
}

/// Splits a text with line breaks into a list of its lines.
fn lines(text: &str) -> Value {
    match text.contains('\n') {
        true => json!({ LINES: text.split('\n').collect::<Vec<_>>() }),
        false => json!(text),
    }
}

fn write_value(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::String(text) => write_string(out, text),
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                begin_line(out, at > 0, depth + 1);
                write_value(out, item, depth + 1);
            }
            begin_line(out, false, depth);
            out.push(']');
        }
        Value::Object(members) if !members.is_empty() => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            out.push('{');
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                begin_line(out, at > 0, depth + 1);
                write_string(out, key);
                out.push_str(": ");
                write_value(out, value, depth + 1);
            }
            begin_line(out, false, depth);
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn begin_line(out: &mut String, after_item: bool, depth: usize) {
    out.push_str(if after_item { ",\n" } else { "\n" });
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Writes a JSON string in which every invisible character is escaped.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            c if is_invisible(c) => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
