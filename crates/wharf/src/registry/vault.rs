//! Encrypts the secrets of registered sources for the database. The key is not stored there.
//!
//! Uses AES-256-GCM. The stored value is a version, a fresh nonce and the ciphertext. The source's id is
//! authenticated as associated data, so that the secrets of one source cannot be moved to another. The key is in a
//! file that only its owner can read; it is generated when the first secret is stored.

use crate::state_folder::{is_private, make_private_folder};
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use std::{
    collections::BTreeMap,
    fmt, io,
    io::Write,
    path::{Path, PathBuf},
};
use wharf_config::{FileTrouble, read_regular};

/// Version of the stored format.
const VERSION: u8 = 1;

/// Length of the key, in bytes.
const KEY: usize = 32;

/// Names and values of secrets.
pub(crate) type Secrets = BTreeMap<String, String>;

/// Seals and opens secrets with the key in this file.
#[derive(Clone, Debug)]
pub(crate) struct Vault(Option<PathBuf>);

/// The reason why secrets cannot be sealed or opened. It reveals neither the secrets nor the path of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VaultError {
    /// There is no state directory.
    Nowhere,
    /// There is no key file.
    NoKey,
    /// Other users can read or change the key file.
    Exposed,
    /// The key file cannot be read or created, or has the wrong length.
    Unusable,
    /// The secrets were sealed with another key or for another source, or were modified.
    NotOurs,
}

impl Vault {
    /// Uses the key in this file.
    pub(crate) fn new(key_file: Option<PathBuf>) -> Vault {
        Vault(key_file)
    }

    /// Seals the secrets of a source. Returns `None` if there are none. Generates the key if it is missing.
    pub(crate) fn seal(&self, id: &str, secrets: &Secrets) -> Result<Option<Vec<u8>>, VaultError> {
        if secrets.is_empty() {
            return Ok(None);
        }
        let path = self.0.as_deref().ok_or(VaultError::Nowhere)?;
        let key = match read_key(path) {
            Err(VaultError::NoKey) => make_key(path)?,
            read => read?,
        };
        let mut sealed = serde_json::to_vec(secrets).map_err(|_| VaultError::Unusable)?;
        let nonce = cipher(&key)?.seal_in_place_append_tag(about(id), &mut sealed);
        let nonce = nonce.map_err(|_| VaultError::Unusable)?;
        Ok(Some([&[VERSION], nonce.as_ref().as_slice(), &sealed].concat()))
    }

    /// Opens the secrets of a source.
    pub(crate) fn open(&self, id: &str, sealed: Option<&[u8]>) -> Result<Secrets, VaultError> {
        let Some(sealed) = sealed else { return Ok(Secrets::new()) };
        let key = read_key(self.0.as_deref().ok_or(VaultError::Nowhere)?)?;
        let (version, rest) = sealed.split_first().ok_or(VaultError::NotOurs)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN).ok_or(VaultError::NotOurs)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::NotOurs)?;
        if *version != VERSION {
            return Err(VaultError::NotOurs);
        }
        let mut text = sealed.to_vec();
        let text = cipher(&key)?.open_in_place(nonce, about(id), &mut text);
        serde_json::from_slice(text.map_err(|_| VaultError::NotOurs)?).map_err(|_| VaultError::NotOurs)
    }
}

fn cipher(key: &[u8]) -> Result<RandomizedNonceKey, VaultError> {
    RandomizedNonceKey::new(&AES_256_GCM, key).map_err(|_| VaultError::Unusable)
}

fn about(id: &str) -> Aad<Vec<u8>> {
    Aad::from([&[VERSION], b"wharf source ".as_slice(), id.as_bytes()].concat())
}

fn read_key(path: &Path) -> Result<Vec<u8>, VaultError> {
    let key = read_regular(path, KEY as u64).map_err(|trouble| match trouble {
        FileTrouble::Missing => VaultError::NoKey,
        _ => VaultError::Unusable,
    })?;
    match () {
        () if !is_private(path) => Err(VaultError::Exposed),
        () if key.len() != KEY => Err(VaultError::Unusable),
        () => Ok(key),
    }
}

fn make_key(path: &Path) -> Result<Vec<u8>, VaultError> {
    let made = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        make_private_folder(folder)?;
        let mut key = [0; KEY];
        aws_lc_rs::rand::fill(&mut key).map_err(|_| io::Error::other("no randomness"))?;
        // A temporary file is readable by its owner only, and renaming it never exposes a partial key.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&key)?;
        file.as_file().sync_all()?;
        // If another process created the file first, its key is used.
        let _ = file.persist_noclobber(path);
        Ok(())
    };
    made().map_err(|error| {
        tracing::error!(target: "wharf::sources", "the key for secrets cannot be made in {}: {error}", path.display());
        VaultError::Unusable
    })?;
    read_key(path)
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VaultError::Nowhere => "there is no state directory for the key of secrets",
            VaultError::NoKey => "the key of its secrets is missing from the state directory",
            VaultError::Exposed => "the key of secrets can be read by others",
            VaultError::Unusable => "the key of secrets cannot be used",
            VaultError::NotOurs => "its secrets were sealed with another key",
        })
    }
}

impl VaultError {
    /// A hint on how to fix it.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            VaultError::Nowhere => "set WHARF_HOME",
            VaultError::Exposed => "chmod 600 `secrets.key` in the state directory",
            VaultError::Unusable => "look at `secrets.key` in the state directory: it is a file of 32 bytes",
            VaultError::NoKey | VaultError::NotOurs => {
                "put the old `secrets.key` back into the state directory, or give the secrets anew with PATCH"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn secrets() -> Secrets {
        [("TOKEN".to_owned(), "hunter2hunter2".to_owned())].into()
    }

    #[test]
    fn what_is_sealed_is_read_by_its_source_alone() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("state/secrets.key");
        let vault = Vault::new(Some(path.clone()));
        assert_eq!(vault.seal("a", &Secrets::new()), Ok(None));
        assert!(!path.exists(), "nothing was to be kept yet");
        let sealed = vault.seal("a", &secrets()).expect("it is sealed").expect("there is something");
        assert!(!String::from_utf8_lossy(&sealed).contains("hunter2"));
        assert_ne!(vault.seal("a", &secrets()), Ok(Some(sealed.clone())), "each has a nonce of its own");
        assert_eq!(vault.open("a", Some(&sealed)), Ok(secrets()));
        assert_eq!(vault.open("a", None), Ok(Secrets::new()));
        assert_eq!(vault.open("b", Some(&sealed)), Err(VaultError::NotOurs));
        for at in [0, 1, 13, sealed.len() - 1] {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert_eq!(vault.open("a", Some(&other)), Err(VaultError::NotOurs), "{at}");
        }
        assert_eq!(vault.open("a", Some(&sealed[..7])), Err(VaultError::NotOurs));
        fs::remove_file(&path).expect("it was there");
        assert_eq!(vault.open("a", Some(&sealed)), Err(VaultError::NoKey));
        vault.seal("b", &secrets()).expect("another key is made");
        assert_eq!(vault.open("a", Some(&sealed)), Err(VaultError::NotOurs));
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_none() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("secrets.key");
        let vault = Vault::new(Some(path.clone()));
        let sealed = vault.seal("a", &secrets()).expect("it is sealed");
        let mode = fs::metadata(&path).expect("a key").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
        assert_eq!(vault.open("a", sealed.as_deref()), Err(VaultError::Exposed));
        assert_eq!(vault.seal("a", &secrets()), Err(VaultError::Exposed));
        assert_eq!(Vault::new(None).seal("a", &secrets()), Err(VaultError::Nowhere));
    }
}
