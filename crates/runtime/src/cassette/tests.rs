//! Tests that recordings hide secrets and answer as recorded.

use super::{
    Cassette, CassetteFiles, CassettePlayer, Exhausted, Placeholders, RecordedOutcome, RecordedServer,
    Recorder, RecorderOptions, StepKind,
};
use crate::{
    Redactor,
    redact::{secret_encodings, secret_in_lock},
    result_handle::Document,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Map, Value, json};
use std::{fs, sync::Arc};
use tempfile::TempDir;
use wharf_config::{Env, LockedIdentity, LockedItem, LockedServer, Plan, load};
use wharf_mcp::Raw;

/// Returns every variable of the plan with its value. An address allows only some characters.
fn variables(secret: &str) -> [(&'static str, String); 11] {
    let for_address: String = secret.chars().filter(char::is_ascii_alphanumeric).collect();
    [
        ("T", format!("{secret}-one")),
        ("H", format!("{secret}-two")),
        ("KEY", format!("{secret}-three")),
        ("ARG", format!("{secret}-four")),
        ("PAIR", format!("{secret}-five")),
        ("SECOND", format!("{secret}-six")),
        ("CONFIG", format!("{secret}-seven")),
        ("FIXED", format!("{secret}-eight")),
        ("MODEL", format!("{secret}-nine")),
        ("URL", format!("{for_address}-http")),
        ("SOCKET", format!("{for_address}-socket")),
    ]
}

/// Returns a plan with a secret in each place where one can be.
fn plan(secret: &str) -> Plan {
    let text = "model: {provider: openai, name: m, api_key: '${KEY}', headers: {M: 'a ${MODEL}'}}\ntools:\n  \
                - {name: a, description: b, type: mcp, server: x, command: npx, args: [pkg, '--token=${ARG}'], \
                env: {K: '${T}', P: 'a:${PAIR}:${SECOND}'}, config: {k: ['c ${CONFIG}']}, \
                overrides: {t: {arguments: {o: {fixed: 'x-${FIXED}'}}}}}\n  \
                - {name: c, description: d, type: mcp, server: x, transport: http, url: 'https://h/${URL}/mcp?a=b', \
                headers: {A: 'Bearer ${H}'}}\n  \
                - {name: e, description: f, type: mcp, server: x, transport: websocket, url: 'wss://h/${SOCKET}/mcp'}\n";
    let mut env = Env::bare();
    env.variables.extend(variables(secret).map(|(name, value)| (name.to_owned(), value)));
    let (plan, diagnostics) = load(text, &env);
    plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false)))
}

/// Returns every encoding of every secret.
fn encodings(secret: &str) -> Vec<String> {
    variables(secret).iter().flat_map(|(_, value)| secret_encodings(value)).collect()
}

/// Returns texts that contain every encoding of every secret.
fn leaks(secret: &str) -> Vec<String> {
    let encoded = encodings(secret).into_iter().flat_map(|it| {
        let doubled = format!("{it}{it}");
        [it.clone(), format!("before {it}, after"), doubled]
    });
    encoded.collect()
}

/// Records the texts in every place of a recording where text of others can be. Returns the file.
fn record(secret: &str, options: RecorderOptions) -> String {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let recorder = Recorder::create(&path, options).expect("a recording");
    let texts = leaks(secret);
    let members: Map<String, Value> = texts.iter().map(|it| (it.clone(), json!([it]))).collect();
    let values =
        json!({ "texts": texts, "members": members, "json": Value::from(texts.clone()).to_string() });
    let name = "c".to_owned();
    let (tools, resources) = (vec![values.clone()], vec![values.clone()]);
    recorder.add_server(RecordedServer { name, tools, resources, ..RecordedServer::default() });
    let result: Raw = json!({ "content": values }).into();
    let asked = vec![json!({ "method": "elicitation/create", "params": values, "answer": values })];
    recorder.finish(recorder.start(""), ("a", "tool"), Some(&values.clone().into()), &Ok(result), asked);
    let fault = crate::Fault::not_ready("a", texts.concat(), "");
    recorder.finish(recorder.start(""), ("a", "tool"), None, &Err(Arc::new(fault)), Vec::new());
    for kind in [StepKind::Input, StepKind::Model, StepKind::Approval] {
        let body = json!({ "messages": values, "response": values, "text": texts.concat() });
        let body = body.as_object().expect("an object").clone();
        recorder.finish_step(recorder.start(""), kind, body, &[]);
    }
    recorder.close().expect("it is written");
    fs::read_to_string(path).expect("the file")
}

