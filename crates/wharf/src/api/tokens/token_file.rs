//! Tokens in files that only their owner can read. The operator's token is generated at the first start.

use super::MIN_TOKEN_LENGTH;
use crate::state_folder::{is_private, make_private_folder};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// Reads the token from this file, or generates one if the file does not exist.
pub(crate) fn read_or_create_token(path: &Path) -> Result<String, String> {
    match fs::exists(path) {
        Ok(false) => create(path).map_err(|it| unusable(path, &it)),
        _ => read(path).map_err(|why| format!("{why}, or delete it, and wharf creates a new one")),
    }
}

/// Reads the token from this file. Fails if other users can read it or if the token is too short.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|it| unusable(path, &it))?;
    if !is_private(path) {
        return Err(format!("`{}` can be read by others\nhelp: run `chmod 600` on it", path.display()));
    }
    match text.trim() {
        token if token.len() >= MIN_TOKEN_LENGTH => Ok(token.to_owned()),
        _ => Err(format!(
            "`{}` holds no token\nhelp: write at least {MIN_TOKEN_LENGTH} characters into it",
            path.display()
        )),
    }
}

fn unusable(path: &Path, error: &io::Error) -> String {
    format!("the token file `{}` cannot be used: {error}\nhelp: make it readable", path.display())
}

fn create(path: &Path) -> io::Result<String> {
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    make_private_folder(&folder)?;
    let random: Vec<u8> = [Uuid::new_v4(), Uuid::new_v4()].iter().flat_map(|it| *it.as_bytes()).collect();
    let token = format!("wharf_{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    // A temporary file is readable by its owner only, and renaming it never exposes a partial token.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, token.as_bytes())?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(token),
        // Another process created the file first, so its token is used.
        Err(_) => Ok(fs::read_to_string(path)?.trim().to_owned()),
    }
}
