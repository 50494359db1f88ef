//! Tests many tools on several pages, with unusual names.

use super::rig::{Entry, Rig};
use std::{collections::BTreeMap, time::Duration};
use wharf_runtime::RuntimeOptions;

const MANY_TOOLS: &str = "--mode many_tools,any_tool";

/// Returns the shown names of all tools, by tool id (source and wire name).
async fn shown_names(sources: &[&str]) -> (Rig, BTreeMap<String, String>) {
    let entries: Vec<Entry<'_>> =
        sources.iter().map(|it| Entry::Stdio(it, MANY_TOOLS, "prefix: p")).collect();
    let rig = Rig::start(&entries, RuntimeOptions::default());
    let catalog = rig.handle.settled().await;
    let names = catalog.tools.iter().map(|it| (it.id(), it.name.clone())).collect();
    (rig, names)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_250_tools_are_listed_and_can_be_called_whatever_their_order() {
    let (rig, names) = shown_names(&["one", "two"]).await;
    let (other, reversed) = shown_names(&["two", "one"]).await;
    assert_eq!(names.len(), 500);
    assert_eq!(names, reversed);
    let mut shown: Vec<&String> = names.values().collect();
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown.len(), 500);
    let allowed = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    assert!(shown.iter().all(|it| it.len() <= 64 && it.chars().all(allowed)), "{shown:?}");
    for (id, name) in &names {
        let (_, wire_name) = id.split_once(':').expect("a source and a tool");
        assert_eq!(rig.call(name, "n").await, format!("ok {wire_name} n"));
        assert_eq!(rig.call(id, "m").await, format!("ok {wire_name} m"));
    }
    for rig in [rig, other] {
        rig.runtime.shutdown(Duration::ZERO).await;
        assert_eq!(rig.mark.leftovers().await, 0);
    }
}
