//! Opens the built-in servers as processes of the program `wharf`.
//!
//! The Todo server needs a database, which this crate does not have. Library users without the program pass their own
//! [`Builtins`].

use crate::upstream::Builtins;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};
use wharf_config::Builtin;
use wharf_mcp::{Failure, Opener, Opening, stdio::Command};

/// Variables of this process that `wharf` needs to find its state.
const INHERITED_VARIABLES: [&str; 7] =
    ["HOME", "PATH", "TMPDIR", "APPDATA", "XDG_DATA_HOME", "WHARF_HOME", "WHARF_DATABASE"];

/// Opens `builtin:todo` by starting `wharf todo`.
#[derive(Clone, Debug)]
pub struct WharfProgram {
    program: Option<PathBuf>,
    variables: BTreeMap<String, String>,
    folder: PathBuf,
}

impl WharfProgram {
    /// Uses the program at this path, run in `folder`, which is created if necessary.
    pub fn at(program: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> WharfProgram {
        WharfProgram::new(Some(program.into()), folder.into(), &BTreeMap::new())
    }

    /// Uses the program, if there is one, with the variables it needs.
    pub(crate) fn new(
        program: Option<PathBuf>,
        folder: PathBuf,
        variables: &BTreeMap<String, String>,
    ) -> WharfProgram {
        let needed = |name: &str| Some((name.to_owned(), variables.get(name)?.clone()));
        WharfProgram {
            program,
            folder,
            variables: INHERITED_VARIABLES.into_iter().filter_map(needed).collect(),
        }
    }

    /// Sets a variable of its environment, for example `WHARF_HOME`.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> WharfProgram {
        self.variables.insert(name.into(), value.into());
        self
    }

    fn command(&self, program: &Path) -> Result<Command, Failure> {
        let unusable = |error| {
            let folder = self.folder.display();
            Failure::connect(format!("could not make the folder `{folder}`: {error}"))
        };
        fs::create_dir_all(&self.folder).map_err(unusable)?;
        let mut command = Command::new(program, &self.folder);
        command.args = vec![OsString::from("todo")];
        command.env = self.variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Ok(command)
    }
}

impl Builtins for WharfProgram {
    fn opener(&self, builtin: Builtin) -> Box<dyn Opener> {
        match builtin {
            Builtin::Todo => Box::new(self.clone()),
        }
    }
}

impl Opener for WharfProgram {
    fn open(&self) -> Opening<'_> {
        Box::pin(async {
            let missing = || Failure::connect("`builtin:todo` is served by `wharf`, which is not on PATH");
            let program = self.program.as_deref().ok_or_else(missing)?;
            self.command(program)?.open().await
        })
    }
}
