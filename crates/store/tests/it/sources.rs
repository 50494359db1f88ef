//! Tests sources and their tools.

use crate::engines::on_both;
use wharf_store::{InventoryChange, ListedTool, SourceRow, StoreError, ToolSwitch};

fn source(id: &str, name: &str) -> SourceRow {
    SourceRow {
        id: id.into(),
        name: name.into(),
        definition: r#"{"command":"npx"}"#.into(),
        origin: "rest".into(),
        enabled: true,
        lifecycle: "transient".into(),
        health: "unknown".into(),
        secrets: Some(vec![0, 255, 7]),
        ..SourceRow::default()
    }
}

#[tokio::test]
async fn concurrent_source_update_is_rejected() {
    on_both(async |store| {
        let first = store.insert_source(&source("1", "b")).await.expect("it is kept");
        store.insert_source(&SourceRow { secrets: None, ..source("2", "a") }).await.expect("it is kept");
        for taken in [source("1", "c"), source("3", "b")] {
            let error = store.insert_source(&taken).await.expect_err("it is taken");
            assert!(matches!(error, StoreError::Conflict), "{error}");
        }
        let names: Vec<String> =
            store.sources().await.expect("a list").into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(store.source("1").await.expect("it is read"), Some(first.clone()));

        let change = SourceRow { enabled: false, inventory_hash: Some("h".into()), ..first.clone() };
        let changed = store.update_source(&change).await.expect("it is written").expect("we were first");
        assert_eq!((changed.epoch, changed.enabled, &changed.secrets), (2, false, &first.secrets));
        assert_eq!(store.update_source(&change).await.expect("it is written"), None, "somebody was faster");

        store.store_health("1", "degraded", 2).await.expect("it is noted");
        let noted = store.source("1").await.expect("it is read").expect("there is one");
        assert_eq!((noted.health.as_str(), noted.consecutive_failures, noted.epoch), ("degraded", 2, 2));

        assert!(store.delete_source("1").await.expect("it is deleted"));
        assert!(!store.delete_source("1").await.expect("it is asked"));
    })
    .await;
}

#[tokio::test]
async fn missing_tool_is_deprecated_until_listed_again() {
    on_both(async |store| {
        let listed = |names: &[(&str, &str)]| -> Vec<ListedTool> {
            let tool = |(name, hash): &(&str, &str)| ListedTool {
                wire_name: (*name).into(),
                definition: "{}".into(),
                definition_hash: (*hash).into(),
            };
            names.iter().map(tool).collect()
        };
        let change = |created, updated, deprecated| InventoryChange { created, updated, deprecated };
        for (names, expected) in [
            (&[("a", "1"), ("b", "1")][..], change(2, 0, 0)),
            (&[("a", "1"), ("b", "2")], change(0, 1, 0)),
            (&[("b", "2"), ("c", "1")], change(1, 0, 1)),
            (&[("a", "1"), ("b", "2"), ("c", "1")], change(0, 1, 0)),
            (&[], change(0, 0, 3)),
        ] {
            assert_eq!(store.replace_tools("s", &listed(names)).await.expect("it is kept"), expected);
        }
        store.replace_tools("s", &listed(&[("a", "1")])).await.expect("it is kept");
        let switched = &listed(&[("a", "1"), ("new", "1")]);
        let off = ToolSwitch { principal: "ops".into(), reason: Some("too risky".into()) };
        store.switch_tool("s", &switched[0], Some(&off)).await.expect("it is written");
        // A tool that was never listed can be disabled too.
        store.switch_tool("t", &switched[1], Some(&off)).await.expect("it is written");
        store.switch_tool("t", &switched[1], None).await.expect("it is written");
        store.replace_tools("s", &listed(&[("a", "2")])).await.expect("it is kept");
        let disabled = store.disabled_tools().await.expect("a list");
        let [tool] = &disabled[..] else { panic!("{disabled:?}") };
        assert_eq!((tool.wire_name.as_str(), tool.reason.as_deref()), ("a", Some("too risky")));
        assert_eq!(tool.disabled_by.as_deref(), Some("ops"));
        assert!(tool.disabled_at.is_some_and(|it| it >= tool.first_seen), "{tool:?}");
        let tools = store.tools("s").await.expect("a list");
        let statuses: Vec<&str> = tools.iter().map(|it| it.status.as_str()).collect();
        assert_eq!(statuses, ["active", "deprecated", "deprecated"]);
        assert_eq!(tools.iter().map(|it| it.vanished_at.is_some()).collect::<Vec<_>>(), [false, true, true]);
        store.replace_tools("s", &listed(&[("b", "3")])).await.expect("it is kept");
        let again = store.tools("s").await.expect("a list");
        assert_eq!(again.iter().map(|it| it.vanished_at.is_some()).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(again[2].vanished_at, tools[2].vanished_at, "the first listing without it counts");
    })
    .await;
}
