//! The MCP clients that have talked to the gateway lately, by the name they give themselves.
//!
//! A request adds to one entry, under a lock that is held for a few instructions. Names come from outside, so they are
//! truncated, and their number is bounded.

use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::time::Instant;
use wharf_mcp::{Raw, serve::Client, session::Era};
use wharf_runtime::time_format::rfc3339;

/// Maximum number of clients; the one that was silent for longest makes room.
const MAX_CLIENTS: usize = 1_000;

/// Maximum length of a client's name or version, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// A client that was silent for this long is forgotten.
const CLIENT_LIFE: Duration = Duration::from_secs(600);

/// Maximum number of sessions that are counted for one client, and of changes that wait for a reader.
const MAX_SESSIONS: usize = 1_000;
const MAX_CHANGES: usize = 100;

/// Calls are counted in parts of a minute.
const PART: Duration = Duration::from_secs(5);
const PARTS: usize = 12;

/// The clients of the gateway.
#[derive(Debug, Default)]
pub(crate) struct SeenClients {
    hasher: RandomState,
    state: Mutex<ClientsState>,
}

#[derive(Debug, Default)]
struct ClientsState {
    clients: BTreeMap<u64, SeenClient>,
    changes: VecDeque<ClientChange>,
}

/// A client that came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientChange {
    pub(crate) name: String,
    /// `connected` or `gone`.
    pub(crate) change: &'static str,
}

/// The origin of one request.
#[derive(Debug)]
pub(super) struct RequestOrigin<'a> {
    pub(super) client: &'a Client,
    pub(super) transport: &'static str,
    pub(super) principal: Option<&'a str>,
    pub(super) is_call: bool,
}

#[derive(Debug)]
struct SeenClient {
    name: String,
    version: String,
    era: Era,
    transport: &'static str,
    principal: Option<String>,
    /// Sessions by number, and when each was last used.
    sessions: BTreeMap<u64, Instant>,
    /// Start of a part of a minute, and the calls in it.
    calls: VecDeque<(Instant, u64)>,
    last_used: Instant,
    last_seen: SystemTime,
}

impl SeenClients {
    /// Notes a request.
    pub(super) fn note(&self, origin: &RequestOrigin<'_>) {
        let RequestOrigin { client, transport, principal, is_call } = *origin;
        let terms = client.terms();
        let info = terms.info.as_ref().map(Raw::as_bytes);
        let key = self.hasher.hash_one((info, terms.era == Era::Modern, transport, principal));
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let seen = match state.clients.get_mut(&key) {
            Some(seen) => seen,
            None => state.add(key, SeenClient::new(origin, now), now),
        };
        (seen.last_used, seen.last_seen) = (now, SystemTime::now());
        // A client of 2026-07-28 over HTTP has no session.
        let has_session = terms.era == Era::Legacy || transport != "http";
        if has_session && (seen.sessions.len() < MAX_SESSIONS || seen.sessions.contains_key(&client.number()))
        {
            seen.sessions.insert(client.number(), now);
        }
        if is_call {
            seen.count_call(now);
        }
    }

    /// Lists the clients, by name.
    pub(crate) fn list(&self) -> Vec<Value> {
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget_silent(now);
        let mut clients: Vec<&SeenClient> = state.clients.values().collect();
        clients.sort_by(|a, b| a.key().cmp(&b.key()));
        clients.into_iter().map(|it| it.to_json(now)).collect()
    }

    /// Takes the changes since the last time.
    pub(crate) fn take_changes(&self) -> VecDeque<ClientChange> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget_silent(Instant::now());
        std::mem::take(&mut state.changes)
    }
}

impl ClientsState {
    fn add(&mut self, key: u64, client: SeenClient, now: Instant) -> &mut SeenClient {
        self.forget_silent(now);
        if self.clients.len() >= MAX_CLIENTS {
            let oldest = self.clients.iter().min_by_key(|(_, it)| it.last_used).map(|(key, _)| *key);
            oldest.and_then(|it| self.clients.remove(&it));
        }
        self.tell(&client.name, "connected");
        self.clients.entry(key).or_insert(client)
    }

    fn forget_silent(&mut self, now: Instant) {
        let is_silent = |it: &SeenClient| now - it.last_used >= CLIENT_LIFE;
        let gone: Vec<String> =
            self.clients.values().filter(|it| is_silent(it)).map(|it| it.name.clone()).collect();
        if !gone.is_empty() {
            self.clients.retain(|_, it| !is_silent(it));
            gone.iter().for_each(|it| self.tell(it, "gone"));
        }
    }

    fn tell(&mut self, name: &str, change: &'static str) {
        self.changes.push_back(ClientChange { name: name.to_owned(), change });
        if self.changes.len() > MAX_CHANGES {
            self.changes.pop_front();
        }
    }
}

impl SeenClient {
    fn new(origin: &RequestOrigin<'_>, now: Instant) -> SeenClient {
        let RequestOrigin { client, transport, principal, .. } = *origin;
        let terms = client.terms();
        let text = |key: &str| {
            let text = terms.info.as_ref().and_then(|it| it.member(key)?.decode::<String>().ok());
            text.map(|it| it[..it.floor_char_boundary(MAX_NAME_BYTES)].to_owned()).unwrap_or_default()
        };
        SeenClient {
            name: text("name"),
            version: text("version"),
            era: terms.era,
            transport,
            principal: principal.map(str::to_owned),
            sessions: BTreeMap::new(),
            calls: VecDeque::new(),
            last_used: now,
            last_seen: SystemTime::now(),
        }
    }

    fn count_call(&mut self, now: Instant) {
        match self.calls.back_mut() {
            Some((start, calls)) if now - *start < PART => *calls += 1,
            _ => self.calls.push_back((now, 1)),
        }
        if self.calls.len() > PARTS {
            self.calls.pop_front();
        }
    }

    fn key(&self) -> (&str, &str, &str, Option<&str>, bool) {
        (&self.name, &self.version, self.transport, self.principal.as_deref(), self.era == Era::Modern)
    }

    fn to_json(&self, now: Instant) -> Value {
        let calls = self.calls.iter().filter(|(start, _)| now - *start < PART * PARTS as u32);
        let sessions = self.sessions.values().filter(|it| now - **it < CLIENT_LIFE).count();
        json!({
            "name": self.name,
            "version": self.version,
            "era": self.era.as_str(),
            "transport": self.transport,
            "principal": self.principal,
            "sessions": sessions,
            "calls_per_minute": calls.map(|(_, calls)| calls).sum::<u64>(),
            "last_seen": rfc3339(self.last_seen),
        })
    }
}
