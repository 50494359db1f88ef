//! `wharf __query LIMIT`: runs one jq expression over a document from stdin, in a process that can do nothing else.
//!
//! jq is a programming language, so the process limits itself before it reads anything: it opens no file, starts no
//! process, and has little processor time and memory. The kernel ends it when it exceeds them. It exits with 0 and the
//! results, or with 1 and the reason.

use crate::environment;
use jaq_core::{
    Compiler, Ctx, Vars, compile, data,
    load::{self, Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::{Val, read};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::Deserialize;
use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

/// Processor time, in seconds.
const MAX_SECONDS: u64 = 2;
/// Address space, in bytes.
const MAX_MEMORY_BYTES: u64 = 256 << 20;
/// Maximum size of the input, in bytes: a result and the expression.
const MAX_INPUT_BYTES: u64 = 33 << 20;

/// Maximum length of the reason of a failure, in bytes.
const MAX_REASON_BYTES: usize = 2_000;

/// First line of the input.
#[derive(Deserialize)]
struct QueryHead {
    query: String,
    /// Whether the document is a text, which is a string for the expression.
    is_text: bool,
}

/// Runs the query, if this process was started for one.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let limit = environment::query_limit()?;
    let answer = confine().and_then(|()| answer(limit));
    let (text, code) = match answer {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(mut reason) => {
            // jq quotes the values that an operation does not fit, however large they are.
            reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
            (reason, ExitCode::FAILURE)
        }
    };
    // The reader may be gone; then nobody needs the answer.
    let _ = io::stdout().write_all(text.as_bytes());
    Some(code)
}

/// Gives up everything that a query does not need.
fn confine() -> Result<(), String> {
    let limits = [
        (Resource::Cpu, MAX_SECONDS),
        (Resource::As, MAX_MEMORY_BYTES),
        (Resource::Nofile, 3),
        (Resource::Nproc, 0),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ];
    for (resource, limit) in limits {
        let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
        setrlimit(resource, limit).map_err(|error| format!("the query cannot be confined: {error}"))?;
    }
    Ok(())
}

fn answer(limit: usize) -> Result<String, String> {
    let mut input = Vec::new();
    io::stdin().take(MAX_INPUT_BYTES).read_to_end(&mut input).map_err(|error| error.to_string())?;
    let head_end = input.iter().position(|it| *it == b'\n').ok_or("the query is missing")?;
    let (head, document) = (&input[..head_end], &input[head_end + 1..]);
    let head: QueryHead = serde_json::from_slice(head).map_err(|error| error.to_string())?;
    let document = match head.is_text {
        true => Val::from(String::from_utf8_lossy(document).into_owned()),
        false => {
            read::parse_single(document).map_err(|error| format!("the document is not JSON: {error}"))?
        }
    };
    run(&head.query, document, limit)
}

/// Runs an expression and returns its results, one per line.
fn run(query: &str, document: Val, limit: usize) -> Result<String, String> {
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(&arena, File { code: query, path: () })
        .map_err(|errors| format!("the query is not valid jq: {}", syntax_error(&errors)))?;
    let filter = Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .map_err(|errors| format!("the query is not valid jq: {}", unknown_names(&errors)))?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut out = String::new();
    for value in filter.id.run((context, document)).map(unwrap_valr) {
        let value = value.map_err(|error| format!("the query failed: {error}"))?.to_string();
        if out.len() + value.len() + 1 > limit {
            let room = limit.saturating_sub(out.len());
            out.push_str(&value[..value.floor_char_boundary(room)]);
            out.push_str("…\n[truncated]");
            return Ok(out);
        }
        out.push_str(&value);
        out.push('\n');
    }
    Ok(out)
}

/// Describes the first part of the expression that is not valid.
fn syntax_error(errors: &load::Errors<&str, ()>) -> String {
    let found = errors.iter().find_map(|(_, error)| match error {
        load::Error::Lex(errors) => errors.first().map(|(_, found)| *found),
        load::Error::Parse(errors) => errors.first().map(|(_, found)| *found),
        load::Error::Io(_) => Some("a module"),
    });
    match found.map(str::trim).filter(|it| !it.is_empty()) {
        Some(found) => format!("unexpected `{}`", &found[..found.floor_char_boundary(40)]),
        None => "unexpected end".to_owned(),
    }
}

fn unknown_names(errors: &compile::Errors<&str, ()>) -> String {
    let names = errors.iter().flat_map(|(_, errors)| errors);
    let names: Vec<String> =
        names.map(|(name, what)| format!("there is no {} `{name}`", what.as_str())).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: Result<&str, &str>) {
        let document = read::parse_single(br#"{"items":[{"id":1,"n":"a"},{"id":2,"n":"b"}],"x":1.50}"#);
        let answer = run(query, document.expect("JSON"), 40);
        assert_eq!(answer.as_deref().map_err(String::as_str), expected, "{query}");
    }

    #[test]
    fn expressions_are_evaluated() {
        check(".items | length", Ok("2\n"));
        check(".items[].n", Ok("\"a\"\n\"b\"\n"));
        check(".items | map(select(.id > 1)) | .[0].n | test(\"^b\")", Ok("true\n"));
        check("[range(100)]", Ok("[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,1…\n[truncated]"));
        check("empty", Ok(""));
        check(".items[", Err("the query is not valid jq: unexpected end"));
        check("nothing", Err("the query is not valid jq: there is no filter `nothing`"));
    }

    #[test]
    fn the_environment_and_files_are_not_there() {
        check("import \"a\" as a; .", Err("the query is not valid jq: unexpected `a module`"));
        check("input_filename", Err("the query is not valid jq: there is no filter `input_filename`"));
        check("$ENV", Err("the query is not valid jq: there is no variable `$ENV`"));
    }
}
