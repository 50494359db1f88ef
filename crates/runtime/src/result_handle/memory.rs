//! Keeps results for a program without a database: in memory, or in a private temporary folder.

use super::{NewResult, ResultFuture, ResultOwner, ResultStore, StoredResult, new_result_id};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    fmt::{self, Write},
    fs,
    future::ready,
    io,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::SystemTime,
};
use tempfile::{Builder, NamedTempFile, TempDir, TempPath};
use wharf_config::ResultQuotas;

/// Number of conversations above which those without results are forgotten.
const MAX_NUMBERED: usize = 10_000;

/// Results of this process, within the quotas.
#[derive(Default)]
pub struct MemoryResults {
    quotas: ResultQuotas,
    state: Mutex<MemoryState>,
    /// The folder with the documents, if they are not in memory. Created with the first result, and removed on drop, after
    /// the files.
    folder: Option<OnceLock<TempDir>>,
}

#[derive(Default)]
struct MemoryState {
    /// The results, the oldest first.
    results: Vec<KeptResult>,
    /// The last number in each conversation. Numbers are not used again.
    numbers: HashMap<ResultOwner, u64>,
}

struct KeptResult {
    owner: ResultOwner,
    stored: StoredResult,
    text: KeptText,
}

/// The text of a document.
enum KeptText {
    Memory(Arc<str>),
    /// A file, removed on drop.
    File(TempPath),
}

impl KeptText {
    fn write(text: &Arc<str>, folder: Option<&TempDir>) -> io::Result<KeptText> {
        let Some(folder) = folder else { return Ok(KeptText::Memory(text.clone())) };
        let mut file = NamedTempFile::new_in(folder.path())?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        Ok(KeptText::File(file.into_temp_path()))
    }

    fn read(&self) -> io::Result<Arc<str>> {
        match self {
            KeptText::Memory(text) => Ok(text.clone()),
            KeptText::File(path) => fs::read_to_string(path).map(Arc::from),
        }
    }
}

impl MemoryResults {
    /// Creates an empty store that keeps the documents in memory.
    pub fn new(quotas: ResultQuotas) -> MemoryResults {
        MemoryResults { quotas, ..MemoryResults::default() }
    }

    /// Creates an empty store that keeps the documents in a temporary folder, which only this user can read.
    pub fn in_temporary_folder(quotas: ResultQuotas) -> MemoryResults {
        MemoryResults { folder: Some(OnceLock::new()), ..MemoryResults::new(quotas) }
    }

    fn folder(&self) -> io::Result<Option<&TempDir>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        if folder.get().is_none() {
            // If two results are stored at once, one of the folders is removed again.
            let mut builder = Builder::new();
            builder.prefix("wharf-results-");
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
            let _ = folder.set(builder.tempdir()?);
        }
        Ok(folder.get())
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now();
        state.results.retain(|it| it.stored.expires_at.is_none_or(|at| at > now));
        state
    }

    fn add(&self, new: NewResult) -> Result<StoredResult, String> {
        let bytes = new.document.text.len() as u64;
        if bytes > self.quotas.per_principal.min(self.quotas.total) {
            return Err("it is larger than `[results]` allows".to_owned());
        }
        let text = self.folder().and_then(|it| KeptText::write(&new.document.text, it));
        let text = text.map_err(|error| error.to_string())?;
        let mut state = self.state();
        state.forget_numbers();
        let handle = new.owner.conversation.is_some().then(|| {
            let number = state.numbers.entry(new.owner.clone()).or_insert(0);
            *number += 1;
            format!("r-{number}")
        });
        let created_at = SystemTime::now();
        let stored = new.to_stored(new_result_id(), handle, created_at);
        let NewResult { owner, keep, .. } = new;
        let stored = StoredResult { expires_at: created_at.checked_add(keep), ..stored };
        state.results.push(KeptResult { owner, stored: stored.clone(), text });
        state.evict(&self.quotas);
        Ok(stored)
    }
}

