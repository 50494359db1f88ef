//! The name under which this gateway owns runs of the agent. It belongs to the state folder, so that a gateway that was
//! killed knows its own runs when it starts again.

use crate::state_folder::open_private;
use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};
use uuid::Uuid;

/// Name of the file with the name.
const FILE: &str = "lease-owner";

/// A name that no other running process has. Dropping it gives it up.
pub(crate) struct LeaseOwner {
    pub(crate) name: String,
    /// Locked as long as this process uses the name.
    _file: File,
}

impl LeaseOwner {
    /// Claims the name of a state folder. `None` if another process uses it.
    pub(crate) fn claim(folder: &Path) -> io::Result<Option<LeaseOwner>> {
        let mut file = open_private(&folder.join(FILE))?;
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let mut name = String::new();
        file.read_to_string(&mut name)?;
        if Uuid::parse_str(&name).is_err() {
            name = Uuid::now_v7().to_string();
            file.set_len(0)?;
            file.write_all(name.as_bytes())?;
            file.sync_all()?;
        }
        Ok(Some(LeaseOwner { name, _file: file }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_and_has_one_user() {
        let folder = tempfile::tempdir().expect("a folder");
        let claim = || LeaseOwner::claim(folder.path()).expect("a file");
        let first = claim().expect("a free name");
        assert!(claim().is_none(), "another process uses it");
        let name = first.name.clone();
        drop(first);
        assert_eq!(claim().expect("a free name").name, name);
    }
}
