//! Tests that one listing of a source is accepted as the first, and later ones are not.

use crate::engines::on_both;
use wharf_store::{AcceptedDefinition, Store};

fn row(kind: &str, name: &str, hash: &str) -> AcceptedDefinition {
    AcceptedDefinition {
        source: "far".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        hash: hash.to_owned(),
        definition: "null".to_owned(),
        principal: "first-use".to_owned(),
        reason: None,
        accepted_at: 0,
    }
}

async fn accepted(store: &Store) -> Vec<String> {
    let rows = store.accepted_definitions().await.expect("they are read");
    let mut all: Vec<String> = rows.iter().map(|it| format!("{} {} {}", it.kind, it.name, it.hash)).collect();
    all.sort();
    all
}

#[tokio::test]
async fn only_the_first_listing_is_accepted() {
    on_both(async |store| {
        let mark = row("instructions", "", "i");
        // Left by an entry of agent.yaml that had this name before.
        store.accept_definition(&row("tool", "old", "o")).await.expect("it is written");
        let first = [row("tool", "read", "a"), row("prompt", "read", "b")];
        store.accept_first_listing(&mark, &first).await.expect("it is written");
        let expected = ["instructions  i", "prompt read b", "tool read a"];
        assert_eq!(accepted(store).await, expected);
        let second = [row("tool", "read", "c"), row("tool", "write", "d")];
        store.accept_first_listing(&mark, &second).await.expect("it is written");
        assert_eq!(accepted(store).await, expected);
        store.withdraw_definitions("far").await.expect("it is written");
        assert!(accepted(store).await.is_empty());
    })
    .await;
}
