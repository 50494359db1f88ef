//! Measures the cost of our wire code relative to a minimal implementation: our envelope against a bare `RawValue`
//! envelope, and a call against a bare loop over the same kind of pipe.
//!
//! Both run in alternation, so that other load on the machine affects both. Their ratio matters; it is printed at the
//! end. Criterion reports only our time.
//!
//! Run as `wire serve`, this program is also the server at the other end of the pipe.

#![expect(clippy::unwrap_used, reason = "a benchmark whose setup fails should panic with the cause")]

use bytes::{Bytes, BytesMut};
use criterion::{BenchmarkId, Criterion};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    cell::RefCell,
    hint::black_box,
    io::Write,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout},
    runtime::Runtime,
};
use wharf_mcp::{
    Options, Raw, Request, Session, envelope,
    session::{ClientInfo, Connected, Era, EraHint},
    stdio::Command,
};

/// Minimal set of members that a JSON-RPC peer has to read.
#[derive(Deserialize)]
struct Bare<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

const SIZES: [usize; 3] = [100, 64 << 10, 1 << 20];

/// Bytes processed per turn: enough for the clock's resolution.
const BYTES_PER_TURN: usize = 32 << 10;

/// One comparison: the time of both, turn by turn.
#[derive(Default)]
struct Comparison {
    turns: Vec<(Duration, Duration)>,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is a program, and starts itself as its server")]
fn main() {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let program = std::env::current_exe().unwrap();
    let mut criterion = Criterion::default().configure_from_args();
    let mut table = String::new();
    for size in SIZES {
        envelopes(size, &mut criterion, &mut table);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for size in SIZES {
        calls(size, &runtime, &program, &mut criterion, &mut table);
    }
    criterion.final_summary();
    let _ = std::io::stdout().write_all(table.as_bytes());
}

/// Runs both in alternation for as long as criterion wants, and records the times.
fn compare(
    (what, size): (&str, usize),
    (criterion, table): (&mut Criterion, &mut String),
    mut bare: impl FnMut(),
    mut ours: impl FnMut(),
) {
    let per_turn = (BYTES_PER_TURN / size).clamp(1, 100) as u64;
    let compare = RefCell::new(Comparison::default());
    let mut group = criterion.benchmark_group(what);
    group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
        bencher.iter_custom(|count| {
            let mut spent = Duration::ZERO;
            let mut left = count;
            while left > 0 {
                let turn = per_turn.min(left);
                left -= turn;
                let taken = (timed(turn, &mut bare), timed(turn, &mut ours));
                spent += taken.1;
                if turn == per_turn {
                    compare.borrow_mut().turns.push(taken);
                }
            }
            spent
        });
    });
    group.finish();
    table.push_str(&compare.into_inner().row(what, size, per_turn));
}

fn timed(count: u64, once: &mut impl FnMut()) -> Duration {
    let begun = Instant::now();
    (0..count).for_each(|_| once());
    begun.elapsed()
}

impl Comparison {
    /// Formats the medians and the median of the ratios.
    fn row(&self, what: &str, size: usize, per_turn: u64) -> String {
        if self.turns.is_empty() {
            return String::new();
        }
        let micros = |taken: Duration| taken.as_secs_f64() * 1e6 / per_turn as f64;
        let bare = median(self.turns.iter().map(|turn| micros(turn.0)));
        let ours = median(self.turns.iter().map(|turn| micros(turn.1)));
        let ratio = median(self.turns.iter().map(|turn| turn.1.as_secs_f64() / turn.0.as_secs_f64()));
        format!("{what:8} {size:>8} B   bare {bare:>9.2} us   ours {ours:>9.2} us   ratio {ratio:.2}\n")
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Benchmarks reading a response and writing the next request.
fn envelopes(size: usize, criterion: &mut Criterion, table: &mut String) {
    let frame = Bytes::from(answer(1, &"x".repeat(size)));
    let bare = || {
        let bare: Bare<'_> = serde_json::from_slice(&frame).unwrap();
        let mut out = Vec::new();
        write!(out, r#"{{"jsonrpc":"2.0","id":{},"method":"m","params":"#, bare.id.unwrap()).unwrap();
        out.extend_from_slice(bare.result.unwrap().get().as_bytes());
        out.push(b'}');
        black_box(out);
    };
    let ours = || {
        let envelope::ParsedFrame::Message(wharf_mcp::Message::Answer { id, outcome }) =
            envelope::read(&frame)
        else {
            panic!("no answer");
        };
        let mut out = BytesMut::new();
        envelope::write_request(&mut out, id.unwrap(), "m", outcome.ok().as_ref());
        black_box(out);
    };
    compare(("envelope", size), (criterion, table), bare, ours);
}

/// Benchmarks calling a tool over a pipe.
fn calls(size: usize, runtime: &Runtime, program: &Path, criterion: &mut Criterion, table: &mut String) {
    let arguments = Raw::from(serde_json::json!({ "text": "x".repeat(size) }));
    let mut bare = BarePipe::start(runtime, program);
    let Connected { session, task, .. } = connect(runtime, program);
    compare(
        ("call", size),
        (criterion, table),
        || runtime.block_on(bare.call(&arguments)),
        || {
            let call = session.request(Request::call_tool("t", Some(&arguments)));
            black_box(runtime.block_on(call).unwrap());
        },
    );
    drop(session);
    runtime.block_on(task.join());
}

/// Minimal client: writes one line, reads one line.
struct BarePipe {
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    id: u64,
}

impl BarePipe {
    fn start(runtime: &Runtime, program: &Path) -> BarePipe {
        let _guard = runtime.enter();
        let mut child = tokio::process::Command::new(program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::with_capacity(256 << 10, child.stdout.take().unwrap());
        BarePipe { _child: child, stdin, stdout, line: Vec::new(), id: 0 }
    }

    async fn call(&mut self, arguments: &Raw) {
        self.id += 1;
        let (id, arguments) = (self.id, arguments.as_str());
        let request = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"t\",\"arguments\":{arguments}}}}}\n"
        );
        self.stdin.write_all(request.as_bytes()).await.unwrap();
        self.line.clear();
        self.stdout.read_until(b'\n', &mut self.line).await.unwrap();
        let bare: Bare<'_> = serde_json::from_slice(&self.line).unwrap();
        assert!(bare.id == Some(id) && bare.result.is_some());
    }
}

fn connect(runtime: &Runtime, program: &Path) -> Connected {
    let mut command = Command::new(program, "/");
    command.args = vec!["serve".into()];
    let client = ClientInfo { name: "bench".into(), version: "0".into() };
    let options = Options { era: EraHint::Only(Era::Legacy), ..Options::new(client) };
    runtime.block_on(Session::connect(&command, &options)).unwrap()
}

fn answer(id: u64, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
    )
}

/// Echoes the text of a call without parsing the request.
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