/// Returns a locked server with one tool.
fn locked(definition: &Value) -> LockedServer {
    let tools = [("a".to_owned(), LockedItem::of(definition.clone()))].into();
    LockedServer { tools, ..LockedServer::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn no_secret_is_in_a_recording_in_any_encoding(tail in "[ -~äß€]{5,30}[a-zA-Z0-9]") {
        let secret = format!("Zq7{tail}");
        let placeholders = Placeholders::of(&plan(&secret));
        let text = record(&secret, RecorderOptions { placeholders, ..RecorderOptions::default() });
        for encoding in encodings(&secret) {
            prop_assert!(!text.contains(&encoding), "{encoding} is in {text}");
        }
        for (name, _) in variables(&secret) {
            prop_assert!(text.contains(&format!("«secret:{name}»")), "{name} is not named in {text}");
        }
        Cassette::parse(&text).expect("it can be read");
    }

    #[test]
    fn no_secret_is_in_a_stored_result_in_any_encoding(tail in "[ -~äß€]{5,30}[a-zA-Z0-9]") {
        let secret = format!("Zq7{tail}");
        let redactor = Redactor::of(&plan(&secret));
        let texts = leaks(&secret);
        let members: Map<String, Value> = texts.iter().map(|it| (it.clone(), json!([it]))).collect();
        let block = |text: &str| json!({ "type": "text", "text": text });
        let mut results = vec![
            json!({ "content": [], "structuredContent": { "texts": texts, "members": members } }),
            json!({ "content": texts.iter().map(|it| block(it)).collect::<Vec<_>>() }),
            json!({ "content": [block(&json!({ "texts": texts }).to_string())] }),
        ];
        results.extend(texts.iter().map(|it| json!({ "content": [block(it)] })));
        for result in results {
            let stored = Document::redacted(&result.clone().into(), &redactor);
            for encoding in encodings(&secret) {
                prop_assert!(!stored.text.contains(&encoding), "{encoding} of {result} is in {}", stored.text);
            }
        }
    }

    #[test]
    fn no_secret_is_locked_in_any_encoding(tail in "[ -~äß€\u{200b}]{5,30}[a-zA-Z0-9]") {
        let secret = format!("Zq7{tail}");
        let plan = plan(&secret);
        for text in leaks(&secret) {
            let servers = [
                locked(&json!({ "name": "a", "description": text })),
                locked(&json!({ "name": "a", "inputSchema": { "properties": { &text: { "type": "string" } } } })),
                locked(&json!({ "name": "a", "inputSchema": { "properties": { "b": { "enum": [1, [text]] } } } })),
                LockedServer {
                    identity: LockedIdentity { instructions: Some(text.clone()), ..LockedIdentity::default() },
                    ..LockedServer::default()
                },
            ];
            for server in servers {
                prop_assert!(secret_in_lock(&plan, &server).is_some(), "{text:?} would be locked in {server:?}");
            }
        }
        prop_assert_eq!(secret_in_lock(&plan, &locked(&json!({ "name": "a", "description": "harmless" }))), None);
    }

    #[test]
    fn equal_calls_get_their_answers_in_order(paths in prop::collection::vec("[a-c]{1}", 1..20)) {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("a.jsonl");
        let recorder = Recorder::create(&path, RecorderOptions::default()).expect("a recording");
        for (at, path) in paths.iter().enumerate() {
            let (arguments, result): (Raw, Raw) = (json!({ "path": path }).into(), json!({ "at": at }).into());
            recorder.finish(recorder.start(""), ("a", "tool"), Some(&arguments), &Ok(result), Vec::new());
        }
        recorder.close().expect("it is written");
        let text = fs::read_to_string(path).expect("the file");
        let cassette = Cassette::parse(&text).expect("it can be read");
        prop_assert_eq!(&cassette.to_text(), &text);
        let player = CassettePlayer::new(cassette, Exhausted::Miss);
        for (at, path) in paths.iter().enumerate() {
            let played = player.play("a", "tool", &json!({ "path": path }));
            let recorded = RecordedOutcome::Result(json!({ "at": at }));
            prop_assert_eq!(played, Ok(&recorded));
        }
        let once_more = player.play("a", "tool", &json!({ "path": paths[0] }));
        prop_assert!(once_more.is_err());
        prop_assert!(player.unplayed().is_empty());
    }

    #[test]
    fn replaying_gives_equal_outcomes_and_an_equal_recording(
        calls in prop::collection::vec(("[ab]", "[xy]", prop::option::of("[a-c«»:\\n]{0,8}"), 0..5_u64), 1..20),
    ) {
        let folder = TempDir::new().expect("a folder");
        let write = |name: &str, play: &dyn Fn(&str, &str, &Value, usize) -> Raw| {
            let path = folder.path().join(name);
            let recorder = Recorder::create(&path, RecorderOptions::default()).expect("a recording");
            for (at, (source, tool, text, number)) in calls.iter().enumerate() {
                let arguments = json!({ "text": text, "number": number });
                let ticket = recorder.start("");
                let result = play(source, tool, &arguments, at);
                recorder.finish(ticket, (source, tool), Some(&arguments.into()), &Ok(result), Vec::new());
            }
            recorder.close().expect("it is written");
            fs::read_to_string(path).expect("the file")
        };
        let first = write("a.jsonl", &|_, _, arguments, at| json!({ "at": at, "got": arguments }).into());
        let player = CassettePlayer::new(Cassette::parse(&first).expect("it can be read"), Exhausted::Miss);
        let second = write("b.jsonl", &|source, tool, arguments, _| match player.play(source, tool, arguments) {
            Ok(RecordedOutcome::Result(result)) => result.clone().into(),
            other => panic!("{other:?}"),
        });
        prop_assert_eq!(second, first);
    }
}

#[test]
fn patterns_and_words_like_keys_get_equal_numbers_for_equal_values() {
    let pattern = Regex::new(r"\d{4}-\d{4}").expect("a pattern");
    let placeholders = Placeholders::default()
        .with_patterns([("card".to_owned(), pattern)])
        .with_key_check(|word| word.starts_with("sk-"));
    let masked = |text: &str| placeholders.mask_text(text);
    assert_eq!(masked("1111-2222 and 3333-4444, 1111-2222"), "«card:1» and «card:2», «card:1»");
    assert_eq!(
        masked("3333-4444 (sk-abc) \"sk-abc\"=sk-def"),
        "«card:2» («secret-like:1») \"«secret-like:1»\"=«secret-like:2»"
    );
    assert_eq!(placeholders.secret_like(), 2);
}

#[test]
fn secrets_in_binary_values_are_replaced_before_they_are_written() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let placeholders = Placeholders::of(&plan("hunter2hunter2"));
    let options = RecorderOptions { placeholders, ..RecorderOptions::default() };
    let recorder = Recorder::create(&path, options).expect("a recording");
    let before = |padding: usize, bytes: &[u8]| [b"x".repeat(padding).as_slice(), bytes].concat();
    let contents = [
        before(5, b"hunter2hunter2-one."),
        before(5_000, b"hunter2hunter2-one."),
        before(5_000, b"hunter2hunter2-one\xff"),
    ];
    let blobs = contents.iter().map(|it| json!({ "blob": BASE64_STANDARD.encode(it) }));
    let result: Raw = json!({ "contents": blobs.collect::<Vec<_>>() }).into();
    recorder.finish(recorder.start(""), ("a", "tool"), None, &Ok(result), Vec::new());
    recorder.close().expect("it is written");

    let files = fs::read_dir(folder.path().join("a.jsonl.d")).expect("a folder");
    for file in files {
        let bytes = fs::read(file.expect("a file").path()).expect("its content");
        assert!(!bytes.windows(14).any(|it| it == b"hunter2hunter2"), "{}", String::from_utf8_lossy(&bytes));
    }
    let text = fs::read_to_string(&path).expect("the file");
    let mut cassette = Cassette::parse(&text).expect("it can be read");
    let RecordedOutcome::Result(mut result) = cassette.calls.remove(0).outcome else { panic!("{text}") };
    CassetteFiles::of(&path).load(&mut result).expect("the files are there");
    let masked = [
        before(5, "«secret:T».".as_bytes()),
        before(5_000, "«secret:T».".as_bytes()),
        [before(5_000, "«secret:T»".as_bytes()), vec![0xff]].concat(),
    ];
    let masked: Vec<Value> = masked.iter().map(|it| json!({ "blob": BASE64_STANDARD.encode(it) })).collect();
    assert_eq!(result, json!({ "contents": masked }));
}

