//! Benchmarks the Todo server on both engines through a stdio session: creating one todo, creating sixteen
//! concurrently, listing 10,000, and searching them. Also benchmarks the store alone with batches of 256 call
//! records, as a busy gateway writes them. `cargo xtask bench` runs it; as a test it only checks that everything
//! works, with few rows.

#![cfg(unix)]

#[path = "../../store/tests/it/postgres.rs"]
mod postgres;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use postgres::Postgres;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{runtime::Runtime, task::JoinSet};
use wharf_mcp::{
    Raw, Request, Session,
    model::CallResult,
    session::{ClientInfo, Connected, Options},
    stdio::Command,
};
use wharf_store::{CallRow, Location, NewTodo, Store};

const CONCURRENT: usize = 16;
const BATCH: usize = 256;

fn benches(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    bench_engine(criterion, "SQLite", &format!("sqlite:{}", folder.path().join("todo.db").display()));
    let server = Postgres::start();
    bench_engine(criterion, "PostgreSQL", &server.address());
}

fn bench_engine(criterion: &mut Criterion, engine: &str, database: &str) {
    let runtime = Runtime::new().expect("a runtime");
    let location = Location::parse(database).expect("an address");
    let store = runtime.block_on(Store::open(&location)).expect("the database opens");
    let connected = runtime.block_on(connect(database));
    let session = &connected.session;
    let call = |tool: &str, arguments: Value| runtime.block_on(call(session, tool, arguments));
    let mut group = criterion.benchmark_group(engine);
    group.sample_size(20);

    // Runs the list first, because the other benchmarks add rows.
    let rows = rows();
    runtime.block_on(fill(&store, rows));
    let listed = call("list_todos", json!({}));
    assert_eq!(listed["count"], rows);
    group.bench_function("list 10,000", |b| b.iter(|| call("list_todos", json!({}))));
    group.bench_function("list 100 of 10,000", |b| {
        b.iter(|| call("list_todos", json!({ "tags": ["tag 7"] })));
    });
    group.bench_function("search 10,000", |b| {
        b.iter(|| call("search_todos", json!({ "query": "number 99 " })));
    });
    group.bench_function("create", |b| b.iter(|| call("create_todo", json!({ "title": "one more" }))));
    group.throughput(Throughput::Elements(CONCURRENT as u64));
    group.bench_function("create, 16 at once", |b| b.iter(|| runtime.block_on(create_at_once(session))));
    group.throughput(Throughput::Elements(BATCH as u64));
    let mut number = 0;
    group.bench_function("record 256 calls", |b| {
        b.iter(|| {
            number += 1;
            runtime.block_on(store.record_calls(batch(number))).expect("they are kept");
        });
    });
    group.finish();
    runtime.block_on(async {
        let Connected { session, task, .. } = connected;
        drop(session);
        task.join().await;
        store.close().await;
    });
}

async fn connect(database: &str) -> Connected {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"), "/");
    command.args = ["todo", "--database", database].into_iter().map(Into::into).collect();
    let options = Options::new(ClientInfo { name: "bench".into(), version: "1".into() });
    Session::connect(&command, &options).await.expect("the server answers")
}

async fn call(session: &Session, tool: &str, arguments: Value) -> Value {
    let raw = session.request(Request::call_tool(tool, Some(&Raw::from(arguments)))).await;
    let result = CallResult::read(&raw.expect("an answer"));
    assert!(!result.is_error, "{result:?}");
    let structured = result.structured.expect("a structured result");
    // Reads only the count, because the list is long.
    json!({ "count": structured.member("count").map(|it| it.decode::<usize>().expect("a number")) })
}

async fn create_at_once(session: &Session) {
    let mut creating = JoinSet::new();
    for _ in 0..CONCURRENT {
        let session = session.clone();
        creating.spawn(async move { call(&session, "create_todo", json!({ "title": "one of many" })).await });
    }
    creating.join_all().await;
}

async fn fill(store: &Store, rows: usize) {
    let store = Arc::new(store.clone());
    let mut filling = JoinSet::new();
    for part in 0..CONCURRENT {
        let store = store.clone();
        filling.spawn(async move {
            for number in (part..rows).step_by(CONCURRENT) {
                let new = NewTodo {
                    title: format!("Todo number {number} of many"),
                    description: Some("What there is to say about it, in about one line of text.".into()),
                    priority: Some(number as i64 % 5 + 1),
                    tags: vec![format!("tag {}", number % 100), "all".into()],
                    due_date: Some("2026-12-31".into()),
                };
                store.create_todo(&new).await.expect("a todo");
            }
        });
    }
    filling.join_all().await;
}

fn batch(number: usize) -> Vec<CallRow> {
    let call = |place: usize| CallRow {
        request_id: format!("0193-{number:012}-{place:04}").into(),
        source: "todo".into(),
        tool_name: "create_todo".into(),
        parameters: r#"{"title":"Buy groceries","priority":2,"tags":["shopping","errands"]}"#.into(),
        execution_start: 1_763_000_000_000_000 + (number * BATCH + place) as i64,
        execution_duration_ms: 1.5,
        status: "success".into(),
        result: Some(r#"{"id":42,"title":"Buy groceries","status":"active"}"#.into()),
        via: Some("mcp".into()),
        ..CallRow::default()
    };
    (0..BATCH).map(call).collect()
}

/// Returns a small number of rows unless this is a real benchmark run.
#[expect(clippy::disallowed_methods, reason = "cargo passes `--bench` to a benchmark run")]
fn rows() -> usize {
    if std::env::args().any(|it| it == "--bench") { 10_000 } else { 100 }
}

criterion_group!(todo, benches);
criterion_main!(todo);
