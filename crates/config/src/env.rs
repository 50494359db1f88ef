//! Defines the inputs of the configuration loader other than the file itself.

use super::{
    files::{Files, NoFiles},
    grants::Grants,
};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// Inputs for loading a configuration. Only the program builds it; the loader reads no other environment, file or
/// global.
#[derive(Clone)]
pub struct Env {
    /// Name of the file in messages.
    pub file: String,
    /// Absolute path of the agent file's folder: the value of `${workspaceFolder}` and the base of relative paths.
    pub folder: PathBuf,
    /// The user's home folder: the value of `${userHome}`.
    pub home: Option<PathBuf>,
    /// Environment of the process.
    pub variables: BTreeMap<String, String>,
    /// Reads the files that the agent file names.
    pub files: Arc<dyn Files + Send + Sync>,
    /// Exceptions from the rules that the operator grants.
    pub grants: Grants,
    /// Origin of the configuration, which determines how far it is trusted.
    pub origin: Origin,
    /// Values for the variables of a plugin that apply to one call.
    pub call_values: BTreeMap<String, String>,
    /// How to use a lock file beside the agent file.
    pub lock: LockUse,
    /// Whether a variable that is not set gets the value `replay-NAME`, because nothing is started with it.
    pub assumes_variables: bool,
}

/// How to use a lock file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockUse {
    /// Start the locked versions, and check everything against the lock.
    #[default]
    Enforce,
    /// Start the locked versions only, for commands that compare by themselves.
    PinOnly,
    /// Do not read it.
    Ignore,
}

/// Origin of a configuration, which determines how far it is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A file of the operator.
    #[default]
    File,
    /// A client of the REST API. It may use no files and no variables of this machine, no private addresses, and no
    /// processes unless the operator allows them.
    Rest,
    /// A plugin that was registered over REST and whose folder lies under one of the operator's plugin roots. It may
    /// also use files in its own folder.
    Plugin,
}

impl Env {
    /// Returns an environment without variables, files and grants. Its folder need not exist.
    pub fn bare() -> Env {
        Env {
            file: "agent.yaml".to_owned(),
            folder: PathBuf::from("/agent"),
            home: None,
            variables: BTreeMap::new(),
            files: Arc::new(NoFiles),
            grants: Grants::default(),
            origin: Origin::File,
            call_values: BTreeMap::new(),
            lock: LockUse::Enforce,
            assumes_variables: false,
        }
    }
}

impl Env {
    /// Returns the name of wharf.toml for messages. Only the author of a file sees its path; clients that register
    /// sources do not.
    pub(crate) fn settings_file(&self) -> String {
        let file = self.grants.file.as_ref().filter(|_| !self.origin.is_registered());
        file.map_or_else(|| "wharf.toml".to_owned(), |it| it.display().to_string())
    }
}

impl Origin {
    /// Returns whether the configuration was registered at run time.
    pub fn is_registered(self) -> bool {
        self != Origin::File
    }
}
