//! Runs a query over a document in a process of its own, because jq is a programming language: the process has no files,
//! no environment, and little time and memory.

use super::{Document, DocumentKind, document::Part};
use serde_json::json;
use std::{path::PathBuf, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};

/// First argument with which the program runs a query.
pub const QUERY: &str = "__query";
/// Maximum length of a query, in bytes.
const MAX_QUERY_BYTES: usize = 4096;
/// Time after which a query is ended. The process also limits its own processor time, to less than this; the rest is for
/// a machine that is busy with other work.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Message for a query that was ended.
const LIMIT_EXCEEDED: &str = "the query exceeded its time or memory limit";

/// Program that runs queries: `PROGRAM __query LIMIT`.
#[derive(Clone, Debug)]
pub struct QueryProgram(pub PathBuf);

impl QueryProgram {
    /// Runs a query and returns its results, one per line, at most `limit` bytes.
    pub(super) async fn run(&self, document: &Document, query: &str, limit: usize) -> Result<String, String> {
        check_length(query)?;
        let mut command = Command::new(&self.0);
        command.arg(QUERY).arg(limit.to_string()).current_dir("/").env_clear();
        // Otherwise the allocator reserves more address space at its start than the process may have.
        command.envs([("MIMALLOC_ARENA_RESERVE", "0"), ("MIMALLOC_ALLOW_LARGE_OS_PAGES", "0")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("the query cannot run: {error}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let head = json!({ "query": query, "is_text": document.kind == DocumentKind::Text }).to_string();
        let text = document.text.clone();
        let write = async move {
            let Some(mut stdin) = stdin else { return };
            // A query that ends early does not read everything; its answer says why.
            for part in [head.as_bytes(), b"\n", text.as_bytes()] {
                if stdin.write_all(part).await.is_err() {
                    return;
                }
            }
        };
        let read = async move {
            let mut out = Vec::new();
            if let Some(stdout) = stdout {
                // The process bounds its output itself; one that does not is not trusted further.
                let _ = stdout.take(limit as u64 + 4096).read_to_end(&mut out).await;
            }
            out
        };
        let done = timeout(QUERY_TIMEOUT, async { tokio::join!(write, read, child.wait()) }).await;
        let Ok(((), out, Ok(status))) = done else {
            // Dropping the child kills it. The wait reaps it.
            let _ = child.kill().await;
            return Err(LIMIT_EXCEEDED.to_owned());
        };
        let out = String::from_utf8_lossy(&out).into_owned();
        match status.code() {
            Some(0) => Ok(out),
            Some(1) => Err(out),
            _ => Err(LIMIT_EXCEEDED.to_owned()),
        }
    }
}

/// Answers a JSON Pointer, for a program that cannot run queries.
pub(super) fn run_pointer(document: &Document, query: &str) -> Result<String, String> {
    check_length(query)?;
    match document.part(query) {
        Some(Part::Text(text)) => Ok(text.to_owned()),
        Some(Part::Json(value)) => Ok(value.get().to_owned()),
        None => Err("there is nothing at this JSON Pointer; jq needs the program `wharf`".to_owned()),
    }
}

fn check_length(query: &str) -> Result<(), String> {
    match query.len() <= MAX_QUERY_BYTES {
        true => Ok(()),
        false => Err(format!("the query is longer than {MAX_QUERY_BYTES} bytes")),
    }
}
