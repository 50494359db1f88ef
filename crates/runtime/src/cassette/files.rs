//! Large images and other binary values of a recording, in files of their own: `FILE.d/SHA256`.
//!
//! A line holds `{"$file": "sha256-…"}` in place of the base64. A real key `$file` is escaped as `$$file`.

use super::Placeholders;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::{
    fmt::Write,
    fs, io, mem,
    path::{Path, PathBuf},
};
use wharf_config::read_regular;

/// Size in characters above which base64 goes into a file: 4 KiB of bytes.
const MAX_INLINE_BASE64: usize = 4096 / 3 * 4;

/// Maximum size of one file, in bytes. A message of a server has at most 16 MiB.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

const FILE_KEY: &str = "$file";

/// The files of a recording.
#[derive(Clone, Debug)]
pub struct CassetteFiles {
    folder: PathBuf,
}

impl CassetteFiles {
    /// Returns the files that belong to a recording.
    pub fn of(cassette: &Path) -> CassetteFiles {
        let mut folder = cassette.as_os_str().to_owned();
        folder.push(".d");
        CassetteFiles { folder: folder.into() }
    }

    /// Replaces the secrets in images, audio and blobs of a value, and moves large ones into files.
    pub fn store(&self, value: &mut Value, placeholders: &Placeholders) -> io::Result<()> {
        match value {
            Value::Array(items) => items.iter_mut().try_for_each(|it| self.store(it, placeholders)),
            Value::Object(members) => {
                escape_keys(members);
                let is_media = matches!(members.get("type").and_then(Value::as_str), Some("image" | "audio"));
                for (key, value) in members.iter_mut() {
                    let is_binary = key == "blob" || key == "base64" || key == "data" && is_media;
                    match value.as_str().filter(|_| is_binary) {
                        None => self.store(value, placeholders)?,
                        Some(base64) => {
                            if let Some(stored) = self.store_binary(base64, placeholders)? {
                                *value = stored;
                            }
                        }
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns what replaces a binary value. `None` if it stays, because it is small and has no secrets, or because encoding
    /// its bytes again would not give the same text.
    fn store_binary(&self, base64: &str, placeholders: &Placeholders) -> io::Result<Option<Value>> {
        let Ok(bytes) = BASE64_STANDARD.decode(base64) else { return Ok(None) };
        let masked = placeholders.mask_bytes(&bytes);
        if base64.len() > MAX_INLINE_BASE64 {
            let name = self.write(masked.as_deref().unwrap_or(&bytes))?;
            return Ok(Some(json!({ FILE_KEY: name })));
        }
        Ok(masked.map(|it| Value::String(BASE64_STANDARD.encode(it))))
    }

    /// Puts the content of the files back into a value. The error names the file.
    pub fn load(&self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::Array(items) => items.iter_mut().try_for_each(|it| self.load(it)),
            Value::Object(members) => {
                if members.len() == 1
                    && let Some(name) = members.get(FILE_KEY).and_then(Value::as_str)
                {
                    *value = Value::String(self.read(name)?);
                    return Ok(());
                }
                unescape_keys(members);
                members.values_mut().try_for_each(|it| self.load(it))
            }
            _ => Ok(()),
        }
    }

    /// Writes decoded bytes, in which secrets have been replaced. Returns their name.
    fn write(&self, bytes: &[u8]) -> io::Result<String> {
        let name = hash(bytes);
        let path = self.folder.join(&name);
        if !path.exists() {
            fs::create_dir_all(&self.folder)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            io::Write::write_all(&mut file, bytes)?;
            file.persist(path)?;
        }
        Ok(format!("sha256-{name}"))
    }

    fn read(&self, name: &str) -> Result<String, String> {
        let unusable = |why: &str| format!("the file of `{name}` {why}");
        let digits = name.strip_prefix("sha256-").unwrap_or_default();
        if digits.len() != 64 || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
            return Err(unusable("has an invalid name"));
        }
        let bytes = read_regular(&self.folder.join(digits), MAX_FILE_BYTES);
        let bytes = bytes.map_err(|error| unusable(&error.to_string()))?;
        if hash(&bytes) != digits {
            return Err(unusable("does not have this hash"));
        }
        Ok(BASE64_STANDARD.encode(bytes))
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Adds a `$` to keys that look like `$file`.
fn escape_keys(members: &mut Map<String, Value>) {
    rename_keys(members, |key| is_file_key(key).then(|| format!("${key}")));
}

/// Removes a `$` from escaped keys.
fn unescape_keys(members: &mut Map<String, Value>) {
    rename_keys(members, |key| key.strip_prefix('$').filter(|it| is_file_key(it)).map(str::to_owned));
}

fn rename_keys(members: &mut Map<String, Value>, new_name: impl Fn(&str) -> Option<String>) {
    if members.keys().any(|it| new_name(it).is_some()) {
        let renamed =
            mem::take(members).into_iter().map(|(key, value)| (new_name(&key).unwrap_or(key), value));
        *members = renamed.collect();
    }
}

/// Checks for `$file`, `$$file` and so on.
fn is_file_key(key: &str) -> bool {
    key.ends_with(FILE_KEY) && key.bytes().take(key.len() - "file".len()).all(|it| it == b'$')
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn large_values_are_stored_once_and_come_back_as_they_were() {
        let folder = TempDir::new().expect("a folder");
        let files = CassetteFiles::of(&folder.path().join("a.jsonl"));
        let data = BASE64_STANDARD.encode(vec![7_u8; 5000]);
        let image = json!({ "type": "image", "mimeType": "image/png", "data": data });
        let original = json!({
            "content": [image, image, { "type": "text", "data": data }, { "type": "image", "data": "AAAA" }],
            "structuredContent": { "$file": "sha256-00", "$$file": 1, "$files": 2 },
            "odd": { "type": "image", "data": format!("{data}*") },
        });
        let mut stored = original.clone();
        files.store(&mut stored, &Placeholders::default()).expect("it is stored");
        assert_eq!(stored["content"][0]["data"], stored["content"][1]["data"]);
        assert!(stored["content"][0]["data"]["$file"].is_string(), "{stored}");
        assert_eq!(fs::read_dir(folder.path().join("a.jsonl.d")).expect("the folder").count(), 1);
        files.load(&mut stored).expect("it is there");
        assert_eq!(stored, original);
    }

    #[test]
    fn names_outside_the_folder_and_changed_files_are_refused() {
        let folder = TempDir::new().expect("a folder");
        let files = CassetteFiles::of(&folder.path().join("a.jsonl"));
        let name = hash(b"right");
        fs::create_dir(folder.path().join("a.jsonl.d")).expect("a folder");
        fs::write(folder.path().join("a.jsonl.d").join(&name), "wrong").expect("a file");
        for name in [
            "sha256-../../etc/passwd",
            "md5-00",
            &format!("sha256-{name}"),
            &format!("sha256-{}", "0".repeat(64)),
        ] {
            assert!(files.load(&mut json!({ "$file": name })).is_err(), "{name}");
        }
    }
}
