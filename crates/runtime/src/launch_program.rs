//! Finds the program of a launch on the operator's PATH.

use std::path::PathBuf;
use wharf_config::{Launch, Program, find_program};
use wharf_mcp::Failure;

/// Returns the absolute path of the program, searched on the PATH of the child's environment, which is the
/// operator's.
pub(crate) fn find_program_of(launch: &Launch) -> Result<PathBuf, Failure> {
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
