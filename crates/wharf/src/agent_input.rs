//! Reads the agent file from a path, or from standard input for `-`.
//!
//! Reads standard input once and caches it, so that loading the agent file again returns the same bytes.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::OnceLock,
};
use wharf_config::{Diagnostics, FileError, MAX_FILE_BYTES, read_regular};

/// The file name that means standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Checks whether a path means standard input.
pub(crate) fn is_standard_input(file: &Path) -> bool {
    file == Path::new(STANDARD_INPUT)
}

/// Returns the name of the agent file for messages.
pub(crate) fn display_name(file: &Path) -> String {
    if is_standard_input(file) { "standard input".to_owned() } else { file.display().to_string() }
}

/// Reads the agent file, or returns diagnostics with the reason why it cannot be read.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, Diagnostics> {
    let display_name = display_name(file);
    if is_standard_input(file) {
        return read_standard_input().map_err(|error| {
            let message = format!("ConfigError: {display_name} cannot be read: {error}");
            Diagnostics::unreadable(&display_name, message, None)
        });
    }
    read_regular(file, MAX_FILE_BYTES).map_err(|trouble| {
        let hint = match (&trouble, find_other_extension(file)) {
            (FileError::Missing, Some(other)) => {
                let other = other.display();
                Some(format!("there is '{other}': rename it, or use `-f {other}`"))
            }
            (FileError::Missing, None) => {
                Some("`wharf init` writes one; `-f FILE` selects another file".to_owned())
            }
            _ => None,
        };
        Diagnostics::unreadable(&display_name, format!("ConfigError: '{display_name}' {trouble}"), hint)
    })
}

fn read_standard_input() -> io::Result<Vec<u8>> {
    static READ: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(bytes) = READ.get() {
        return Ok(bytes.clone());
    }
    let mut bytes = Vec::new();
    // Read one byte more than the limit, so that a file that is too long is detected.
    io::stdin().lock().take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(READ.get_or_init(|| bytes).clone())
}

/// Returns the path with `.yml` instead of `.yaml`, or vice versa, if that file exists.
fn find_other_extension(file: &Path) -> Option<PathBuf> {
    let other = match file.extension()?.to_str()? {
        "yaml" => "yml",
        "yml" => "yaml",
        _ => return None,
    };
    Some(file.with_extension(other)).filter(|it| it.is_file())
}
