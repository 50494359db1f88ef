//! Finds the gateway that runs on a database or a state folder, and ensures that there is at most one.
//!
//! A gateway writes its address to `gateway.json` and holds a lock on that file while it runs. The kernel releases
//! the lock however the process ends, so the file of a killed gateway does no harm.

use crate::state_folder::{is_still_at, make_private_folder, open_private};
use serde_json::{Value, json};
use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time;
use wharf_config::read_regular;
use wharf_store::Location;

/// Name of the file in a state folder, and suffix of the file beside a database elsewhere.
const FILE: &str = "gateway.json";

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Number of attempts to take the lock, and the pause between them. A lookup holds the lock briefly, so one failure
/// does not mean that a gateway runs.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A running gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningGateway {
    /// Base URL without a path, such as `http://127.0.0.1:7373`.
    pub(crate) url: String,
    /// Process id.
    pub(crate) pid: u64,
    /// Path of its agent file, which may not exist.
    pub(crate) agent_file: PathBuf,
}

/// Finds the gateway that runs on this state folder.
pub(crate) fn find(state_folder: &Path) -> Option<RunningGateway> {
    let path = state_folder.join(FILE);
    let file = File::open(&path).ok()?;
    // Only a running gateway holds the exclusive lock.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => RunningGateway::read(&path),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

impl RunningGateway {
    pub(crate) fn new(address: SocketAddr, agent_file: &Path) -> RunningGateway {
        let agent_file = agent_file.canonicalize().unwrap_or_else(|_| agent_file.to_owned());
        let host = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            host => host,
        };
        let url = format!("http://{}", SocketAddr::new(host, address.port()));
        RunningGateway { url, pid: std::process::id().into(), agent_file }
    }

    fn read(path: &Path) -> Option<RunningGateway> {
        let bytes = read_regular(path, MAX_FILE_BYTES).ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        Some(RunningGateway {
            url: value["url"].as_str()?.to_owned(),
            pid: value["pid"].as_u64()?,
            agent_file: value["agent_file"].as_str()?.into(),
        })
    }
}

/// The locks of one gateway: on its SQLite database and on its state folder. They are released on drop.
#[derive(Debug, Default)]
pub(crate) struct GatewayClaims(Vec<GatewayClaim>);

impl GatewayClaims {
    /// Locks the database, or fails if another gateway uses it. PostgreSQL is not locked, because replicas share it.
    /// Of replicas that also share a state folder, only the first is published there.
    pub(crate) async fn take(
        database: Option<&Location>,
        state_folder: Option<&Path>,
    ) -> Result<GatewayClaims, String> {
        let of_state = state_folder.map(|it| it.join(FILE));
        let of_database = match database {
            Some(Location::Sqlite(path)) => Some((path, claim_file(path, state_folder))),
            _ => None,
        };
        let mut claims = Vec::new();
        if let Some((path, file)) = &of_database {
            let is_state = of_state.as_ref() == Some(file);
            match GatewayClaim::take(file).await {
                Ok(claim) => claims.push(claim),
                Err(ClaimError::Taken(by)) => return Err(in_use(path, is_state, by.as_ref())),
                // Without file locks a second gateway cannot be detected, so startup continues. If the folder is
                // unusable, opening the database reports it.
                Err(ClaimError::Unusable(error)) => {
                    let file = file.display();
                    tracing::warn!(target: "wharf::serve", "`{file}` cannot be locked: {error}");
                }
            }
        }
        if let Some(file) = of_state.filter(|it| of_database.as_ref().is_none_or(|(_, taken)| taken != it)) {
            claims.extend(GatewayClaim::take(&file).await.ok());
        }
        Ok(GatewayClaims(claims))
    }

    /// Writes the gateway's address to its lock files.
    pub(crate) fn publish(&mut self, gateway: &RunningGateway) {
        for claim in &mut self.0 {
            if let Err(error) = claim.publish(gateway) {
                let file = claim.path.display();
                tracing::warn!(target: "wharf::serve", "the address cannot be written to `{file}`: {error}");
            }
        }
    }
}

/// Returns the lock file of a database: in the state folder for the default database, otherwise beside the database.
fn claim_file(database: &Path, state_folder: Option<&Path>) -> PathBuf {
    let folder = |it: Option<&Path>| it.map(|it| it.canonicalize().unwrap_or_else(|_| it.to_owned()));
    if let Some(state_folder) = state_folder
        && folder(database.parent()) == folder(Some(state_folder))
        && database.file_name().is_some_and(|it| it == "wharf.db")
    {
        return state_folder.join(FILE);
    }
    let mut file = database.as_os_str().to_owned();
    file.push("-");
    file.push(FILE);
    file.into()
}

fn in_use(database: &Path, is_state: bool, by: Option<&RunningGateway>) -> String {
    let by = by.map_or_else(String::new, |it| format!(" (process {}, {})", it.pid, it.url));
    let (kind, what, other) = match is_state {
        true => {
            ("state folder", database.parent().unwrap_or(database), "a state folder of its own (WHARF_HOME)")
        }
        false => ("database", database, "a database of its own"),
    };
    let what = what.display();
    format!(
        "the {kind} `{what}` is in use by another `wharf serve`{by}\nhelp: use that gateway or end it; a second one needs \
         {other}, or PostgreSQL, which gateways can share (--database postgres://…)"
    )
}

