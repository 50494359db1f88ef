//! The `breakers` table: the state of every circuit breaker, shared by all replicas on one database.
//!
//! A state change is a compare-and-set on the epoch, so exactly one replica wins. All times come from the database
//! clock, because the clocks of the replicas may differ.

use crate::{
    Change, Store, StoreError,
    rows::{AnyRow, plain_row},
    statement::Statement,
};
use std::time::Duration;

/// The circuit breaker of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakerRow {
    /// Name of the source.
    pub source: String,
    /// `closed`, `open` or `half-open`.
    pub state: String,
    /// Number of state changes so far.
    pub epoch: i64,
    /// Microseconds until the next probe is allowed, if the breaker is not closed. Zero or negative means now.
    pub wait: i64,
    /// Replica that holds the lease for the half-open probe.
    pub prober: Option<String>,
}

plain_row!(BreakerRow { source, state, epoch, wait, prober });

/// The epoch that a write returns.
struct EpochRow {
    epoch: i64,
}

plain_row!(EpochRow { epoch });

impl Store {
    /// Returns all breakers that have ever changed state.
    pub async fn breakers(&self) -> Result<Vec<BreakerRow>, StoreError> {
        self.read(self.select_breakers()).await
    }

    /// Returns the breaker of one source.
    pub async fn breaker(&self, source: &str) -> Result<Option<BreakerRow>, StoreError> {
        let rows = self.read(self.select_breakers().and("source = ", Some(source))).await?;
        Ok(rows.into_iter().next())
    }

    /// Closes a breaker, or opens it for `open_for`, and returns the new epoch.
    ///
    /// With `epoch`, the breaker changes only if it still has that epoch; 0 means that it has never changed.
    /// Returns `None` if another replica changed it first.
    pub async fn set_breaker(
        &self,
        source: &str,
        epoch: Option<i64>,
        open_for: Option<Duration>,
    ) -> Result<Option<i64>, StoreError> {
        let state = if open_for.is_some() { "open" } else { "closed" };
        let statement = self.upsert_breaker(source, state, open_for.unwrap_or_default(), None);
        let statement = statement.sql(" WHERE 1 = 1").and("breakers.epoch = ", epoch);
        self.write_breaker(statement.sql(" RETURNING epoch")).await
    }

    /// Takes the lease for the half-open probe of a source and returns its epoch. Only one replica gets the lease.
    ///
    /// Returns `None` if the breaker is closed, the open time has not passed, or another replica holds the lease.
    pub async fn lease_probe(&self, source: &str, lease: Duration) -> Result<Option<i64>, StoreError> {
        let statement = self.upsert_breaker(source, "half-open", lease, Some(self.replica()));
        let statement = statement.sql(" WHERE breakers.state <> 'closed' AND breakers.due_at <= ");
        self.write_breaker(statement.sql(self.now()).sql(" RETURNING epoch")).await
    }

    /// Extends the probe lease. Returns whether this replica still held it.
    pub async fn renew_probe(&self, source: &str, epoch: i64, lease: Duration) -> Result<bool, StoreError> {
        let statement = Statement::new("UPDATE breakers SET due_at = ").sql(self.now()).sql(" + ");
        let statement = statement.value(micros(lease)).sql(" WHERE source = ").value(source);
        let statement = statement.sql(" AND epoch = ").value(epoch).sql(" RETURNING epoch");
        let renewed: Vec<AnyRow> = self.write_one(statement).await?;
        Ok(!renewed.is_empty())
    }

    async fn write_breaker(&self, statement: Statement) -> Result<Option<i64>, StoreError> {
        let epochs: Vec<EpochRow> = self.write_and_notify(&Change::Breakers, vec![statement]).await?;
        Ok(epochs.first().map(|it| it.epoch))
    }

    fn select_breakers(&self) -> Statement {
        let statement = Statement::new("SELECT source, state, epoch, due_at - ").sql(self.now());
        statement.sql(" AS wait, prober FROM breakers WHERE 1 = 1")
    }

    /// Builds the upsert of one breaker row. The caller appends the condition for the update.
    fn upsert_breaker(&self, source: &str, state: &str, due_in: Duration, prober: Option<&str>) -> Statement {
        Statement::new("INSERT INTO breakers (source, state, epoch, prober, due_at) VALUES (")
            .values([source.into(), state.into(), 1_i64.into(), prober.into()])
            .sql(", ")
            .sql(self.now())
            .sql(" + ")
            .value(micros(due_in))
            .sql(
                ") ON CONFLICT (source) DO UPDATE SET state = excluded.state, epoch = breakers.epoch + 1, \
                 prober = excluded.prober, due_at = excluded.due_at",
            )
    }
}

/// Converts to microseconds, capped at one year so that adding the current time cannot overflow.
fn micros(time: Duration) -> i64 {
    const YEAR: i64 = 366 * 86_400 * 1_000_000;
    i64::try_from(time.as_micros()).unwrap_or(YEAR).min(YEAR)
}
