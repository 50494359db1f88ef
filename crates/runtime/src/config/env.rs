//! Everything the outside world may tell the configuration.

use super::{
    files::{Files, NoFiles},
    grants::Grants,
};
use std::{collections::BTreeMap, path::PathBuf};

/// What a file is loaded with. The program builds it; nothing below the program looks anywhere else.
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
    pub files: Box<dyn Files + Send + Sync>,
    /// What the operator allows beyond the rules.
    pub grants: Grants,
}

impl Env {
    /// No variables, no files, no grants, and a folder that need not exist.
    pub fn bare() -> Env {
        Env {
            file: "agent.yaml".to_owned(),
            folder: PathBuf::from("/agent"),
            home: None,
            variables: BTreeMap::new(),
            files: Box::new(NoFiles),
            grants: Grants::default(),
        }
    }
}
