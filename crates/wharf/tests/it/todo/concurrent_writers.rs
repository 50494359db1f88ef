//! Tests concurrent writers, each with its own server process, and servers that are killed while they write.

use super::{
    engines::Engine,
    server::{Listening, Todos},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::task::JoinSet;
use wharf_mcp::{Raw, Request, model::CallResult, session::Era};

const WRITERS: usize = 8;
const EACH: usize = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn eight_writers_lose_nothing_on_sqlite() {
    check_concurrent_creates(Engine::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_writers_lose_nothing_on_postgres() {
    check_concurrent_creates(Engine::postgres()).await;
}

async fn check_concurrent_creates(engine: Engine) {
    let database = engine.address();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let database = database.clone();
        writers.spawn(async move {
            let todos = Todos::start(&database).await;
            let mut ids = Vec::new();
            for number in 0..EACH {
                ids.push(todos.create(&format!("{writer}/{number}")).await["id"].as_i64().expect("an id"));
            }
            todos.close().await;
            ids
        });
    }
    let ids: BTreeSet<i64> = writers.join_all().await.into_iter().flatten().collect();
    assert_eq!(ids.len(), WRITERS * EACH, "every id is given once");
    let todos = Todos::start(&database).await;
    let titles: BTreeSet<String> = todos.titles("list_todos", json!({})).await.into_iter().collect();
    assert_eq!(titles.len(), WRITERS * EACH);
    check_concurrent_updates(&todos, &database).await;
    todos.close().await;
}

/// Each writer changes a different field of the same todo at the same time.
async fn check_concurrent_updates(todos: &Todos, database: &str) {
    let id = todos.create("shared").await["id"].clone();
    let changes = [
        json!({ "title": "changed" }),
        json!({ "description": "changed" }),
        json!({ "status": "completed" }),
        json!({ "priority": 4 }),
        json!({ "tags": ["changed"] }),
        json!({ "due_date": "2026-05-05" }),
    ];
    let mut writers = JoinSet::new();
    for change in changes.clone() {
        let (database, mut arguments) = (database.to_owned(), change);
        arguments["todo_id"] = id.clone();
        writers.spawn(async move {
            let todos = Todos::start(&database).await;
            todos.call("update_todo", arguments).await.expect("it is changed");
            todos.close().await;
        });
    }
    writers.join_all().await;
    let found =
        todos.call("search_todos", json!({ "query": "changed", "priority": 4 })).await.expect("a list");
    for change in changes {
        for (field, value) in change.as_object().expect("an object") {
            assert_eq!(&found["todos"][0][field], value);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_todos_survive_a_kill_on_sqlite() {
    check_acknowledged_survive_kill(Engine::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_todos_survive_a_kill_on_postgres() {
    check_acknowledged_survive_kill(Engine::postgres()).await;
}

async fn check_acknowledged_survive_kill(engine: Engine) {
    let database = engine.address();
    let mut acknowledged = BTreeSet::new();
    for round in 0..3 {
        let listening = Listening::start(&database, "http");
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let url = listening.url.clone();
            writers.spawn(async move {
                let todos = Todos::connect_url("http", &url, Era::Modern).await;
                create_until_it_fails(&todos, &format!("{round}/{writer}")).await
            });
        }
        // Kills the server once the first todos exist, while the writers are still running.
        let watcher = Todos::start(&database).await;
        let minimum = 50 * (round + 1);
        while watcher.titles("list_todos", json!({})).await.len() < acknowledged.len() + minimum {}
        watcher.close().await;
        // The drop sends SIGKILL.
        drop(listening);
        acknowledged.extend(writers.join_all().await.into_iter().flatten());
        assert!(acknowledged.len() >= minimum);
        let todos = Todos::start(&database).await;
        let there: BTreeSet<String> = todos.titles("list_todos", json!({})).await.into_iter().collect();
        todos.close().await;
        let lost: Vec<&String> = acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}

/// Creates todos until a call fails, and returns the acknowledged titles.
async fn create_until_it_fails(todos: &Todos, name: &str) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let title = format!("{name}/{number}");
        let arguments: Raw = json!({ "title": title }).into();
        let Ok(raw) = todos.session.request(Request::call_tool("create_todo", Some(&arguments))).await else {
            break;
        };
        let result = CallResult::read(&raw);
        let todo: Value = result.structured.expect("a todo").decode().expect("JSON");
        assert_eq!((result.is_error, &todo["title"]), (false, &json!(title)));
        acknowledged.push(title);
    }
    acknowledged
}
