//! The table of breakers: how they stand for all gateways that share a database.
//!
//! A turn is a compare-and-set on the epoch. Times are the database's own, so that gateways whose clocks differ agree.

use crate::{
    Change, Store, StoreError,
    rows::{Touched, plain_row},
    statement::Statement,
};
use std::time::Duration;

/// One breaker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakerRow {
    /// The source it is of.
    pub source: String,
    /// `closed`, `open` or `half-open`.
    pub state: String,
    /// How often it has turned.
    pub epoch: i64,
    /// For how many microseconds more nobody may try, if it is not closed. Less than nothing if somebody may.
    pub wait: i64,
    /// Who is trying.
    pub prober: Option<String>,
}

plain_row!(BreakerRow { source, state, epoch, wait, prober });

/// The epoch that a breaker has come to.
struct Turned {
    epoch: i64,
}

plain_row!(Turned { epoch });

impl Store {
    /// All breakers that have ever turned.
    pub async fn breakers(&self) -> Result<Vec<BreakerRow>, StoreError> {
        self.read(self.select_breakers()).await
    }

    /// One of them.
    pub async fn breaker(&self, source: &str) -> Result<Option<BreakerRow>, StoreError> {
        let rows = self.read(self.select_breakers().and("source = ", Some(source))).await?;
        Ok(rows.into_iter().next())
    }

    /// Closes a breaker, or opens it for some time, if it has still this epoch (0: if it has never turned), or whatever its
    /// epoch is. Gives the next epoch; `None` if somebody else was faster.
    pub async fn turn_breaker(
        &self,
        source: &str,
        epoch: Option<i64>,
        open_for: Option<Duration>,
    ) -> Result<Option<i64>, StoreError> {
        let state = if open_for.is_some() { "open" } else { "closed" };
        let statement = self.breaker_turned(source, state, open_for.unwrap_or_default(), None);
        let statement = statement.sql(" WHERE 1 = 1").and("breakers.epoch = ", epoch);
        self.turn(statement.sql(" RETURNING epoch")).await
    }

    /// Takes the right to try whether a source is back, for as long as the lease lasts. Of all who ask one gets it: its
    /// epoch. `None` if it is too early, somebody else is trying, or the breaker is closed.
    pub async fn lease_probe(&self, source: &str, lease: Duration) -> Result<Option<i64>, StoreError> {
        let statement = self.breaker_turned(source, "half-open", lease, Some(self.replica()));
        let statement = statement.sql(" WHERE breakers.state <> 'closed' AND breakers.due_at <= ");
        self.turn(statement.sql(self.now()).sql(" RETURNING epoch")).await
    }

    /// Keeps that right for longer. Says whether it was still held.
    pub async fn renew_probe(&self, source: &str, epoch: i64, lease: Duration) -> Result<bool, StoreError> {
        let statement = Statement::new("UPDATE breakers SET due_at = ").sql(self.now()).sql(" + ");
        let statement = statement.value(micros(lease)).sql(" WHERE source = ").value(source);
        let statement = statement.sql(" AND epoch = ").value(epoch).sql(" RETURNING epoch");
        let renewed: Vec<Touched> = self.write_one(statement).await?;
        Ok(!renewed.is_empty())
    }

    async fn turn(&self, statement: Statement) -> Result<Option<i64>, StoreError> {
        let turned: Vec<Turned> = self.write_and_tell(&Change::Breakers, vec![statement]).await?;
        Ok(turned.first().map(|it| it.epoch))
    }

    fn select_breakers(&self) -> Statement {
        let statement = Statement::new("SELECT source, state, epoch, due_at - ").sql(self.now());
        statement.sql(" AS wait, prober FROM breakers WHERE 1 = 1")
    }

    /// A row, or what a row becomes that is there: as far as the condition.
    fn breaker_turned(&self, source: &str, state: &str, due_in: Duration, prober: Option<&str>) -> Statement {
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

/// No time is so long that it could not be added to now.
fn micros(time: Duration) -> i64 {
    const YEAR: i64 = 366 * 86_400 * 1_000_000;
    i64::try_from(time.as_micros()).unwrap_or(YEAR).min(YEAR)
}
