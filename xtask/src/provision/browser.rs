//! Finds Chromium, or installs it from the system's packages.

use std::env;
use std::path::PathBuf;

use super::system;
use crate::failure::Failure;

const PROGRAMS: [&str; 4] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/snap/bin/chromium"];

/// Returns the browser that `CHROMIUM` names, or an installed one.
pub(crate) fn chromium() -> Option<PathBuf> {
    let named = env::var_os("CHROMIUM").filter(|it| !it.is_empty()).map(PathBuf::from);
    named.into_iter().chain(PROGRAMS.map(PathBuf::from)).find(|it| it.is_file())
}

pub(crate) fn install_chromium() -> Result<(), Failure> {
    system::install(&["chromium"])
}
