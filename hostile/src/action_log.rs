//! The server's log of its own actions. It writes `recv`, `exec` and `resp` before it acts, each with a nonce and
//! the process id.

use crate::options::ServerOptions;
use std::{
    fs::{File, OpenOptions},
    io::Write,
};

#[derive(Debug)]
pub(crate) struct ActionLog {
    file: Option<File>,
    fsync: bool,
}

impl ActionLog {
    pub(crate) fn open(options: &ServerOptions) -> ActionLog {
        let open = |path| OpenOptions::new().create(true).append(true).open(path).ok();
        ActionLog { file: options.action_log.as_ref().and_then(open), fsync: options.fsync }
    }

    /// Appends one line with a single write, so that the lines of several processes do not interleave.
    pub(crate) fn note(&self, what: &str, nonce: &str) {
        let Some(mut file) = self.file.as_ref() else { return };
        let line = format!("{what} {nonce} {}\n", std::process::id());
        // Ignored: the server has no other channel to report this.
        let _ = file.write_all(line.as_bytes());
        if self.fsync {
            let _ = file.sync_data();
        }
    }
}
