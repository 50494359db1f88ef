//! Tests who may write to a conversation, and what its runs leave in it.

use crate::engines::on_both;
use wharf_store::{BeginError, ConversationRow, EntryAppend, EntryRow, RunBeginning, Store};

fn conversation(id: &str) -> ConversationRow {
    let (id, principal) = (id.to_owned(), "me".to_owned());
    ConversationRow { id, principal, title: "first".to_owned(), ..ConversationRow::default() }
}

fn entry(body: &str) -> EntryRow {
    EntryRow { kind: "user".to_owned(), body: body.to_owned(), ..EntryRow::default() }
}

fn append(entries: &[&str], state: &'static str) -> EntryAppend {
    let entries = entries.iter().map(|it| entry(it)).collect();
    EntryAppend { entries, state, input_tokens: 2, output_tokens: 3, ..EntryAppend::default() }
}

const MESSAGE: RunBeginning<'_> = RunBeginning::Message { provider: "p2", model: "m2", title: "second" };

async fn stored(store: &Store, id: &str) -> (ConversationRow, Vec<String>) {
    let row = store.conversation(id, Some("me")).await.expect("it is read").expect("it exists");
    let entries = store.entries(id, 0, 100).await.expect("they are read");
    (row, entries.into_iter().map(|it| format!("{} {} {}", it.seq, it.run_id, it.body)).collect())
}

#[tokio::test]
async fn new_conversation_begins_with_its_first_run() {
    on_both(async |store| {
        let lease = store.begin_conversation(&conversation("c"), "r1").await.expect("it begins");
        let busy = store.begin_run("c", Some("me"), "r2", MESSAGE).await;
        assert!(matches!(busy, Err(BeginError::Busy(run)) if run == "r1"));
        assert!(store.append_entries(&lease, &append(&["a", "b"], "idle")).await.expect("it is written"));
        let (row, entries) = stored(store, "c").await;
        assert_eq!(entries, ["1 r1 a", "2 r1 b"]);
        let counts = (row.entries, row.bytes, row.input_tokens, row.output_tokens, row.epoch);
        assert_eq!((counts, row.state.as_str()), ((2, 2, 2, 3, 1), "idle"));
        // An id that is taken begins nothing.
        assert!(store.begin_conversation(&conversation("c"), "r3").await.is_err());
    })
    .await;
}

#[tokio::test]
async fn message_sets_the_model_but_keeps_the_title() {
    on_both(async |store| {
        store.create_conversation(&conversation("c")).await.expect("it is created");
        let untitled = ConversationRow { title: String::new(), ..conversation("d") };
        store.create_conversation(&untitled).await.expect("it is created");
        for (id, title) in [("c", "first"), ("d", "second")] {
            assert!(matches!(store.begin_run(id, Some("you"), "r", MESSAGE).await, Err(BeginError::Unknown)));
            store.begin_run(id, Some("me"), "r", MESSAGE).await.expect("it begins");
            let (row, _) = stored(store, id).await;
            let described = (row.title.as_str(), row.provider.as_str(), row.model.as_str());
            assert_eq!((described, row.state.as_str()), ((title, "p2", "m2"), "running"));
        }
    })
    .await;
}

#[tokio::test]
async fn run_that_lost_its_conversation_writes_nothing() {
    on_both(async |store| {
        let lost = store.begin_conversation(&conversation("c"), "r1").await.expect("it begins");
        // As at the next start of the same owner.
        store.end_leases().await.expect("it is written");
        let lease = store.begin_run("c", Some("me"), "r2", MESSAGE).await.expect("it begins");
        assert!(!store.append_entries(&lost, &append(&["late"], "idle")).await.expect("it is asked"));
        assert!(store.append_entries(&lease, &append(&["a"], "waiting")).await.expect("it is written"));
        let (row, entries) = stored(store, "c").await;
        assert_eq!((entries, row.entries, row.state.as_str()), (vec!["1 r2 a".to_owned()], 1, "waiting"));
        // Decisions continue the run that waits, and no other.
        let other = store.begin_run("c", None, "r1", RunBeginning::Decisions).await;
        assert!(matches!(other, Err(BeginError::Busy(run)) if run == "r2"));
        let lease = store.begin_run("c", None, "r2", RunBeginning::Decisions).await.expect("it begins");
        assert_eq!((lease.epoch, lease.entries), (3, 1));
    })
    .await;
}
