//! Change notifications from other replicas on the same database.
//!
//! PostgreSQL delivers them with `LISTEN` and `NOTIFY` when a change commits. One dedicated connection listens.
//! While it is down, notifications are lost, so every new connection starts with [`Change::Everything`]. SQLite has
//! no notifications: [`Changes::next`] returns `None`.

use crate::{
    Change, Store,
    change::CHANNEL,
    store::{Pools, StoreFuture},
};
use sqlx::{
    Executor, PgPool,
    postgres::{PgListener, PgPoolOptions},
};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Timeout for connecting and for the liveness check.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Time without a notification after which the connection is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Pause between connection attempts. It doubles from the first value up to the last.
const MIN_RETRY_PAUSE: Duration = Duration::from_millis(50);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Stream of changes by other replicas; see [`Store::changes`].
#[derive(Debug)]
pub struct Changes {
    replica: String,
    /// Opens the listening connection. `None` on SQLite.
    pool: Option<PgPool>,
    listener: Option<PgListener>,
    /// The loss of the connection has already been reported.
    lost: bool,
    pause: Duration,
}

impl Store {
    /// Returns the stream of changes that other replicas make. On SQLite it ends at once.
    pub fn changes(&self) -> Changes {
        let pool = match &self.pools {
            Pools::Sqlite(_) => None,
            Pools::Postgres(pool) => {
                let options = PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT_TIMEOUT);
                let options = options.idle_timeout(None).max_lifetime(None);
                Some(options.connect_lazy_with((*pool.connect_options()).clone()))
            }
        };
        Changes {
            replica: self.replica.to_string(),
            pool,
            listener: None,
            lost: false,
            pause: MIN_RETRY_PAUSE,
        }
    }

    /// Returns whether other replicas can use the same database.
    pub fn is_shared(&self) -> bool {
        matches!(self.pools, Pools::Postgres(_))
    }

    /// Returns the id of this process among the replicas.
    pub fn replica(&self) -> &str {
        &self.replica
    }
}

impl Changes {
    /// Waits for the next change by another replica. Returns `None` if there can be none.
    pub async fn next(&mut self) -> Option<Change> {
        let received: StoreFuture<'_, _> = Box::pin(self.receive());
        received.await
    }

    async fn receive(&mut self) -> Option<Change> {
        loop {
            let Some(listener) = &mut self.listener else {
                return self.connect().await;
            };
            let received = timeout(CHECK_INTERVAL, listener.try_recv()).await;
            let payload = match received {
                Ok(Ok(Some(notification))) => notification.payload().to_owned(),
                Err(_) if is_alive(listener).await => continue,
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

    /// Connects and listens, retrying until it succeeds. Reports the loss once.
    async fn connect(&mut self) -> Option<Change> {
        let pool = self.pool.as_ref()?;
        loop {
            let listening = async {
                let mut listener = PgListener::connect_with(pool).await?;
                listener.eager_reconnect(false);
                listener.listen(CHANNEL).await?;
                Ok::<_, sqlx::Error>(listener)
            };
            if let Ok(Ok(listener)) = timeout(CONNECT_TIMEOUT, listening).await {
                (self.listener, self.lost, self.pause) = (Some(listener), false, MIN_RETRY_PAUSE);
                return Some(Change::Everything);
            }
            if !self.lost {
                self.lost = true;
                return Some(Change::Lost);
            }
            sleep(self.pause).await;
            self.pause = MAX_RETRY_PAUSE.min(2 * self.pause);
        }
    }
}

/// Checks the connection with a query, because a peer that vanished silently causes no read error.
async fn is_alive(listener: &mut PgListener) -> bool {
    matches!(timeout(CONNECT_TIMEOUT, listener.execute("SELECT 1")).await, Ok(Ok(_)))
}
