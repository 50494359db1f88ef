//! What others on the same database change, as they change it.
//!
//! PostgreSQL tells everybody who listens (`LISTEN`, `NOTIFY`), at the moment when a change is committed. One connection
//! does nothing but listen. When it breaks, news may have been missed, so the first thing after that is that everything
//! counts as changed. A file has nobody to tell: with SQLite nothing ever comes.

use crate::{Store, store::Pools};
use sqlx::{
    Executor, PgPool,
    postgres::{PgListener, PgPoolOptions},
};
use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// What news travels by.
const CHANNEL: &str = "wharf";

/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(3);

/// After how long without news the connection is asked whether it is still there.
const QUIET: Duration = Duration::from_secs(30);

/// The pauses between attempts to connect: from the first, doubled, to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Something that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The registered sources.
    Sources,
    /// Which tools may be called.
    Tools,
    /// How the breakers stand.
    Breakers,
    /// The session of this key.
    Session(String),
    /// Anything: nobody was listening for a while.
    Everything,
    /// The database cannot be reached, and nothing is heard until everything has changed.
    Lost,
}

/// What others change; see [`Store::changes`].
#[derive(Debug)]
pub struct Changes {
    replica: String,
    /// Makes connections that only listen.
    pool: Option<PgPool>,
    listener: Option<PgListener>,
    /// Whoever listens knows that nothing is heard.
    lost: bool,
    pause: Duration,
}

impl Store {
    /// What others on the same database change. On SQLite nothing ever comes.
    pub fn changes(&self) -> Changes {
        let pool = match &self.pools {
            Pools::Sqlite(_) => None,
            Pools::Postgres(pool) => {
                let options = PgPoolOptions::new().max_connections(1).acquire_timeout(PATIENCE);
                let options = options.idle_timeout(None).max_lifetime(None);
                Some(options.connect_lazy_with((*pool.connect_options()).clone()))
            }
        };
        Changes { replica: self.replica.to_string(), pool, listener: None, lost: false, pause: FIRST_PAUSE }
    }

    /// Whether others may work with the same database, as gateways on other machines do.
    pub fn is_shared(&self) -> bool {
        matches!(self.pools, Pools::Postgres(_))
    }

    /// What this process is known by among those that share a database.
    pub fn replica(&self) -> &str {
        &self.replica
    }
}

impl Changes {
    /// The next change that somebody else has made; `None` if none will ever come.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            let Some(listener) = &mut self.listener else {
                return self.connect().await;
            };
            let heard = timeout(QUIET, listener.try_recv()).await;
            let payload = match heard {
                Ok(Ok(Some(notification))) => notification.payload().to_owned(),
                Err(_) if is_there(listener).await => continue,
                Ok(Ok(None) | Err(_)) | Err(_) => {
                    (self.listener, self.lost) = (None, true);
                    return Some(Change::Lost);
                }
            };
            if let Some(change) = Change::read(&payload, &self.replica) {
                return Some(change);
            }
        }
    }

    /// Listens, as soon as that is possible.
    async fn connect(&mut self) -> Option<Change> {
        let pool = self.pool.as_ref()?;
        loop {
            let listening = async {
                let mut listener = PgListener::connect_with(pool).await?;
                listener.eager_reconnect(false);
                listener.listen(CHANNEL).await?;
                Ok::<_, sqlx::Error>(listener)
            };
            if let Ok(Ok(listener)) = timeout(PATIENCE, listening).await {
                (self.listener, self.lost, self.pause) = (Some(listener), false, FIRST_PAUSE);
                return Some(Change::Everything);
            }
            if !self.lost {
                self.lost = true;
                return Some(Change::Lost);
            }
            sleep(self.pause).await;
            self.pause = LAST_PAUSE.min(2 * self.pause);
        }
    }
}

/// A connection whose other end has vanished without a word is only noticed by asking.
async fn is_there(listener: &mut PgListener) -> bool {
    matches!(timeout(PATIENCE, listener.execute("SELECT 1")).await, Ok(Ok(_)))
}

impl Change {
    /// As it is told: what, by whom, and which.
    pub(crate) fn payload(&self, replica: &str) -> String {
        match self {
            Change::Sources => format!("sources {replica}"),
            Change::Tools => format!("tools {replica}"),
            Change::Breakers => format!("breakers {replica}"),
            Change::Session(key) => format!("session {replica} {key}"),
            Change::Everything | Change::Lost => format!("everything {replica}"),
        }
    }

    /// What was told, unless we told it ourselves. What a newer version tells may be anything.
    fn read(payload: &str, replica: &str) -> Option<Change> {
        let mut words = payload.split(' ');
        let (what, whose, which) = (words.next(), words.next(), words.next());
        if whose == Some(replica) {
            return None;
        }
        Some(match (what, which) {
            (Some("sources"), _) => Change::Sources,
            (Some("tools"), _) => Change::Tools,
            (Some("breakers"), _) => Change::Breakers,
            (Some("session"), Some(key)) => Change::Session(key.to_owned()),
            _ => Change::Everything,
        })
    }
}

/// The statement that tells; what is told is bound.
pub(crate) const TELL: &str = "SELECT pg_notify('wharf', $1)";

/// A name that no other process has.
pub(crate) fn name() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_is_told_to_others() {
        for change in [Change::Sources, Change::Tools, Change::Breakers, Change::Session("k".into())] {
            let payload = change.payload("me");
            assert_eq!(Change::read(&payload, "you"), Some(change), "{payload}");
            assert_eq!(Change::read(&payload, "me"), None, "{payload}");
        }
        assert_eq!(Change::read("novelties x y z", "me"), Some(Change::Everything));
        assert_eq!(Change::read("", "me"), Some(Change::Everything));
    }
}
