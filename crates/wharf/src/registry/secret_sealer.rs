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
use wharf_config::{FileError, read_regular};

/// Version of the stored format.
const VERSION: u8 = 1;

/// Length of the key, in bytes.
const KEY_BYTES: usize = 32;

/// Names and values of secrets.
pub(crate) type Secrets = BTreeMap<String, String>;

/// Seals and opens secrets with the key in this file.
#[derive(Clone, Debug)]
pub(crate) struct SecretSealer(Option<PathBuf>);

/// The reason why secrets cannot be sealed or opened. It reveals neither the secrets nor the path of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealError {
    /// There is no state directory.
    NoStateFolder,
    /// There is no key file.
    NoKey,
    /// Other users can read or change the key file.
    Exposed,
    /// The key file cannot be read or created, or has the wrong length.
    Unusable,
    /// The secrets were sealed with another key or for another source, or were modified.
    WrongKey,
}

impl SecretSealer {
    /// Uses the key in this file.
    pub(crate) fn new(key_file: Option<PathBuf>) -> SecretSealer {
        SecretSealer(key_file)
    }

    /// Seals the secrets of a source. Returns `None` if there are none. Generates the key if it is missing.
    pub(crate) fn seal(&self, id: &str, secrets: &Secrets) -> Result<Option<Vec<u8>>, SealError> {
        if secrets.is_empty() {
            return Ok(None);
        }
        let path = self.0.as_deref().ok_or(SealError::NoStateFolder)?;
        let key = match read_key(path) {
            Err(SealError::NoKey) => create_key(path)?,
            read => read?,
        };
        let mut sealed = serde_json::to_vec(secrets).map_err(|_| SealError::Unusable)?;
        let nonce = cipher(&key)?.seal_in_place_append_tag(associated_data(id), &mut sealed);
        let nonce = nonce.map_err(|_| SealError::Unusable)?;
        Ok(Some([&[VERSION], nonce.as_ref().as_slice(), &sealed].concat()))
    }

    /// Opens the secrets of a source.
    pub(crate) fn open(&self, id: &str, sealed: Option<&[u8]>) -> Result<Secrets, SealError> {
        let Some(sealed) = sealed else { return Ok(Secrets::new()) };
        let key = read_key(self.0.as_deref().ok_or(SealError::NoStateFolder)?)?;
        let (version, rest) = sealed.split_first().ok_or(SealError::WrongKey)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN).ok_or(SealError::WrongKey)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::WrongKey)?;
        if *version != VERSION {
            return Err(SealError::WrongKey);
        }
        let mut text = sealed.to_vec();
        let text = cipher(&key)?.open_in_place(nonce, associated_data(id), &mut text);
        serde_json::from_slice(text.map_err(|_| SealError::WrongKey)?).map_err(|_| SealError::WrongKey)
    }
}

fn cipher(key: &[u8]) -> Result<RandomizedNonceKey, SealError> {
    RandomizedNonceKey::new(&AES_256_GCM, key).map_err(|_| SealError::Unusable)
}

fn associated_data(id: &str) -> Aad<Vec<u8>> {
    Aad::from([&[VERSION], b"wharf source ".as_slice(), id.as_bytes()].concat())
}

fn read_key(path: &Path) -> Result<Vec<u8>, SealError> {
    let key = read_regular(path, KEY_BYTES as u64).map_err(|trouble| match trouble {
        FileError::Missing => SealError::NoKey,
        _ => SealError::Unusable,
    })?;
    match () {
        () if !is_private(path) => Err(SealError::Exposed),
        () if key.len() != KEY_BYTES => Err(SealError::Unusable),
        () => Ok(key),
    }
}

fn create_key(path: &Path) -> Result<Vec<u8>, SealError> {
    let made = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        make_private_folder(folder)?;
        let mut key = [0; KEY_BYTES];
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
        tracing::error!(target: "wharf::sources", "the encryption key cannot be created in {}: {error}", path.display());
        SealError::Unusable
    })?;
    read_key(path)
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SealError::NoStateFolder => "there is no state directory for the encryption key",
            SealError::NoKey => "the encryption key of its secrets is missing from the state directory",
            SealError::Exposed => "the encryption key can be read by others",
            SealError::Unusable => "the encryption key cannot be used",
            SealError::WrongKey => "its secrets were encrypted with another key",
        })
    }
}

impl SealError {
    /// A hint on how to fix it.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            SealError::NoStateFolder => "set WHARF_HOME",
            SealError::Exposed => "run `chmod 600` on `secrets.key` in the state directory",
            SealError::Unusable => {
                "check `secrets.key` in the state directory: it must be a file of 32 bytes"
            }
            SealError::NoKey | SealError::WrongKey => {
                "restore the old `secrets.key` in the state directory, or set the secrets again with PATCH"
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
    fn sealed_secrets_open_only_for_their_source() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("state/secrets.key");
        let sealer = SecretSealer::new(Some(path.clone()));
        assert_eq!(sealer.seal("a", &Secrets::new()), Ok(None));
        assert!(!path.exists(), "nothing was to be kept yet");
        let sealed = sealer.seal("a", &secrets()).expect("it is sealed").expect("there is something");
        assert!(!String::from_utf8_lossy(&sealed).contains("hunter2"));
        assert_ne!(sealer.seal("a", &secrets()), Ok(Some(sealed.clone())), "each has a nonce of its own");
        assert_eq!(sealer.open("a", Some(&sealed)), Ok(secrets()));
        assert_eq!(sealer.open("a", None), Ok(Secrets::new()));
        assert_eq!(sealer.open("b", Some(&sealed)), Err(SealError::WrongKey));
        for at in [0, 1, 13, sealed.len() - 1] {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert_eq!(sealer.open("a", Some(&other)), Err(SealError::WrongKey), "{at}");
        }
        assert_eq!(sealer.open("a", Some(&sealed[..7])), Err(SealError::WrongKey));
        fs::remove_file(&path).expect("it was there");
        assert_eq!(sealer.open("a", Some(&sealed)), Err(SealError::NoKey));
        sealer.seal("b", &secrets()).expect("another key is made");
        assert_eq!(sealer.open("a", Some(&sealed)), Err(SealError::WrongKey));
    }

    #[cfg(unix)]
    #[test]
    fn key_readable_by_others_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("secrets.key");
        let sealer = SecretSealer::new(Some(path.clone()));
        let sealed = sealer.seal("a", &secrets()).expect("it is sealed");
        let mode = fs::metadata(&path).expect("a key").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
        assert_eq!(sealer.open("a", sealed.as_deref()), Err(SealError::Exposed));
        assert_eq!(sealer.seal("a", &secrets()), Err(SealError::Exposed));
        assert_eq!(SecretSealer::new(None).seal("a", &secrets()), Err(SealError::NoStateFolder));
    }
}
