//! Finds the descendants of a process in `/proc`.
//!
//! A pid read there may be reused a moment later. Signals therefore go through a pidfd that is opened first and
//! checked afterwards. Only our own children are safe to signal by pid, because a pid stays reserved until we reap
//! it.

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::{fs, path::Path};

/// Sends a signal to every descendant of `root`.
pub(super) fn signal_descendants(root: Pid, signal: Signal) {
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children(parent) {
            parents.push(child);
            let ours = |found: Option<Pid>| found == Some(parent) || found == Some(root);
            match pidfd_open(child, PidfdFlags::empty()) {
                // If its parent died meanwhile, the child was reparented to `root`.
                Ok(handle) if ours(parent_of(child)) => _ = pidfd_send_signal(handle, signal),
                Ok(_) => {}
                // The process is gone, or this kernel has no pidfds.
                Err(_) if ours(parent_of(child)) => _ = kill_process(child, signal),
                Err(_) => {}
            }
        }
    }
}

/// Returns the children of a process.
pub(super) fn children(parent: Pid) -> Vec<Pid> {
    listed_children(parent).unwrap_or_else(|| searched_children(parent))
}

/// Reads the kernel's own list of children; `None` if the kernel was built without it.
fn listed_children(parent: Pid) -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    let threads = fs::read_dir(format!("/proc/{parent}/task")).ok();
    for thread in threads.into_iter().flatten().flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(list.split_whitespace().filter_map(pid)),
            // The thread has ended, or the kernel has no such lists.
            Err(_) if thread.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

/// Finds the children by reading the parent of every process.
fn searched_children(parent: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|it| pid(it.file_name().to_str()?));
    pids.filter(|it| parent_of(*it) == Some(parent)).collect()
}

fn parent_of(child: Pid) -> Option<Pid> {
    let stat = fs::read(Path::new("/proc").join(child.to_string()).join("stat")).ok()?;
    // `pid (name) state parent …`; the name may contain any character.
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[after_name + 1..]).ok()?;
    pid(rest.split_whitespace().nth(1)?)
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;
    use std::process::Command;

    #[test]
    fn both_searches_find_a_child() {
        let mut child = Command::new("/bin/sleep").arg("986.1").spawn().unwrap();
        let sleeping = Pid::from_child(&child);
        assert_eq!(parent_of(sleeping), Some(getpid()));
        assert!(searched_children(getpid()).contains(&sleeping));
        assert!(listed_children(getpid()).is_none_or(|it| it.contains(&sleeping)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(getpid()).contains(&sleeping));
    }
}
