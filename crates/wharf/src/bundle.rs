//! Reads MCP bundles (`.mcpb`): a zip file with a server and a `manifest.json` that says how to start it.
//!
//! A bundle is untrusted. Unpacking it runs nothing; the entry that results from its manifest passes the same checks
//! as the servers of another client.

mod archive;
mod manifest;

use crate::{
    import::{Client, ClientFile},
    state_folder::make_private_folder,
};
use archive::Archive;
use manifest::BundleManifest;
use sha2::{Digest, Sha256};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use wharf_config::read_regular;

/// Maximum size of a bundle, in bytes.
const MAX_BUNDLE_BYTES: u64 = 256 << 20;

/// File name of the manifest within a bundle.
const MANIFEST: &str = "manifest.json";

/// Maximum size of a manifest, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// An unpacked bundle.
pub(crate) struct Bundle {
    /// Folder with the unpacked files.
    pub(crate) folder: PathBuf,
    /// Whether this call created the folder.
    is_new: bool,
    /// The server in the form of VS Code's `mcp.json`, whose `inputs` are the values that the user has to give.
    servers: String,
    /// Optional values that the entry leaves out.
    pub(crate) optional: Vec<String>,
}

/// Returns whether a file is a bundle by its name. `.dxt` is the older name of the format.
pub(crate) fn is_bundle(path: &Path) -> bool {
    path.extension().is_some_and(|it| it.eq_ignore_ascii_case("mcpb") || it.eq_ignore_ascii_case("dxt"))
}

impl Bundle {
    /// Unpacks a bundle into a folder of its own below `bundles`. `name` replaces the name in its manifest. The error
    /// is a sentence about the file.
    pub(crate) fn open(path: &Path, bundles: &Path, name: Option<&str>) -> Result<Bundle, String> {
        let bytes = read_regular(path, MAX_BUNDLE_BYTES).map_err(|error| error.to_string())?;
        let archive = Archive::read(&bytes)?;
        let text = archive.file(MANIFEST, MAX_MANIFEST_BYTES)?;
        let manifest = BundleManifest::read(&text.ok_or("has no 'manifest.json'")?)?;
        // The same bundle is unpacked once. Another one never replaces files of a server that may be running.
        let digest: String = Sha256::digest(&bytes).iter().take(6).map(|it| format!("{it:02x}")).collect();
        let folder = bundles.join(format!("{}-{digest}", manifest.folder_name()));
        let is_new = !folder.exists();
        if is_new {
            unpack(&archive, bundles, &folder)?;
        }
        let (servers, optional) = manifest.servers(&folder, name);
        Ok(Bundle { folder, is_new, servers, optional })
    }

    /// Returns the server in a form that the import reads.
    pub(crate) fn client_file(&self, shown: &str) -> ClientFile {
        ClientFile { text: self.servers.clone(), path: PathBuf::from(shown), client: Some(Client::VsCode) }
    }

    /// Removes the files again, if they were not there before.
    pub(crate) fn discard(self) {
        if self.is_new {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Unpacks into a temporary folder first, so that an incomplete bundle is never used.
fn unpack(archive: &Archive<'_>, bundles: &Path, folder: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot be unpacked to '{}': {error}", bundles.display());
    make_private_folder(bundles).map_err(failed)?;
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let temporary = builder.prefix(".unpacking-").tempdir_in(bundles).map_err(failed)?;
    archive.unpack(temporary.path())?;
    fs::rename(temporary.path(), folder).map_err(failed)?;
    // The folder is not there any more under its temporary name.
    let _ = temporary.keep();
    Ok(())
}
