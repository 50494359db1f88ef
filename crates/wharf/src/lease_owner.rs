//! The names under which the processes of a state folder own runs of the agent. They belong to the folder, so that the runs
//! of a process that was killed are known to be over when another one starts.

use crate::state_folder::{make_private_folder, open_private};
use std::{
    fs::{File, TryLockError},
    io::{self, Read, Write},
    path::Path,
};
use uuid::Uuid;
use wharf_store::Store;

/// Name of the file with the first name. The others have a number at the end.
const FILE: &str = "lease-owner";
/// Maximum number of processes of a state folder that have names at once.
const MAX_OWNERS: usize = 32;

/// A name that no other running process has. Dropping it gives it up.
pub(crate) struct LeaseOwner {
    name: String,
    /// Locked as long as this process uses the name.
    _file: File,
}

/// Names a store as the owner of the runs that it begins, and ends the runs that earlier processes of the state folder left
/// behind. Without a folder, or if too many processes use it, the name is that of this process only.
pub(crate) async fn own_runs(
    store: Store,
    folder: Option<&Path>,
) -> Result<(Store, Option<LeaseOwner>), String> {
    let free = folder.map(LeaseOwner::claim_free).transpose();
    let free = free.map_err(|error| format!("the state folder cannot be used: {error}"))?;
    let mut owner = None;
    // A process that ended cannot have the lock of its name, so its runs are over.
    for free in free.unwrap_or_default() {
        let named = store.clone().with_lease_owner(&free.name);
        named.end_leases().await.map_err(|error| error.to_string())?;
        owner.get_or_insert((named, free));
    }
    Ok(match owner {
        Some((named, owner)) => (named, Some(owner)),
        None => (store, None),
    })
}

impl LeaseOwner {
    /// Claims the names of a state folder that no process uses. Creates one if all of them are in use.
    fn claim_free(folder: &Path) -> io::Result<Vec<LeaseOwner>> {
        make_private_folder(folder)?;
        let mut free = Vec::new();
        for number in 0..MAX_OWNERS {
            let path = folder.join(if number == 0 { FILE.to_owned() } else { format!("{FILE}-{number}") });
            if !free.is_empty() && !path.exists() {
                break;
            }
            let file = open_private(&path)?;
            match file.try_lock() {
                Ok(()) => free.push(LeaseOwner { name: read_or_create_name(&file)?, _file: file }),
                Err(TryLockError::WouldBlock) => {}
                // Without locks, nobody knows which processes run.
                Err(TryLockError::Error(_)) => break,
            }
        }
        Ok(free)
    }
}

fn read_or_create_name(mut file: &File) -> io::Result<String> {
    let mut name = String::new();
    file.read_to_string(&mut name)?;
    if Uuid::parse_str(&name).is_err() {
        name = Uuid::now_v7().to_string();
        file.set_len(0)?;
        // Not synced: if a power cut takes the name, the runs end with their leases.
        file.write_all(name.as_bytes())?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(owners: &[LeaseOwner]) -> Vec<String> {
        owners.iter().map(|it| it.name.clone()).collect()
    }

    #[test]
    fn a_name_is_kept_and_has_one_user() {
        let folder = tempfile::tempdir().expect("a folder");
        let claim = || LeaseOwner::claim_free(folder.path()).expect("names");
        let first = claim();
        let second = claim();
        assert_eq!((first.len(), second.len()), (1, 1));
        assert_ne!(names(&first), names(&second), "another process uses the first one");
        let both = [names(&first), names(&second)].concat();
        drop(first);
        assert_eq!(names(&claim()), both[..1], "the second one is in use");
        drop(second);
        assert_eq!(names(&claim()), both, "nobody uses them");
    }
}
