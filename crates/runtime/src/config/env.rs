//! Everything the outside world may tell the configuration.

use super::{
    files::{Files, NoFiles},
    grants::Grants,
};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// What a file is loaded with. The program builds it; nothing below the program looks anywhere else.
#[derive(Clone)]
pub struct Env {
    /// The name of the file in messages.
    pub file: String,
    /// The folder of the agent file, absolute: `${workspaceFolder}`, and what relative paths are relative to.
    pub folder: PathBuf,
    /// The user's home: `${userHome}`.
    pub home: Option<PathBuf>,
    /// The environment of the process.
    pub variables: BTreeMap<String, String>,
    /// Reads the files that the agent file names.
    pub files: Arc<dyn Files + Send + Sync>,
    /// What the operator allows beyond the rules.
    pub grants: Grants,
    /// Whose word the configuration is.
    pub origin: Origin,
}

/// Whose word a configuration is, and so how far it is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A file of the operator's.
    #[default]
    File,
    /// Somebody who came in over REST. Nothing of this machine is theirs: no file, no variable, no address inside our
    /// network, and no process unless the operator allows that.
    Rest,
    /// The same, for a plugin whose folder lies under a root of the operator's: what is in the folder is its own.
    Plugin,
}

impl Env {
    /// No variables, no files, no grants, and a folder that need not exist.
    pub fn bare() -> Env {
        Env {
            file: "agent.yaml".to_owned(),
            folder: PathBuf::from("/agent"),
            home: None,
            variables: BTreeMap::new(),
            files: Arc::new(NoFiles),
            grants: Grants::default(),
            origin: Origin::File,
        }
    }
}

impl Env {
    /// The wharf.toml in which an operator grants something, as messages name it. Only the file's own author learns
    /// where it lies.
    pub(crate) fn settings_file(&self) -> String {
        let file = self.grants.file.as_ref().filter(|_| !self.origin.is_registered());
        file.map_or_else(|| "wharf.toml".to_owned(), |it| it.display().to_string())
    }
}

impl Origin {
    /// Whether it was registered while the program runs.
    pub fn is_registered(self) -> bool {
        self != Origin::File
    }
}
