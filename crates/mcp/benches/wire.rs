//! What the wire costs, against the least that it could: an envelope against a bare `RawValue` one, and a call against a
//! bare loop over the same pipe.
//!
//! Run as `wire serve`, this program is also the server at the far end of the pipe.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set up its world should say so loudly")]

use bytes::{Bytes, BytesMut};
use criterion::{BenchmarkId, Criterion, Throughput};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{hint::black_box, io::Write, path::PathBuf, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    runtime::Runtime,
};
use wharf_mcp::{
    Options, Raw, Request, Session, envelope,
    session::{ClientInfo, Connected, Era, EraHint},
    stdio::Command,
};

/// The least that a JSON-RPC peer has to read.
#[derive(Deserialize)]
struct Bare<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

const SIZES: [usize; 3] = [100, 64 << 10, 1 << 20];

#[expect(clippy::disallowed_methods, reason = "a benchmark is a program, and starts itself as its server")]
fn main() {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let program = std::env::current_exe().unwrap();
    let mut criterion = Criterion::default().configure_from_args();
    envelopes(&mut criterion);
    calls(&mut criterion, &program);
    criterion.final_summary();
}

/// Reads an answer and writes the next request.
fn envelopes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("envelope");
    for size in SIZES {
        let frame = Bytes::from(answer(1, &"x".repeat(size)));
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_with_input(BenchmarkId::new("bare", size), &frame, |bencher, frame| {
            bencher.iter(|| {
                let bare: Bare<'_> = serde_json::from_slice(frame).unwrap();
                let mut out = Vec::new();
                write!(out, r#"{{"jsonrpc":"2.0","id":{},"method":"m","params":"#, bare.id.unwrap()).unwrap();
                out.extend_from_slice(bare.result.unwrap().get().as_bytes());
                out.push(b'}');
                black_box(out)
            });
        });
        group.bench_with_input(BenchmarkId::new("ours", size), &frame, |bencher, frame| {
            bencher.iter(|| {
                let envelope::Reading::Message(wharf_mcp::Message::Answer { id, outcome }) =
                    envelope::read(frame)
                else {
                    panic!("no answer");
                };
                let mut out = BytesMut::new();
                envelope::write_request(&mut out, id.unwrap(), "m", outcome.ok().as_ref());
                black_box(out)
            });
        });
    }
    group.finish();
}

/// Calls a tool over a pipe.
fn calls(criterion: &mut Criterion, program: &PathBuf) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut group = criterion.benchmark_group("call");
    for size in SIZES {
        let arguments = Raw::from(serde_json::json!({ "text": "x".repeat(size) }));
        bare_calls(&mut group, &runtime, program, size, &arguments);
        our_calls(&mut group, &runtime, program, size, &arguments);
    }
    group.finish();
}

type Group<'a> = criterion::BenchmarkGroup<'a, criterion::measurement::WallTime>;

fn bare_calls(group: &mut Group<'_>, runtime: &Runtime, program: &PathBuf, size: usize, arguments: &Raw) {
    let guard = runtime.enter();
    let mut child = tokio::process::Command::new(program)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    drop(guard);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::with_capacity(256 << 10, child.stdout.take().unwrap());
    let mut line = Vec::new();
    let mut id = 0_u64;
    group.bench_function(BenchmarkId::new("bare", size), |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                id += 1;
                let arguments = arguments.as_str();
                let request = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"t\",\"arguments\":{arguments}}}}}\n"
                );
                stdin.write_all(request.as_bytes()).await.unwrap();
                line.clear();
                stdout.read_until(b'\n', &mut line).await.unwrap();
                let bare: Bare<'_> = serde_json::from_slice(&line).unwrap();
                assert!(bare.id == Some(id) && bare.result.is_some());
            });
        });
    });
}

fn our_calls(group: &mut Group<'_>, runtime: &Runtime, program: &PathBuf, size: usize, arguments: &Raw) {
    let mut command = Command::new(program, "/");
    command.args = vec!["serve".into()];
    let client = ClientInfo { name: "bench".into(), version: "0".into() };
    let options = Options { era: EraHint::Only(Era::Legacy), ..Options::new(client) };
    let connected = runtime.block_on(Session::connect(&command, &options)).unwrap();
    let Connected { session, task, .. } = connected;
    group.bench_function(BenchmarkId::new("ours", size), |bencher| {
        bencher.iter(|| runtime.block_on(session.request(Request::call_tool("t", Some(arguments)))).unwrap());
    });
    drop(session);
    runtime.block_on(task.join());
}

fn answer(id: u64, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
    )
}

/// Answers a call with as much as it brought, without looking at it.
fn serve() {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let id = line.split_once("\"id\":").and_then(|(_, rest)| rest.split_once(',')).map(|(id, _)| id);
        let Some(id) = id else { continue };
        let result = if line.contains("\"initialize\"") {
            r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#.to_owned()
        } else {
            let text = line
                .rsplit_once("\"text\":\"")
                .and_then(|(_, rest)| rest.split_once('"'))
                .map(|(text, _)| text);
            format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, text.unwrap_or_default())
        };
        let mut answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        answer.push('\n');
        out.write_all(answer.as_bytes()).unwrap();
        out.flush().unwrap();
    }
}
