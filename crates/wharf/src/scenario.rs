//! Tests of an agent in files: `*.test.yaml`. Finds and loads them, and judges what happened.

mod expect;
mod junit;

pub(crate) use expect::{MadeCall, ScenarioEvents, check};
pub(crate) use junit::to_junit;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use wharf_config::{MAX_FILE_BYTES, Scenario, load_scenario, read_regular};

/// End of the names of scenario files.
const SUFFIX: &str = ".test.yaml";

/// Maximum depth of folders that are searched.
const MAX_DEPTH: usize = 32;

/// A scenario and its file.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioFile {
    /// Path for people, as it was found.
    pub(crate) path: PathBuf,
    /// The scenario, or the text of the errors in it.
    pub(crate) scenario: Result<Scenario, String>,
}

/// Result of one scenario.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioResult {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) verdict: ScenarioVerdict,
    /// Parts of the recording that were not used, and the like.
    pub(crate) notes: Vec<String>,
    pub(crate) took: Duration,
}

/// Verdict about one scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScenarioVerdict {
    /// Everything is as expected.
    Passed,
    /// Something is not as expected.
    Failed(Vec<String>),
    /// The scenario, the agent file or the recording cannot be used.
    Unusable(String),
}

impl ScenarioFile {
    /// Loads a scenario.
    pub(crate) fn load(path: &Path) -> ScenarioFile {
        let name = path.display().to_string();
        let scenario = match read_regular(path, MAX_FILE_BYTES) {
            Err(error) => Err(format!("{name} {error}")),
            Ok(bytes) => {
                let (scenario, diagnostics) = load_scenario(bytes, &name);
                scenario.ok_or_else(|| diagnostics.render(false).trim_end().to_owned())
            }
        };
        ScenarioFile { path: path.to_owned(), scenario }
    }

    /// Returns the name for people: that of the scenario, or its file.
    pub(crate) fn name(&self) -> String {
        let own = self.scenario.as_ref().ok().and_then(|it| it.name.clone());
        own.unwrap_or_else(|| self.path.display().to_string())
    }

    /// Returns the folder that the paths in the scenario are relative to.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

/// Finds the scenarios in files and folders, in the order of their names.
pub(crate) fn find_scenarios(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        let unreadable = |error: io::Error| format!("{} cannot be read: {error}", path.display());
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            search(path, MAX_DEPTH, &mut found).map_err(unreadable)?;
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn search(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = if folder == Path::new(".") { PathBuf::from(&*name) } else { entry.path() };
        let kind = entry.file_type()?;
        let is_source = !name.starts_with('.') && name != "node_modules" && name != "target";
        if kind.is_dir() && is_source && depth > 0 {
            search(&path, depth - 1, found)?;
        } else if kind.is_file() && name.ends_with(SUFFIX) {
            found.push(path);
        }
    }
    Ok(())
}
