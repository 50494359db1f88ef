//! Measures loading an agent file of the maximum size, 50 tools.
//!
//! `load` is the loader alone, `wharf check` the whole program from start to exit, and `wharf schema` the cost of
//! starting any program, for comparison. `cargo xtask bench` runs them.

use criterion::{Criterion, criterion_group, criterion_main};
use std::{
    fs,
    hint::black_box,
    process::{Command, Stdio},
};
use wharf_config::{Env, load};

/// Builds an agent file with 50 entries of every transport, with variables, headers and settings.
fn fifty_tools() -> String {
    let entry = |n: usize| match n % 5 {
        0 => format!(
            "  - name: files-{n}\n    description: Files of project {n}\n    type: mcp\n    server: \"@modelcontextprotocol/server-filesystem\"\n    \
             command: npx\n    args: [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"./data/{n}\"]\n    env:\n      LEVEL: \"${{LEVEL}}\"\n    \
             config:\n      allowed_directories: [\"${{workspaceFolder}}/data/{n}\"]\n"
        ),
        1 => format!(
            "  - name: fetch-{n}\n    description: Fetch {n}\n    type: mcp\n    server: mcp-server-fetch\n    command: uvx\n"
        ),
        2 => format!(
            "  - name: image-{n}\n    description: Image {n}\n    type: mcp\n    server: mcp/image\n    command: docker\n    env: {{ KEY: \"${{TOKEN}}\" }}\n"
        ),
        3 => format!(
            "  - name: remote-{n}\n    description: Remote {n}\n    type: mcp\n    server: remote\n    transport: http\n    \
             url: https://mcp-{n}.example.com/mcp\n    headers:\n      Authorization: \"Bearer ${{TOKEN}}\"\n    request_timeout: 120\n"
        ),
        _ => format!(
            "  - name: socket-{n}\n    description: Socket {n}\n    type: mcp\n    server: socket\n    transport: websocket\n    url: wss://ws-{n}.example.com/\n"
        ),
    };
    let entries: String = (0..50).map(entry).collect();
    format!("name: fifty\ntools:\n{entries}")
}

fn benches(criterion: &mut Criterion) {
    let text = fifty_tools();
    let mut env = Env::bare();
    env.variables.extend([("TOKEN".to_owned(), "t".to_owned()), ("LEVEL".to_owned(), "debug".to_owned())]);
    let (plan, diagnostics) = load(&text, &env);
    assert_eq!(plan.map(|it| it.sources.len()), Some(50), "{}", diagnostics.render(false));
    criterion.bench_function("load, 50 tools", |b| b.iter(|| load(black_box(&text), &env)));

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent.yaml");
    fs::write(&file, &text).expect("the file can be written");
    let wharf = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
        command.args(args).arg("-f").arg(&file).env("TOKEN", "t").env("LEVEL", "debug");
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("wharf runs");
        assert!(status.success());
    };
    criterion.bench_function("wharf check, 50 tools", |b| b.iter(|| wharf(&["check"])));
    criterion.bench_function("wharf schema, for comparison", |b| b.iter(|| wharf(&["schema"])));
}

criterion_group!(all, benches);
criterion_main!(all);
