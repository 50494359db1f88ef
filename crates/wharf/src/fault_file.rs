//! Reads the faults to inject from a file: `--faults FILE`.

use crate::command_error::CommandError;
use std::path::Path;
use wharf_config::{FaultRules, MAX_FILE_BYTES, load_faults, read_regular};

/// Reads a file of faults.
pub(crate) fn read_fault_file(path: &Path) -> Result<FaultRules, CommandError> {
    let name = path.display().to_string();
    let bytes = read_regular(path, MAX_FILE_BYTES)
        .map_err(|error| CommandError::usage(&format!("{name} cannot be used: it {error}")))?;
    let (rules, diagnostics) = load_faults(bytes, &name);
    rules.ok_or_else(|| {
        let errors = diagnostics.render(false);
        let errors = errors.trim_end();
        CommandError::usage(errors.strip_prefix("error: ").unwrap_or(errors))
    })
}
