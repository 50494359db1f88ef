//! Signing in to the console: one-time tickets, and the sessions that they or a token buy.
//!
//! Both are bearer credentials of the principal whose token issued them. Only their hashes are kept: in memory on
//! SQLite, in the database on PostgreSQL, so that every replica accepts them. A credential is bound to its token: it is
//! worth nothing once the gateway no longer knows that token.

mod credential_table;

use super::{
    problem::Problem,
    tokens::{Principal, Tokens},
};
use crate::journal::DatabaseStatus;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use credential_table::CredentialTable;
use http::StatusCode;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::timeout;
use wharf_store::{CredentialRow, Store, StoreError};

/// First characters of a ticket and of a session.
const TICKET_PREFIX: &str = "wt_";
const SESSION_PREFIX: &str = "ws_";

/// How long a ticket is valid, how long an unused session, and how long any session.
const TICKET_LIFE: Duration = Duration::from_secs(5 * 60);
const SESSION_IDLE_LIFE: Duration = Duration::from_secs(8 * 60 * 60);
const SESSION_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of unused tickets, and of sessions, for each principal.
const MAX_TICKETS: usize = 16;
const MAX_SESSIONS: usize = 64;

/// How often the use of a session extends it, and how long a session of the database is known without asking again.
const EXTENSION_INTERVAL: Duration = Duration::from_secs(5 * 60);
const CACHE_LIFE: Duration = Duration::from_secs(30);

/// Timeout of a database query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// All valid tickets and sessions.
#[derive(Debug)]
pub(super) struct SignIns {
    /// The credentials, or with a shared database a cache of its sessions.
    table: Mutex<CredentialTable>,
    database: Option<(Store, Arc<DatabaseStatus>)>,
}

/// A new ticket or session.
#[derive(Debug)]
pub(super) struct IssuedCredential {
    pub(super) secret: String,
    pub(super) expires_at: SystemTime,
}

/// The credential that a request was authenticated with.
#[derive(Clone, Debug)]
pub(super) enum SignedInBy {
    /// None: the gateway requires none.
    Nothing,
    Token,
    Ticket,
    Session {
        key: String,
        expires_at: SystemTime,
    },
}

impl SignIns {
    /// Keeps credentials in this database if replicas share it, and in memory otherwise.
    pub(super) fn new(store: &Store, status: &Arc<DatabaseStatus>) -> SignIns {
        let database = store.is_shared().then(|| (store.clone(), status.clone()));
        SignIns { table: Mutex::default(), database }
    }

