//! Runs generated jq expressions in `wharf __query`: each ends in time, and none reaches the environment or a file.

use std::{
    fs,
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const CANARY: &str = "canary-q1-77d0b1aa";

/// Number of generated expressions.
const EXPRESSIONS: usize = 40;

/// Number of expressions that run at the same time.
const THREADS: usize = 4;

/// Longest time that an expression may take. The process has 2 seconds of processor time, on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Parts of expressions. `FILE` is a file with the canary.
const PARTS: [&str; 40] = [
    ".",
    ".items",
    ".[]?",
    "keys?",
    "length",
    "env",
    "$ENV",
    "input",
    "[inputs]",
    "input_filename",
    "debug",
    "stderr",
    "halt",
    "halt_error",
    "error",
    "now",
    "@base64",
    "@sh",
    "tojson",
    "fromjson?",
    "range(5)",
    "[limit(3; repeat(.))]",
    "tostring * 1000",
    "import \"FILE\" as $a; $a",
    "include \"FILE\"; .",
    "$__loc__",
    "getpath([\"a\"])?",
    "[splits(\"a\")?]",
    "test(\"(a+)+$\")?",
    "reduce range(30) as $n (.; [., .])",
    "\"\\(env)\"",
    "label $x | ., break $x",
    "get_search_list",
    "\"FILE\" | input",
    "open(\"FILE\")",
    "system(\"cat FILE\")",
    "read(\"FILE\")",
    "[range(1e9)]",
    "until(false; .)",
    "def f: f; f",
];

/// Returns the next pseudorandom number (a linear congruential generator), so that every run has the same expressions.
fn next(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).expect("31 bits") % below
}

fn expression(state: &mut u64) -> String {
    let mut text = PARTS[next(state, PARTS.len())].to_owned();
    for _ in 0..next(state, 4) {
        let operator = [" | ", ", ", " // ", " + ", " as $v | "][next(state, 5)];
        text = format!("{text}{operator}{}", PARTS[next(state, PARTS.len())]);
    }
    text
}

/// Runs one expression. Returns its output.
#[expect(clippy::disallowed_methods, reason = "no async runtime runs here")]
fn run(query: &str) -> String {
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_wharf"))
        .args(["__query", "4096"])
        .env_clear()
        .envs([("MIMALLOC_ARENA_RESERVE", "0"), ("MIMALLOC_ALLOW_LARGE_OS_PAGES", "0")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("wharf runs");
    let head = serde_json::json!({ "query": query, "is_text": false });
    let input = format!("{head}\n{}", r#"{"items":[1,"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",null]}"#);
    // A process that ends early does not read everything.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    while child.try_wait().expect("it is waited for").is_none() {
        assert!(started.elapsed() < MAX_TIME, "`{query}` does not end");
        thread::sleep(Duration::from_millis(2));
    }
    let mut text = String::new();
    // Whatever survives would keep the pipe open.
    child.stdout.take().expect("a pipe").read_to_string(&mut text).unwrap_or_default();
    child.stderr.take().expect("a pipe").read_to_string(&mut text).unwrap_or_default();
    text
}

fn check(query: &str) {
    let text = run(query);
    assert!(!text.contains(CANARY), "`{query}` returned {text}");
    assert!(text.len() <= 8192, "`{query}` returned {} bytes", text.len());
}

#[test]
fn generated_expressions_end_and_reach_nothing_outside() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("secret.json");
    fs::write(&file, format!("\"{CANARY}\"")).expect("a file");
    let file = file.display().to_string();
    let expressions = (0..EXPRESSIONS).scan(7, |state, _| Some(expression(state)));
    let queries: Vec<String> = PARTS.iter().map(|it| (*it).to_owned()).chain(expressions).collect();
    thread::scope(|scope| {
        for some in queries.chunks(queries.len().div_ceil(THREADS)) {
            let file = &file;
            scope.spawn(move || some.iter().for_each(|query| check(&query.replace("FILE", file))));
        }
    });
    let names: Vec<_> = fs::read_dir(folder.path()).expect("the folder").collect();
    assert_eq!(names.len(), 1, "nothing was written");
}
