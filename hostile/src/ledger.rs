//! What the server did, written down before it does it: `recv`, `exec` and `resp`, each with a nonce and a process id.

use crate::orders::Orders;
use std::{
    fs::{File, OpenOptions},
    io::Write,
};

#[derive(Debug)]
pub(crate) struct Ledger {
    file: Option<File>,
    fsync: bool,
}

impl Ledger {
    pub(crate) fn open(orders: &Orders) -> Ledger {
        let open = |path| OpenOptions::new().create(true).append(true).open(path).ok();
        Ledger { file: orders.ledger.as_ref().and_then(open), fsync: orders.fsync }
    }

    /// One write of one line, so that the lines of several processes do not mix.
    pub(crate) fn note(&self, what: &str, nonce: &str) {
        let Some(mut file) = self.file.as_ref() else { return };
        let line = format!("{what} {nonce} {}\n", std::process::id());
        // A server that cannot write its ledger has nobody to tell.
        let _ = file.write_all(line.as_bytes());
        if self.fsync {
            let _ = file.sync_data();
        }
    }
}
