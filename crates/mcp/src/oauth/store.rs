//! Persists the registered client and its tokens between runs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    fmt,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Maximum size of a token file, in bytes.
const FILE_LIMIT: u64 = 1 << 20;

/// Stores the grant of one server. Methods are called on blocking threads and may block.
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// Returns the stored grant, if there is one.
    fn load(&self) -> io::Result<Option<Grant>>;

    /// Stores a grant and replaces any earlier one.
    fn save(&self, grant: &Grant) -> io::Result<()>;

    /// Deletes the stored grant.
    fn clear(&self) -> io::Result<()>;
}

/// Tokens issued by an authorization server, and the client they were issued to.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// Issuer identifier of the authorization server.
    pub issuer: Option<String>,
    /// Client id.
    pub client_id: String,
    /// Client secret, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// Redirect URI of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// Granted scopes.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Time of issue, in seconds since the Unix epoch.
    pub received_at: u64,
    /// Private key that the token is bound to, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<String>,
    /// Complete response of the token endpoint.
    pub response: Map<String, Value>,
}

impl Grant {
    /// Returns the access token.
    pub fn access_token(&self) -> Option<&str> {
        self.response.get("access_token")?.as_str()
    }

    /// Returns the refresh token.
    pub fn refresh_token(&self) -> Option<&str> {
        self.response.get("refresh_token")?.as_str()
    }

    /// Returns the type of the access token, or an empty text.
    pub fn token_type(&self) -> &str {
        self.response.get("token_type").and_then(Value::as_str).unwrap_or_default()
    }

    /// Checks whether the access token expires within `time`.
    pub fn expires_within(&self, time: Duration) -> bool {
        let Some(lifetime) = self.response.get("expires_in").and_then(Value::as_u64) else { return false };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now + time >= Duration::from_secs(self.received_at.saturating_add(lifetime))
    }
}

/// Prints the identity of the client, but no secret and no token.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grant { issuer, client_id, redirect_uri, scopes, received_at, dpop_key, .. } = self;
        f.debug_struct("Grant")
            .field("issuer", issuer)
            .field("client_id", client_id)
            .field("redirect_uri", redirect_uri)
            .field("scopes", scopes)
            .field("received_at", received_at)
            .field("is_bound_to_key", &dpop_key.is_some())
            .finish_non_exhaustive()
    }
}

/// Stores a grant in memory.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Option<Grant>>);

impl TokenStore for MemoryStore {
    fn load(&self) -> io::Result<Option<Grant>> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn save(&self, grant: &Grant) -> io::Result<()> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(grant.clone());
        Ok(())
    }

    fn clear(&self) -> io::Result<()> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }
}

/// Stores a grant in a file that only its owner can read. Every save replaces the file atomically.
#[derive(Clone, Debug)]
pub struct FileStore {
    path: PathBuf,
}

impl FileStore {
    /// Creates a store for this file. The first save creates the file and its folder.
    pub fn new(path: impl Into<PathBuf>) -> FileStore {
        FileStore { path: path.into() }
    }
}

impl TokenStore for FileStore {
    fn load(&self) -> io::Result<Option<Grant>> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut text = Vec::new();
        file.take(FILE_LIMIT).read_to_end(&mut text)?;
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            let what = format!("`{}` is not a token file: {error}", self.path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    fn save(&self, grant: &Grant) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        make_private_folder(folder)?;
        // The temporary file is readable only by its owner. Rename it after its content has reached the disk.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec_pretty(grant)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map(drop).map_err(|error| error.error)
    }

    fn clear(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn grant(token: &str) -> Grant {
        let response = json!({ "access_token": token, "token_type": "bearer", "expires_in": 60 });
        Grant {
            issuer: Some("https://as.example".into()),
            client_id: "client".into(),
            client_secret: Some("hidden".into()),
            redirect_uri: None,
            scopes: vec!["read".into()],
            received_at: 1,
            dpop_key: Some("private".into()),
            response: response.as_object().cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn a_file_store_keeps_one_private_grant() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::new(folder.path().join("tokens/server.json"));
        assert_eq!(store.load().unwrap(), None);
        store.save(&grant("first")).unwrap();
        store.save(&grant("second")).unwrap();
        assert_eq!(store.load().unwrap(), Some(grant("second")));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&store.path), 0o600);
            assert_eq!(mode(store.path.parent().unwrap()), 0o700);
        }
        let left = fs::read_dir(folder.path().join("tokens")).unwrap().count();
        assert_eq!(left, 1, "no temporary file stays behind");
        store.clear().unwrap();
        store.clear().unwrap();
        assert_eq!(store.load().unwrap(), None);
    }

    #[test]
    fn an_invalid_token_file_is_named_in_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.json");
        fs::write(&path, "{}").unwrap();
        let error = FileStore::new(&path).load().unwrap_err().to_string();
        assert!(error.contains("is not a token file"), "{error}");
    }

    #[test]
    fn tokens_expire_and_debug_hides_them() {
        assert!(grant("x").expires_within(Duration::ZERO));
        let fresh = Grant { received_at: u64::MAX, ..grant("x") };
        assert!(!fresh.expires_within(Duration::from_secs(30)));
        let shown = format!("{:?}", grant("token"));
        assert!(["token", "hidden", "private"].iter().all(|secret| !shown.contains(secret)), "{shown}");
    }
}
