//! Caches the last successful tool list of an agent file on disk, for commands that must not start any server.

use crate::state_folder::make_private_folder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};
use wharf_config::{FileError, read_regular};
use wharf_runtime::time_format::rfc3339;

/// Maximum size of a cached list, in bytes.
const MAX_CACHE_BYTES: u64 = 256 << 20;

/// Member of a cached tool with what `wharf why` checks. It is not shown.
pub(crate) const CHECKS_KEY: &str = "checks";

/// Path of the cached list of one agent file.
#[derive(Clone, Debug)]
pub(crate) struct ToolCache(PathBuf);

impl ToolCache {
    /// Returns the cache in this folder, with a file name derived from the agent file's path.
    pub(crate) fn new(folder: &Path, agent_file: &Path) -> ToolCache {
        let hash = Sha256::digest(agent_file.as_os_str().as_encoded_bytes());
        let name: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        ToolCache(folder.join(format!("{name}.json")))
    }

    /// Reads the cached list.
    pub(crate) fn load(&self) -> Result<Value, String> {
        match read_regular(&self.0, MAX_CACHE_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| "it cannot be read".to_owned()),
            Err(FileError::Missing) => Err("there is none yet".to_owned()),
            Err(trouble) => Err(format!("it {trouble}")),
        }
    }

    /// Stores a list. Sources that failed this time keep their tools from the previous list.
    pub(crate) fn store(&self, tools: &[Value], sources: &[Value]) -> io::Result<()> {
        let before = self.load().unwrap_or_default();
        let failed = |name: &Value| sources.iter().any(|it| it["name"] == *name && !it["error"].is_null());
        let old = before["tools"].as_array().into_iter().flatten();
        let kept: Vec<&Value> = old.filter(|it| failed(&it["source"])).collect();
        let all: Vec<&Value> = tools.iter().chain(kept).collect();
        let list = json!({ "at": rfc3339(SystemTime::now()), "tools": all, "sources": sources });
        let folder = self.0.parent().unwrap_or(Path::new("."));
        make_private_folder(folder)?;
        // Written atomically, because another process may be reading it.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut file, list.to_string().as_bytes())?;
        file.persist(&self.0)?;
        Ok(())
    }
}
