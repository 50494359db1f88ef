//! Tickets and sessions in memory. The caller gives the time, in microseconds since 1970.

use super::{SESSION_LIFE, micros};
use std::{collections::HashMap, time::Duration};
use wharf_store::CredentialRow;

/// Credentials by their key, each with the time at which it was read.
#[derive(Debug, Default)]
pub(super) struct CredentialTable {
    rows: HashMap<String, (CredentialRow, i64)>,
}

impl CredentialTable {
    /// Adds a ticket with this life and returns its row, or `None` if the principal has `limit` of them.
    pub(super) fn add_ticket(
        &mut self,
        row: CredentialRow,
        now: i64,
        life: Duration,
        limit: usize,
    ) -> Option<CredentialRow> {
        (self.of(&row.principal, "ticket", now).len() < limit).then(|| self.add(row, now, life))
    }

    /// Adds a session with this life. Ends the sessions of the principal beyond `limit`, those first that expire first.
    pub(super) fn add_session(
        &mut self,
        row: CredentialRow,
        now: i64,
        life: Duration,
        limit: usize,
    ) -> CredentialRow {
        let sessions = self.of(&row.principal, "session", now);
        let surplus = (sessions.len() + 1).saturating_sub(limit);
        sessions.iter().take(surplus).for_each(|it| self.remove(&it.credential_key));
        self.add(row, now, life)
    }

    fn add(&mut self, row: CredentialRow, now: i64, life: Duration) -> CredentialRow {
        let row = CredentialRow { created_at: now, expires_at: now + micros(life), ..row };
        self.cache(row.clone(), now);
        row
    }

    /// Adds a row as it is in the database, and removes expired ones.
    pub(super) fn cache(&mut self, row: CredentialRow, now: i64) {
        self.rows.retain(|_, (it, _)| it.expires_at > now);
        self.rows.insert(row.credential_key.clone(), (row, now));
    }

    /// Removes a ticket and returns it, unless it has expired.
    pub(super) fn take_ticket(&mut self, key: &str, now: i64) -> Option<CredentialRow> {
        let is_valid = self.rows.get(key).is_some_and(|(it, _)| it.kind == "ticket" && it.expires_at > now);
        self.rows.remove(key).filter(|_| is_valid).map(|(row, _)| row)
    }

    /// Returns a session that has not expired, and when it was read.
    pub(super) fn session(&self, key: &str, now: i64) -> Option<(CredentialRow, i64)> {
        self.rows.get(key).filter(|(it, _)| it.kind == "session" && it.expires_at > now).cloned()
    }

    /// Extends a session until `end`, but not beyond the life of any session.
    pub(super) fn extend(&mut self, mut row: CredentialRow, end: i64) -> CredentialRow {
        row.expires_at = end.min(row.created_at + micros(SESSION_LIFE));
        if let Some((known, _)) = self.rows.get_mut(&row.credential_key) {
            known.expires_at = row.expires_at;
        }
        row
    }

    /// Counts the valid sessions of each principal.
    pub(super) fn count_sessions(&self, now: i64) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        let rows = self.rows.values().map(|(it, _)| it);
        for row in rows.filter(|it| it.kind == "session" && it.expires_at > now) {
            *counts.entry(row.principal.clone()).or_default() += 1;
        }
        counts
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.rows.remove(key);
    }

    /// Returns the valid credentials of this kind of a principal. The one that expires first is first.
    fn of(&self, principal: &str, kind: &str, now: i64) -> Vec<CredentialRow> {
        let is_meant =
            |it: &&CredentialRow| it.principal == principal && it.kind == kind && it.expires_at > now;
        let mut found: Vec<CredentialRow> =
            self.rows.values().map(|(it, _)| it).filter(is_meant).cloned().collect();
        found.sort_by_key(|it| it.expires_at);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{SESSION_IDLE_LIFE, TICKET_LIFE, extended},
        *,
    };

    const HOUR: i64 = 3_600_000_000;

    fn row(key: &str, kind: &str) -> CredentialRow {
        let (key, kind) = (key.to_owned(), kind.to_owned());
        CredentialRow { credential_key: key, kind, principal: "ada".to_owned(), ..CredentialRow::default() }
    }

    #[test]
    fn ticket_works_once_and_for_five_minutes() {
        let mut table = CredentialTable::default();
        table.add(row("a", "ticket"), 0, TICKET_LIFE);
        table.add(row("b", "ticket"), 0, TICKET_LIFE);
        assert!(table.take_ticket("a", 299_000_000).is_some());
        assert!(table.take_ticket("a", 299_000_000).is_none());
        assert!(table.take_ticket("b", 360_000_000).is_none(), "six minutes old");
    }

    #[test]
    fn session_ends_after_8_hours_without_use_and_after_24_hours() {
        let mut table = CredentialTable::default();
        table.add(row("idle", "session"), 0, SESSION_IDLE_LIFE);
        table.add(row("used", "session"), 0, SESSION_IDLE_LIFE);
        for hour in [7, 14, 21, 23] {
            let (used, _) = table.session("used", hour * HOUR).expect("it is used");
            table.extend(used, extended(hour * HOUR));
        }
        assert!(table.session("idle", 8 * HOUR).is_none());
        assert!(table.session("used", 24 * HOUR - 1).is_some());
        assert!(table.session("used", 24 * HOUR).is_none());
    }

    #[test]
    fn kinds_are_not_mixed_up() {
        let mut table = CredentialTable::default();
        table.add(row("t", "ticket"), 0, TICKET_LIFE);
        table.add(row("s", "session"), 0, SESSION_IDLE_LIFE);
        assert!(table.session("t", 1).is_none() && table.take_ticket("s", 1).is_none());
        assert_eq!(table.of("ada", "ticket", 1).len(), 1);
        assert_eq!(table.of("bob", "ticket", 1).len(), 0);
    }
}
