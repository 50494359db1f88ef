//! Tests the state that replicas share: notifications, breakers, sessions.

use crate::{
    engines::{Database, on_both},
    postgres::Postgres,
};
use std::time::Duration;
use tokio::time::timeout;
use wharf_store::{Change, Changes, ListedTool, Location, SessionRow, SourceRow, Store, ToolSwitch};

const HOUR: Duration = Duration::from_secs(3_600);

/// Timeout for each step, generous enough for a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

async fn next(changes: &mut Changes) -> Change {
    timeout(STEP_TIMEOUT, changes.next()).await.expect("news in time").expect("news")
}

#[tokio::test]
async fn replica_receives_changes_of_others_only() {
    let database = Database::make().await;
    let open = async || Store::open(&database.location).await.expect("the database opens");
    let (here, there) = (open().await, open().await);
    let mut received = there.changes();
    assert_eq!(next(&mut received).await, Change::Everything, "a new listener may have missed changes");
    let tool = ListedTool { wire_name: "t".into(), definition: "{}".into(), definition_hash: "h".into() };
    let source = SourceRow { id: "1".into(), name: "s".into(), ..SourceRow::default() };
    let session = SessionRow { session_key: "k".into(), watched: "[]".into(), ..SessionRow::default() };

    there.switch_tool("s", &tool, None).await.expect("it is written");
    here.begin_session(&session, HOUR).await.expect("it is written");
    here.insert_source(&source).await.expect("it is written");
    assert_eq!(next(&mut received).await, Change::Sources);
    here.insert_source(&source).await.expect_err("there is one");
    here.switch_tool("s", &tool, Some(&ToolSwitch::default())).await.expect("it is written");
    assert_eq!(next(&mut received).await, Change::Tools, "a failed write sends no notification");
    here.set_breaker("s", None, Some(HOUR)).await.expect("it is written");
    assert_eq!(next(&mut received).await, Change::Breakers);
    here.update_session(&session, HOUR).await.expect("it is written");
    assert_eq!(next(&mut received).await, Change::Session("k".into()));
    assert!(here.end_session("k").await.expect("it is written"));
    assert_eq!(next(&mut received).await, Change::Session("k".into()));
    assert!(here.delete_source("1").await.expect("it is written"));
    assert_eq!(next(&mut received).await, Change::Sources);
}

#[tokio::test]
async fn after_an_outage_everything_counts_as_changed() {
    let mut server = Postgres::start();
    let location = Location::parse(&server.address()).expect("an address");
    let (here, there) = (Store::open(&location).await, Store::open(&location).await);
    let (here, there) = (here.expect("the database opens"), there.expect("the database opens"));
    let mut received = there.changes();
    assert_eq!(next(&mut received).await, Change::Everything);
    server.stop();
    assert_eq!(next(&mut received).await, Change::Lost);
    server.start_again().expect("it starts again");
    assert_eq!(next(&mut received).await, Change::Everything);
    here.set_breaker("s", None, None).await.expect("it is written");
    assert_eq!(next(&mut received).await, Change::Breakers);
}

#[tokio::test]
async fn sqlite_has_no_change_notifications() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let location = Location::Sqlite(folder.path().join("wharf.db"));
    let store = Store::open(&location).await.expect("the database opens");
    assert_eq!(store.changes().next().await, None);
    assert!(!store.is_shared());
}

#[tokio::test]
async fn one_replica_changes_a_breaker_and_gets_the_probe() {
    on_both(async |store| {
        let turn =
            async |epoch, open_for| store.set_breaker("s", epoch, open_for).await.expect("it is asked");
        assert_eq!(turn(Some(0), Some(HOUR)).await, Some(1));
        assert_eq!(turn(Some(0), Some(HOUR)).await, None, "the epoch has changed");
        let probe = async |lease| store.lease_probe("s", lease).await.expect("it is asked");
        assert_eq!(probe(HOUR).await, None, "it is too early");
        let row = store.breaker("s").await.expect("it is read").expect("a row");
        assert_eq!((row.state.as_str(), row.epoch), ("open", 1));
        assert!(row.wait > 3_590_000_000, "{row:?}");

        assert_eq!(turn(Some(1), Some(Duration::ZERO)).await, Some(2));
        assert_eq!(probe(HOUR).await, Some(3));
        assert_eq!(probe(HOUR).await, None, "another replica holds the lease");
        let row = store.breaker("s").await.expect("it is read").expect("a row");
        assert_eq!((row.state.as_str(), row.prober.as_deref()), ("half-open", Some(store.replica())));
        assert!(store.renew_probe("s", 3, Duration::ZERO).await.expect("it is asked"));
        assert_eq!(probe(HOUR).await, Some(4), "the lease of the other prober has expired");
        assert!(!store.renew_probe("s", 3, HOUR).await.expect("it is asked"));
        assert_eq!(turn(Some(3), None).await, None, "the lease was lost");
        assert_eq!(turn(None, None).await, Some(5), "an operator is not asked");
        assert_eq!(probe(HOUR).await, None, "there is nothing to try");
        assert_eq!(store.lease_probe("new", HOUR).await.expect("it is asked"), Some(1));
        let known = store.breakers().await.expect("they are read");
        assert_eq!(known.len(), 2, "{known:?}");
    })
    .await;
}

#[tokio::test]
async fn session_is_stored_until_it_expires_or_ends() {
    on_both(async |store| {
        let first = SessionRow {
            session_key: "k".into(),
            principal: Some("me".into()),
            version: "2025-06-18".into(),
            capabilities: "{}".into(),
            client_info: Some("{\"name\":\"c\"}".into()),
            log_level: None,
            watched: "[]".into(),
        };
        store.begin_session(&first, HOUR).await.expect("it is written");
        let read = async |key| store.session(key).await.expect("it is read");
        assert_eq!(read("k").await, Some(first.clone()));
        assert_eq!(read("other").await, None);
        let later =
            SessionRow { log_level: Some("debug".into()), watched: "[\"a:b\"]".into(), ..first.clone() };
        store.update_session(&later, HOUR).await.expect("it is written");
        assert_eq!(read("k").await, Some(later.clone()));
        store.update_session(&later, Duration::ZERO).await.expect("it is written");
        assert_eq!(read("k").await, None, "its time is over");
        store
            .begin_session(&SessionRow { session_key: "l".into(), ..first }, HOUR)
            .await
            .expect("it is written");
        assert!(!store.end_session("k").await.expect("it is asked"), "what is over has gone");
        assert!(store.end_session("l").await.expect("it is asked"));
    })
    .await;
}
