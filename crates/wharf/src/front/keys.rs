//! The token that opens the door. It is made at the first start and kept in a file that only its owner can read.

use super::problem::Problem;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// What has to be shown to come in. Only its hash is kept in memory.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn new(token: &str) -> Key {
        Key(hash(token))
    }

    /// Lets whoever shows the token in. Hashes are compared, so the time it takes tells nothing about the token.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let first = shown.next();
        if shown.next().is_some() {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "a request has at most one `Authorization`"));
        }
        match first.and_then(bearer).map(hash) {
            Some(shown) if shown == self.0 => Ok(()),
            _ => Err(Problem::unauthorized()),
        }
    }
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()?.strip_prefix("Bearer ")
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The token in this file; one is made if there is none.
pub(crate) fn make_or_read(path: &Path) -> Result<String, String> {
    let trouble = |error: io::Error| format!("the token in `{}` cannot be used: {error}", path.display());
    match fs::read_to_string(path) {
        Ok(token) if !only_ours(path) => {
            drop(token);
            Err(format!("`{}` can be read by others\nhelp: chmod 600 it, or delete it", path.display()))
        }
        Ok(token) if token.trim().len() >= 16 => Ok(token.trim().to_owned()),
        Ok(_) => Err(format!("`{}` holds no token\nhelp: delete it, and another is made", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(trouble),
        Err(error) => Err(trouble(error)),
    }
}

fn make(path: &Path) -> io::Result<String> {
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    fs::create_dir_all(&folder)?;
    let random: Vec<u8> = [Uuid::new_v4(), Uuid::new_v4()].iter().flat_map(|it| *it.as_bytes()).collect();
    let token = format!("wharf_{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    // A temporary file is readable by its owner only, and is never seen half-written.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, token.as_bytes())?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(token),
        // Another one was faster: then its token counts.
        Err(_) => Ok(fs::read_to_string(path)?.trim().to_owned()),
    }
}

#[cfg(unix)]
fn only_ours(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o077 == 0)
}

#[cfg(not(unix))]
fn only_ours(_path: &Path) -> bool {
    true
}