#[test]
fn secrets_that_are_numbers_or_keys_are_replaced() {
    let placeholders = Placeholders::of(&plan("12345678"));
    let mut value = json!({ "12345678-one": "x", "n": 5 });
    placeholders.mask(&mut value);
    assert_eq!(value, json!({ "«secret:T»": "x", "n": 5 }));
}

#[test]
fn foreign_lines_are_kept_out_and_broken_ones_are_refused() {
    let text =
        "{\"cassette\":{\"version\":1}}\n{\"future\":{}}\n{\"model\":{\"conversation\":\"main\",\"n\":1}}\n";
    let cassette = Cassette::parse(text).expect("it can be read");
    assert_eq!(cassette.steps.len(), 1);
    let refused = [
        ("{\"cassette\":{\"version\":2}}\n", "line 1: version 2 is not supported"),
        ("\n{\"model\":{\"n\":1}}\n", "line 2: its model is invalid"),
        ("{\"call\":{}}\n", "line 1: its call is invalid"),
        ("{}\n", "line 1: it is not an object with one key"),
        ("[]\n", "line 1: it is not an object with one key"),
        ("{\n", "line 1: it is not JSON"),
    ];
    for (text, why) in refused {
        assert_eq!(Cassette::parse(text).expect_err(text).to_string(), why);
    }
}