impl MemoryState {
    fn forget_numbers(&mut self) {
        if self.numbers.len() > MAX_NUMBERED {
            let results = &self.results;
            self.numbers.retain(|owner, _| results.iter().any(|it| it.owner == *owner));
        }
    }

    /// Removes the oldest results beyond the quotas: first those of the newest result's principal, then any.
    fn evict(&mut self, quotas: &ResultQuotas) {
        let Some(principal) = self.results.last().map(|it| it.owner.principal.clone()) else { return };
        let own = |it: &&KeptResult| it.owner.principal == principal;
        let bytes =
            |results: &mut dyn Iterator<Item = &KeptResult>| results.map(|it| it.stored.bytes).sum::<u64>();
        loop {
            let count = self.results.iter().filter(own).count() as u64;
            let is_over =
                count > quotas.count || bytes(&mut self.results.iter().filter(own)) > quotas.per_principal;
            let oldest = match is_over {
                true => self.results.iter().position(|it| own(&it)),
                false if bytes(&mut self.results.iter()) > quotas.total => Some(0),
                false => None,
            };
            match oldest {
                Some(at) => drop(self.results.remove(at)),
                None => return,
            }
        }
    }

    fn find(&self, owner: &ResultOwner, id: &str) -> Option<&KeptResult> {
        self.results.iter().find(|it| {
            let is_numbered =
                || it.stored.handle.as_deref() == Some(id) && it.owner.conversation == owner.conversation;
            it.owner.principal == owner.principal && (it.stored.id == id || is_numbered())
        })
    }
}

impl ResultStore for MemoryResults {
    fn put(&self, new: NewResult) -> ResultFuture<'_, StoredResult> {
        Box::pin(ready(self.add(new)))
    }

    fn get<'a>(
        &'a self,
        owner: &'a ResultOwner,
        id: &'a str,
    ) -> ResultFuture<'a, Option<(StoredResult, Arc<str>)>> {
        let found =
            self.state().find(owner, id).map(|it| it.text.read().map(|text| (it.stored.clone(), text)));
        Box::pin(ready(found.transpose().map_err(|error| error.to_string())))
    }

    fn list<'a>(&'a self, principal: &'a str) -> ResultFuture<'a, Vec<StoredResult>> {
        let state = self.state();
        let own = state.results.iter().rev().filter(|it| &*it.owner.principal == principal);
        Box::pin(ready(Ok(own.map(|it| it.stored.clone()).collect())))
    }

    fn delete<'a>(&'a self, principal: &'a str, id: &'a str) -> ResultFuture<'a, bool> {
        let mut state = self.state();
        let before = state.results.len();
        state.results.retain(|it| &*it.owner.principal != principal || it.stored.id != id);
        Box::pin(ready(Ok(state.results.len() < before)))
    }
}

impl fmt::Debug for MemoryResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryResults").field("quotas", &self.quotas).finish_non_exhaustive()
    }
}

