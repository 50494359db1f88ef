//! Checks an entry with the configuration loader before it is written.

use super::{EnvFile, import_error::ImportError, yaml, yaml::YamlEntry};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};
use wharf_config::{Diagnostic, Env, FileError, Files, MissingGrant, Severity, load};

/// Maximum number of names checked at once. The loader stops reporting errors somewhere above that number.
const MAX_NAMES_PER_CHECK: usize = 100;

/// Reason why an entry is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The grant that would make it acceptable.
    pub(super) missing_grant: Option<MissingGrant>,
}

/// Loads entries in their future environment, with the env files that will be written.
pub(super) struct EntryChecker {
    pub(super) env: Env,
}

/// The files on disk, overlaid with the env files that will be written.
struct OverlayFiles {
    folder: PathBuf,
    new: BTreeMap<String, String>,
    existing: Arc<dyn Files + Send + Sync>,
}

/// A variable name that an agent file may not set, and a hint.
pub(super) struct RefusedName {
    pub(super) name: String,
    pub(super) hint: Option<String>,
}

impl Reason {
    pub(super) fn new(message: impl Into<String>) -> Reason {
        Reason { message: message.into(), hint: None, missing_grant: None }
    }
}

impl EntryChecker {
    pub(super) fn new(env: Env, env_files: &[EnvFile]) -> EntryChecker {
        let new = env_files.iter().map(|it| (it.name.clone(), it.text.clone())).collect();
        let files = OverlayFiles { folder: env.folder.clone(), new, existing: env.files };
        EntryChecker { env: Env { files: Arc::new(files), ..env } }
    }

    /// Returns the loader's reasons to refuse a file with only this entry. Empty if it accepts the file.
    pub(super) fn reasons(&self, entry: &YamlEntry) -> Vec<Reason> {
        let text = format!("tools:\n{}", entry.render());
        errors(&text, &self.env).into_iter().map(reason).collect()
    }

    /// Checks the whole file. Entries that are valid separately can only fail together if the file is too large.
    pub(super) fn check_file(&self, text: &str) -> Result<(), ImportError> {
        match errors(text, &self.env).into_iter().next() {
            None => Ok(()),
            Some(error) => Err(ImportError::Unusable(error.message)),
        }
    }
}

/// Returns those names that an agent file may not set in a child's environment.
pub(super) fn refused_names<T: AsRef<str>>(names: &[T], env: &Env) -> Vec<RefusedName> {
    names.chunks(MAX_NAMES_PER_CHECK).flat_map(|batch| refused_in_batch(batch, env)).collect()
}

fn refused_in_batch<T: AsRef<str>>(names: &[T], env: &Env) -> Vec<RefusedName> {
    const PROBE_ENTRY: &str = "tools:\n  - name: probe\n    description: a probe\n    type: mcp\n    server: probe\n    command: uvx\n    env:\n";
    let mut text = PROBE_ENTRY.to_owned();
    let mut starts = BTreeMap::new();
    for name in names {
        starts.insert(text.len(), name.as_ref());
        text.push_str(&format!("      {}: x\n", yaml::scalar(name.as_ref())));
    }
    let name_at = |error: &Diagnostic| {
        let start = error.place?.start;
        starts.range(..=start).next_back().map(|(_, name)| (*name).to_owned())
    };
    let refusals = errors(&text, env).into_iter().filter(|it| it.code == "C-05");
    refusals.filter_map(|error| Some(RefusedName { name: name_at(&error)?, hint: error.hint })).collect()
}

fn errors(text: &str, env: &Env) -> Vec<Diagnostic> {
    let (_, diagnostics) = load(text, env);
    let items = diagnostics.items().iter();
    items.filter(|it| it.severity == Severity::Error).cloned().collect()
}

fn reason(error: Diagnostic) -> Reason {
    Reason { message: error.message, hint: error.hint, missing_grant: error.missing_grant }
}

impl Files for OverlayFiles {
    fn locate(&self, path: &str) -> Result<PathBuf, FileError> {
        match self.new.contains_key(path) {
            true => Ok(self.folder.join(path)),
            false => self.existing.locate(path),
        }
    }

    fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, FileError> {
        match self.new.get(path) {
            Some(text) if text.len() as u64 > most => Err(FileError::TooLarge(most)),
            Some(text) => Ok(text.clone().into_bytes()),
            None => self.existing.read(path, most),
        }
    }

    fn find_on_path(&self, name: &str, path: &str) -> Option<PathBuf> {
        self.existing.find_on_path(name, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_config::Grants;
    use wharf_runtime::Glob;

    #[test]
    fn refused_variable_names_are_found() {
        let mut env = Env::bare();
        let names: Vec<String> = (0..250)
            .map(|it| if it % 10 == 0 { format!("NPM_CONFIG_{it}") } else { format!("FINE_{it}") })
            .chain(["<<".into(), "path".into(), "a: b".into(), "HTTPS_PROXY".into()])
            .collect();
        let refused = refused_names(&names, &env);
        let found: Vec<&str> = refused.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(found.len(), 27);
        assert_eq!(found[..2], ["NPM_CONFIG_0", "NPM_CONFIG_10"]);
        assert_eq!(found[25..], ["path", "HTTPS_PROXY"]);
        assert!(refused[0].hint.as_deref().is_some_and(|it| it.contains("wharf.toml")));
        env.grants = Grants { environment: vec![Glob::new("PATH")], ..Grants::default() };
        assert!(refused_names(&["path"], &env).is_empty());
    }
}