/// The file writes a text with line breaks as a list of lines, so the secret is nowhere in the file as it is.
#[test]
fn secret_with_line_breaks_is_not_locked() {
    let text =
        "tools:\n  - {name: a, description: b, type: mcp, server: x, command: npx, env: {K: '${T}'}}\n";
    let mut env = Env::bare();
    env.variables.insert("T".to_owned(), "first line\nsecond line".to_owned());
    let plan = load(text, &env).0.expect("a plan");
    let server = locked(&json!({ "name": "a", "description": "It is first line\nsecond line." }));
    assert_eq!(secret_in_lock(&plan, &server).as_deref(), Some("${T}"));
}

#[test]
fn nearest_call_is_found_without_the_ignored_arguments() {
    let call = |path: &str, id: &str| {
        let arguments = json!({ "path": path, "request_id": id, "trace": { "id": id } });
        json!({ "call": { "arguments": arguments, "conversation": "main", "n": 1, "result": {}, "source": "a", "tool": "read" } })
    };
    let header = json!({ "cassette": { "version": 1, "ignore": { "a:*": ["/request_id", "/trace"] } } });
    let lines = [header, call("b.txt", "1"), call("c.txt", "9")].map(|it| it.to_string()).join("\n");
    let cassette = Cassette::parse(&lines).expect("a recording");
    let player = CassettePlayer::new(cassette, Exhausted::Miss);
    let arguments = json!({ "path": "b.txt", "request_id": "9", "trace": { "id": "9" }, "deep": true });
    let miss = player.play("a", "read", &arguments).expect_err("it is not recorded");
    assert_eq!(miss.nearest, Some((2, vec!["/deep true, recorded absent".to_owned()])));
}
