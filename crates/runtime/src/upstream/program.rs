//! Finds the program of a launch on the operator's PATH.

use crate::config::{Launch, Program};
use std::{
    env::split_paths,
    path::{Path, PathBuf},
};
use wharf_mcp::Failure;

/// Returns the absolute path of the program, searched on the PATH of the child's environment, which is the
/// operator's.
pub(super) fn find(launch: &Launch) -> Result<PathBuf, Failure> {
    let names = match &launch.program {
        Program::Granted(path) => return Ok(path.clone()),
        Program::Launcher(launcher) => &[launcher.as_str()][..],
        Program::Interpreter(interpreter) => interpreter.programs(),
    };
    let path = launch.env.0.get("PATH").map(|it| it.value.expose()).unwrap_or_default();
    names.iter().find_map(|name| find_program(name, path)).ok_or_else(|| {
        let name = names[0];
        let looked = if path.is_empty() { "PATH is empty".to_owned() } else { format!("looked in {path}") };
        Failure::connect(format!("there is no `{name}` on PATH ({looked})"))
    })
}

/// Finds the first executable with this name. Ignores relative directories on PATH, whose meaning depends on the
/// current directory.
pub fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    let names = if cfg!(windows) {
        vec![format!("{name}.exe"), format!("{name}.cmd")]
    } else {
        vec![name.to_owned()]
    };
    split_paths(path)
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>())
        .find(|it| is_executable(it))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