impl NewResult {
    /// Describes the result once it is stored. It has no expiry yet.
    pub fn to_stored(&self, id: String, handle: Option<String>, created_at: SystemTime) -> StoredResult {
        StoredResult {
            id,
            handle,
            conversation: self.owner.conversation.as_deref().map(str::to_owned),
            source: self.source.to_string(),
            tool: self.tool.to_string(),
            kind: self.document.kind,
            bytes: self.document.text.len() as u64,
            sha256: hex(&Sha256::digest(self.document.text.as_bytes())),
            created_at,
            expires_at: None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result_handle::{Document, DocumentKind};
    use std::time::Duration;

    fn owner(principal: &str, conversation: Option<&str>) -> ResultOwner {
        ResultOwner { principal: principal.into(), conversation: conversation.map(Arc::from) }
    }

    fn new(owner: &ResultOwner, text: &str) -> NewResult {
        NewResult {
            owner: owner.clone(),
            request_id: "q".into(),
            source: "s".into(),
            tool: "t".into(),
            document: Document { kind: DocumentKind::Text, text: text.into() },
            keep: Duration::from_secs(60),
        }
    }

    fn texts(results: &MemoryResults, principal: &str) -> Vec<u64> {
        results
            .state()
            .results
            .iter()
            .filter(|it| &*it.owner.principal == principal)
            .map(|it| it.stored.bytes)
            .collect()
    }

    #[test]
    fn only_the_owner_finds_a_result() {
        let results = MemoryResults::default();
        let (ann, other) = (owner("ann", Some("c1")), owner("ann", Some("c2")));
        let first = results.add(new(&ann, "one")).expect("it fits");
        assert_eq!(results.add(new(&other, "two")).expect("it fits").handle.as_deref(), Some("r-1"));
        let text = |owner: &ResultOwner, id: &str| {
            results.state().find(owner, id).map(|it| it.text.read().expect("a text").to_string())
        };
        assert_eq!(text(&ann, "r-1").as_deref(), Some("one"));
        assert_eq!(text(&other, "r-1").as_deref(), Some("two"));
        assert_eq!(text(&other, &first.id).as_deref(), Some("one"));
        assert_eq!(text(&owner("bob", Some("c1")), "r-1"), None);
        assert_eq!(text(&owner("bob", None), &first.id), None);
        assert_eq!(text(&owner("ann", None), "r-1"), None);
    }

    #[test]
    fn quotas_evict_the_oldest() {
        let results = MemoryResults::new(ResultQuotas { per_principal: 10, count: 3, total: 15 });
        let (ann, bob) = (owner("ann", None), owner("bob", None));
        for size in [1, 2, 3, 4] {
            results.add(new(&ann, &"x".repeat(size))).expect("it fits");
        }
        assert_eq!(texts(&results, "ann"), [2, 3, 4], "by count");
        results.add(new(&ann, &"x".repeat(5))).expect("it fits");
        assert_eq!(texts(&results, "ann"), [4, 5], "by size");
        results.add(new(&bob, &"x".repeat(8))).expect("it fits");
        assert_eq!((texts(&results, "ann"), texts(&results, "bob")), (vec![5], vec![8]), "by total size");
    }
    #[test]
    fn result_above_the_quota_is_refused() {
        let results = MemoryResults::new(ResultQuotas { per_principal: 10, count: 3, total: 15 });
        let ann = owner("ann", None);
        results.add(new(&ann, "kept")).expect("it fits");
        results.add(new(&ann, &"x".repeat(11))).expect_err("it does not fit");
        assert_eq!(texts(&results, "ann"), [4], "the others stay");
    }

    #[cfg(unix)]
    #[test]
    fn temporary_files_are_private_and_end_with_their_results() {
        use std::os::unix::fs::PermissionsExt;
        let quotas = ResultQuotas { per_principal: 10, count: 2, total: 15 };
        let results = MemoryResults::in_temporary_folder(quotas);
        let folder = results.folder().expect("it can be created").expect("a folder").path().to_owned();
        let modes = || -> Vec<u32> {
            let files = fs::read_dir(&folder).into_iter().flatten().flatten();
            files.map(|it| it.metadata().expect("a file").permissions().mode() & 0o777).collect()
        };
        let ann = owner("ann", Some("c"));
        for text in ["one", "two", "three"] {
            results.add(new(&ann, text)).expect("it fits");
        }
        assert_eq!(modes(), [0o600, 0o600], "the oldest is evicted");
        assert_eq!(fs::metadata(&folder).expect("a folder").permissions().mode() & 0o777, 0o700);
        let found = results.state().find(&ann, "r-3").map(|it| it.text.read().expect("a text").to_string());
        assert_eq!(found.as_deref(), Some("three"));
        drop(results);
        assert!(!folder.exists());
    }
}
