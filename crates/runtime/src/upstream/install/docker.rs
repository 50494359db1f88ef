//! Builds docker commands for images, and remembers in a marker file that a download is present.
//!
//! Asking docker costs a process for each start of a server, so it is asked once. If the image is removed later,
//! `docker run` pulls it; if that takes too long, the marker is removed and docker is asked again.

use super::Install;
use crate::MaskedString;
use sha2::{Digest, Sha256};
use std::{ffi::OsString, fs, path::PathBuf};
use wharf_config::Download;

/// Builds `docker image inspect IMAGE`, which succeeds if the image is present.
pub(super) fn inspect(image: &MaskedString) -> Vec<OsString> {
    ["image", "inspect", image.expose()].map(OsString::from).to_vec()
}

/// Builds `docker pull [--platform PLATFORM] IMAGE`.
pub(super) fn pull(image: &MaskedString, platform: Option<&MaskedString>) -> Vec<OsString> {
    let platform = platform.into_iter().flat_map(|it| ["--platform", it.expose()]);
    ["pull"].into_iter().chain(platform).chain([image.expose()]).map(OsString::from).collect()
}

impl Install<'_> {
    /// Returns the path of the marker file of this download.
    fn mark_path(&self) -> PathBuf {
        let hash = Sha256::digest(self.key());
        let name: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.context.scratch.join(format!("downloaded-{name}"))
    }

    pub(super) fn is_marked(&self) -> bool {
        self.mark_path().is_file()
    }

    /// Creates the marker file. If that fails, the next start only checks again.
    pub(super) fn mark(&self) {
        if !matches!(self.download, Download::Npm { .. }) {
            let _ = fs::write(self.mark_path(), "");
        }
    }

    pub(super) fn unmark(&self) {
        let _ = fs::remove_file(self.mark_path());
    }
}
