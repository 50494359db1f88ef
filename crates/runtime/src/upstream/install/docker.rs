//! Asks docker for an image, and remembers in a small file of ours that it is there.
//!
//! Asking costs a process for each start of a server, so it is asked once. An image that somebody removed afterwards is
//! pulled by `docker run` itself; should that take too long, the file is removed, and docker is asked again.

use super::Install;
use crate::{Text, config::Download};
use sha2::{Digest, Sha256};
use std::{ffi::OsString, fs, path::PathBuf};

/// `docker image inspect IMAGE`, which succeeds where the image is there.
pub(super) fn inspect(image: &Text) -> Vec<OsString> {
    ["image", "inspect", image.expose()].map(OsString::from).to_vec()
}

/// `docker pull [--platform PLATFORM] IMAGE`.
pub(super) fn pull(image: &Text, platform: Option<&Text>) -> Vec<OsString> {
    let platform = platform.into_iter().flat_map(|it| ["--platform", it.expose()]);
    ["pull"].into_iter().chain(platform).chain([image.expose()]).map(OsString::from).collect()
}

impl Install<'_> {
    /// The file that says that this download is there.
    fn mark_path(&self) -> PathBuf {
        let hash = Sha256::digest(self.key());
        let name: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.ground.scratch.join(format!("downloaded-{name}"))
    }

    pub(super) fn is_marked(&self) -> bool {
        self.mark_path().is_file()
    }

    /// Remembers that the download is there. Without the file it is only asked for again.
    pub(super) fn mark(&self) {
        if !matches!(self.download, Download::Npm { .. }) {
            let _ = fs::write(self.mark_path(), "");
        }
    }

    pub(super) fn unmark(&self) {
        let _ = fs::remove_file(self.mark_path());
    }
}