/// A locked file with the gateway's address. It is removed on drop.
#[derive(Debug)]
struct GatewayClaim {
    path: PathBuf,
    file: File,
}

enum ClaimError {
    /// A running gateway holds the lock. It may not have published its address yet.
    Taken(Option<RunningGateway>),
    Unusable(io::Error),
}

impl GatewayClaim {
    async fn take(path: &Path) -> Result<GatewayClaim, ClaimError> {
        for _ in 0..LOCK_TRIES {
            match lock(path) {
                Ok(Some(file)) => return Ok(GatewayClaim { path: path.to_owned(), file }),
                Ok(None) => time::sleep(LOCK_PAUSE).await,
                Err(error) => return Err(ClaimError::Unusable(error)),
            }
        }
        Err(ClaimError::Taken(RunningGateway::read(path)))
    }

    fn publish(&mut self, gateway: &RunningGateway) -> io::Result<()> {
        let RunningGateway { url, pid, agent_file } = gateway;
        let text = json!({ "url": url, "pid": pid, "agent_file": agent_file.to_string_lossy() }).to_string();
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }
}

/// Opens and locks the file. Returns `None` if another process holds the lock.
fn lock(path: &Path) -> io::Result<Option<File>> {
    if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        make_private_folder(folder)?;
    }
    let file = open_private(path)?;
    match file.try_lock() {
        // The previous owner may have removed the file before it was locked.
        Ok(()) if is_still_at(&file, path) => file.set_len(0).map(|()| Some(file)),
        Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Drop for GatewayClaim {
    /// Removes the file before the lock is released, so that no other process locks a file that is about to
    /// disappear.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn gateway() -> RunningGateway {
        RunningGateway::new(([127, 0, 0, 1], 7373).into(), Path::new("agent.yaml"))
    }

    #[tokio::test]
    async fn gateway_is_found_while_it_runs() {
        let folder = TempDir::new().expect("a folder");
        let database = Location::Sqlite(folder.path().join("wharf.db"));
        assert_eq!(find(folder.path()), None);
        let mut claims = GatewayClaims::take(Some(&database), Some(folder.path())).await.expect("it is free");
        assert_eq!(find(folder.path()), None, "it has not published its address");
        claims.publish(&gateway());
        assert_eq!(find(folder.path()), Some(gateway()));
        drop(claims);
        assert_eq!(find(folder.path()), None);
        assert!(!folder.path().join(FILE).exists());
    }

    #[tokio::test]
    async fn file_of_a_killed_gateway_is_taken_over() {
        let folder = TempDir::new().expect("a folder");
        let left = r#"{"url": "http://127.0.0.1:1", "pid": 1, "agent_file": "/agent.yaml"}"#;
        fs::write(folder.path().join(FILE), left).expect("a file");
        assert_eq!(find(folder.path()), None);
        let database = Location::Sqlite(folder.path().join("wharf.db"));
        let mut claims = GatewayClaims::take(Some(&database), Some(folder.path())).await.expect("it is free");
        claims.publish(&gateway());
        assert_eq!(find(folder.path()), Some(gateway()));
    }

    #[tokio::test]
    async fn sqlite_database_has_one_gateway() {
        let folder = TempDir::new().expect("a folder");
        let [one, other] = ["one", "other"].map(|it| folder.path().join(it));
        let database = Location::Sqlite(folder.path().join("named.db"));
        let mut first = GatewayClaims::take(Some(&database), Some(&one)).await.expect("it is free");
        first.publish(&gateway());
        let refused = GatewayClaims::take(Some(&database), Some(&other)).await.expect_err("it is in use");
        assert!(refused.contains("named.db") && refused.contains("http://127.0.0.1:7373"), "{refused}");
        assert_eq!(find(&one), Some(gateway()), "it is found in its state folder too");
    }

    #[tokio::test]
    async fn gateways_on_postgres_share_a_state_folder() {
        let folder = TempDir::new().expect("a folder");
        let database = Location::Postgres("postgres://db/wharf".to_owned());
        let mut first = GatewayClaims::take(Some(&database), Some(folder.path())).await.expect("it is free");
        first.publish(&gateway());
        let mut second =
            GatewayClaims::take(Some(&database), Some(folder.path())).await.expect("they share it");
        second.publish(&RunningGateway { pid: 1, ..gateway() });
        assert_eq!(find(folder.path()), Some(gateway()));
    }

    #[test]
    fn unspecified_address_is_published_as_loopback() {
        let url =
            |address: &str| RunningGateway::new(address.parse().expect("an address"), Path::new("x")).url;
        assert_eq!(url("0.0.0.0:7373"), "http://127.0.0.1:7373");
        assert_eq!(url("[::]:7373"), "http://[::1]:7373");
        assert_eq!(url("192.0.2.1:80"), "http://192.0.2.1:80");
    }
}
