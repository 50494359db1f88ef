//! A token in a file that only its owner can read. The operator's is made at the first start.

use super::SHORTEST;
use crate::state_folder::{is_private, make_private_folder};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// The token in this file; one is made if there is none.
pub(crate) fn make_or_read(path: &Path) -> Result<String, String> {
    match fs::exists(path) {
        Ok(false) => make(path).map_err(|it| trouble(path, &it)),
        _ => read(path).map_err(|why| format!("{why}, or delete it, and another is made")),
    }
}

/// The token in this file.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|it| trouble(path, &it))?;
    if !is_private(path) {
        return Err(format!("`{}` can be read by others\nhelp: chmod 600 it", path.display()));
    }
    match text.trim() {
        token if token.len() >= SHORTEST => Ok(token.to_owned()),
        _ => Err(format!(
            "`{}` holds no token\nhelp: write at least {SHORTEST} characters into it",
            path.display()
        )),
    }
}

fn trouble(path: &Path, error: &io::Error) -> String {
    format!("the token in `{}` cannot be used: {error}\nhelp: make it readable", path.display())
}

fn make(path: &Path) -> io::Result<String> {
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    make_private_folder(&folder)?;
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
