//! Resolves the values of variables that a plugin declares.
//!
//! The layers, in order of precedence: the current request, the operator's secrets file, the values given at
//! registration, and the environment of this machine. The environment is used only for names that the manifest
//! declares and that a child may inherit.

use super::{
    child_env,
    env::Env,
    env_file::{self, Assignment, InvalidLine},
};
use std::collections::BTreeMap;

const MAX_SECRETS_FILE_BYTES: u64 = 1024 * 1024;

/// Sources of values, in order of precedence.
#[derive(Clone, Copy)]
pub(super) struct VariableLayers<'a> {
    pub(super) request: &'a BTreeMap<String, String>,
    pub(super) file: &'a BTreeMap<String, String>,
    pub(super) registered: &'a BTreeMap<String, String>,
    pub(super) env: &'a Env,
}

impl<'a> VariableLayers<'a> {
    /// Returns the value given under this name, without consulting the environment.
    pub(super) fn given(&self, name: &str) -> Option<&'a str> {
        let layers = [self.request, self.file, self.registered];
        layers.into_iter().find_map(|it| it.get(name)).map(String::as_str)
    }

    /// Returns the value of a name that the manifest declares, with the environment as the last layer.
    pub(super) fn declared(&self, name: &str) -> Option<&'a str> {
        self.given(name).or_else(|| {
            let machine = || self.env.variables.get(name).map(String::as_str);
            (!child_env::is_refused(name, &self.env.grants)).then(machine).flatten()
        })
    }
}

/// Reads the operator's secrets file. The error contains no text of the file.
pub(super) fn secrets_file(env: &Env) -> Result<BTreeMap<String, String>, String> {
    let Some(path) = &env.grants.secrets_file else { return Ok(BTreeMap::new()) };
    let bytes = env.files.read_private(path, MAX_SECRETS_FILE_BYTES).map_err(|error| error.to_string())?;
    let text = str::from_utf8(&bytes).map_err(|_| "is not UTF-8 text".to_owned())?;
    let read = env_file::parse(text);
    let read = read.map_err(|InvalidLine { number, why }| format!("cannot be read: line {number}: {why}"))?;
    Ok(read.into_iter().map(|Assignment { name, value }| (name, value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_layer_with_a_value_wins() {
        let layer = |names: &[&str], value: &str| -> BTreeMap<String, String> {
            names.iter().map(|it| ((*it).to_owned(), value.to_owned())).collect()
        };
        let (request, registered) = (layer(&["A"], "request"), layer(&["A", "B", "C"], "registered"));
        let file = layer(&["A", "B"], "file");
        let variables = layer(&["A", "B", "C", "D", "NODE_OPTIONS"], "machine");
        let env = Env { variables, ..Env::bare() };
        let layers = VariableLayers { request: &request, file: &file, registered: &registered, env: &env };
        for (name, given, declared) in [
            ("A", Some("request"), Some("request")),
            ("B", Some("file"), Some("file")),
            ("C", Some("registered"), Some("registered")),
            ("D", None, Some("machine")),
            ("NODE_OPTIONS", None, None),
            ("E", None, None),
        ] {
            assert_eq!((layers.given(name), layers.declared(name)), (given, declared), "{name}");
        }
    }
}