    /// Issues a ticket. Fails if the principal has too many unused ones.
    pub(super) async fn issue_ticket(&self, principal: &Principal) -> Result<IssuedCredential, Problem> {
        let (secret, row) = new_credential("ticket", principal)?;
        let stored = match &self.database {
            Some((store, status)) => {
                run_query(status, store.add_ticket(&row, TICKET_LIFE, MAX_TICKETS)).await?
            }
            None => self.table().add_ticket(row, now(), TICKET_LIFE, MAX_TICKETS),
        };
        let Some(row) = stored else {
            let why = format!("too many unused tickets (limit {MAX_TICKETS})");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, why)
                .hint("use one of them, or wait until they expire after 5 minutes")
                .retry_after(Duration::from_secs(60)));
        };
        Ok(IssuedCredential { secret, expires_at: time(row.expires_at) })
    }

    /// Opens a session. If the principal has too many, the one that was unused for longest ends.
    pub(super) async fn open_session(&self, principal: &Principal) -> Result<IssuedCredential, Problem> {
        let (secret, row) = new_credential("session", principal)?;
        let Some((store, status)) = &self.database else {
            let row = self.table().add_session(row, now(), SESSION_IDLE_LIFE, MAX_SESSIONS);
            return Ok(IssuedCredential { secret, expires_at: time(row.expires_at) });
        };
        let opened = store.add_console_session(&row, SESSION_IDLE_LIFE, MAX_SESSIONS);
        for ended in run_query(status, opened).await? {
            // It is gone from the database; this tells the replicas that have it in their cache.
            self.end_session(&ended).await?;
        }
        let stored = run_query(status, store.console_session(&row.credential_key)).await?;
        let expires_at = stored.map_or_else(|| extended(now()), |it| it.expires_at);
        Ok(IssuedCredential { secret, expires_at: time(expires_at) })
    }

    /// Authenticates a request by a credential that is not a token. Only `takes_ticket` may use a ticket, which is
    /// worth nothing afterwards.
    pub(super) async fn admit(
        &self,
        tokens: &Tokens,
        secret: String,
        takes_ticket: bool,
    ) -> Result<(Arc<Principal>, SignedInBy), Problem> {
        let key = hex(&Sha256::digest(&secret));
        let is_ticket = secret.starts_with(TICKET_PREFIX) && takes_ticket;
        let row = match (is_ticket, secret.starts_with(SESSION_PREFIX)) {
            (true, _) => self.take_ticket(&key).await?,
            (_, true) => self.use_session(&key).await?,
            _ => None,
        };
        let row = row.ok_or_else(Problem::unauthorized)?;
        let principal = tokens.find(|it| binding(&secret, it) == row.binding);
        let principal = principal.ok_or_else(Problem::unauthorized)?;
        principal.note_use();
        let expires_at = time(row.expires_at);
        let by = if is_ticket { SignedInBy::Ticket } else { SignedInBy::Session { key, expires_at } };
        Ok((principal, by))
    }

    async fn take_ticket(&self, key: &str) -> Result<Option<CredentialRow>, Problem> {
        match &self.database {
            Some((store, status)) => run_query(status, store.take_ticket(key)).await,
            None => Ok(self.table().take_ticket(key, now())),
        }
    }

    /// Finds a session and extends its life.
    async fn use_session(&self, key: &str) -> Result<Option<CredentialRow>, Problem> {
        let now = now();
        let cached = self.table().session(key, now);
        let Some((store, status)) = &self.database else {
            return Ok(cached.map(|(row, _)| self.table().extend(row, extended(now))));
        };
        if let Some((row, read_at)) = &cached
            && (now - read_at < micros(CACHE_LIFE) || status.is_away())
        {
            return Ok(Some(row.clone()));
        }
        let Some(mut row) = run_query(status, store.console_session(key)).await? else {
            self.table().remove(key);
            return Ok(None);
        };
        let end = extended(now).min(row.created_at + micros(SESSION_LIFE));
        if end - row.expires_at > micros(EXTENSION_INTERVAL) {
            run_query(status, store.extend_console_session(key, end)).await?;
            row.expires_at = end;
        }
        self.table().cache(row.clone(), now);
        Ok(Some(row))
    }

    /// Ends a session.
    pub(super) async fn end_session(&self, key: &str) -> Result<(), Problem> {
        self.table().remove(key);
        match &self.database {
            Some((store, status)) => run_query(status, store.end_console_session(key)).await,
            None => Ok(()),
        }
    }

    /// Counts the sessions of each principal.
    pub(super) async fn count_sessions(&self) -> Result<HashMap<String, usize>, Problem> {
        match &self.database {
            Some((store, status)) => {
                let counts = run_query(status, store.count_console_sessions()).await?;
                Ok(counts.into_iter().collect())
            }
            None => Ok(self.table().count_sessions(now())),
        }
    }

    /// Forgets the cached session of this key, or all of them, because another replica ended it.
    pub(super) fn invalidate(&self, key: Option<&str>) {
        if self.database.is_some() {
            match key {
                Some(key) => self.table().remove(key),
                None => *self.table() = CredentialTable::default(),
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, CredentialTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a query with a timeout. Fails at once if the database is unreachable.
async fn run_query<T>(
    status: &DatabaseStatus,
    query: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Problem> {
    if !status.is_away() {
        match timeout(QUERY_TIMEOUT, query).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => {
                tracing::warn!(target: "wharf::console", "the sessions of the console cannot be used: {error}");
            }
            Err(_) => {}
        }
    }
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the database is unreachable")
        .hint("try again later; tokens still work")
        .retry_after(Duration::from_secs(1)))
}

/// Creates a credential and its row, without times.
fn new_credential(kind: &str, principal: &Principal) -> Result<(String, CredentialRow), Problem> {
    let secret = random_secret(if kind == "ticket" { TICKET_PREFIX } else { SESSION_PREFIX })?;
    let row = CredentialRow {
        credential_key: hex(&Sha256::digest(&secret)),
        kind: kind.to_owned(),
        principal: principal.name.to_string(),
        binding: binding(&secret, principal),
        ..CredentialRow::default()
    };
    Ok((secret, row))
}

/// Generates 32 random bytes as text.
fn random_secret(prefix: &str) -> Result<String, Problem> {
    let mut random = [0; 32];
    aws_lc_rs::rand::fill(&mut random)
        .map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "there is no randomness"))?;
    Ok(format!("{prefix}{}", BASE64_URL_SAFE_NO_PAD.encode(random)))
}

/// Binds a credential to the token of a principal. The secret is part of the hash, so the stored value reveals nothing
/// about the token.
fn binding(secret: &str, principal: &Principal) -> String {
    hex(&Sha256::new().chain_update(secret).chain_update(principal.token_hash()).finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The current time in microseconds since 1970, as in the database.
fn now() -> i64 {
    micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn extended(now: i64) -> i64 {
    now + micros(SESSION_IDLE_LIFE)
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn time(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
