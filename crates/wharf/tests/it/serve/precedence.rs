//! Tests the precedence of settings: command line, environment, wharf.toml.

use super::server::wharf;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// Arguments after `serve`, environment, and the expected database file. wharf.toml is the same in all cases.
type Case = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str);

const CASES: [Case; 3] = [
    (&[], &[], "file.db"),
    (&[], &[("WHARF_DATABASE", "sqlite:variable.db")], "variable.db"),
    (&["--database", "sqlite:typed.db"], &[("WHARF_DATABASE", "sqlite:variable.db")], "typed.db"),
];

#[test]
fn settings_yield_to_environment_and_flags() {
    for (typed, variables, database) in CASES {
        let folder = TempDir::new().expect("a folder");
        let kept = folder.path().join("file.db");
        let setting =
            format!("listen = \"127.0.0.1:0\"\ndatabase = \"sqlite:{}\"\nno_auth = true\n", kept.display());
        let mut command = serve(&folder, &format!("[server]\n{setting}"));
        let mut child = command.args(typed).envs(variables.iter().copied()).spawn().expect("it starts");
        let said = BufReader::new(child.stdout.take().expect("its stdout"));
        let address = said.lines().map_while(Result::ok).find_map(|line| {
            line.strip_prefix("MCP   http://").and_then(|it| it.strip_suffix("/mcp")).map(str::to_owned)
        });
        let address = address.expect("it says where it is");
        assert!(!address.ends_with(":7373"), "{address}");
        let mut stream = TcpStream::connect(&address).expect("it listens");
        let request = format!("GET /api/v1/tools HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "nobody needs a token: {answer}");
        child.kill().and_then(|()| child.wait()).expect("it ends");
        let there = ["file.db", "variable.db", "typed.db"].map(|it| folder.path().join(it).exists());
        assert_eq!(there, ["file.db", "variable.db", "typed.db"].map(|it| it == database), "{typed:?}");
    }
}

/// Line of wharf.toml, environment, and expected messages. `TAKEN` is an address in use.
type Refusal = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const REFUSALS: &[Refusal] = &[
    ("listen = \"TAKEN\"", &[], &["error: cannot listen on `TAKEN`: ", "wharf.toml:2:10\n", "help: "]),
    ("listen = \"127.0.0.1:0\"", &[("WHARF_LISTEN", "TAKEN")], &["cannot listen on `TAKEN`: "]),
    (
        "database = \"${NOT_SET_HERE}\"",
        &[],
        &[
            "error: `NOT_SET_HERE`, which holds the address of the database, is not set\n --> ",
            "wharf.toml:2:12\n",
        ],
    ),
    (
        "database = \"${HERE}\"",
        &[("HERE", "mysql://root:hunter2@db")],
        &["error: HERE: a database address is `sqlite:PATH`", "wharf.toml:2:12\n"],
    ),
    ("", &[("WHARF_DATABASE", "nowhere")], &["error: WHARF_DATABASE: a database address is"]),
    (
        "listen = \"here\"",
        &[],
        &["ConfigError: 'here' is not an address of the form HOST:PORT", "wharf.toml:2:10\n"],
    ),
];

#[test]
fn invalid_setting_is_reported_with_its_position() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = other.local_addr().expect("an address").to_string();
    let taken = |it: &str| it.replace("TAKEN", &taken);
    for (setting, variables, words) in REFUSALS {
        let folder = TempDir::new().expect("a folder");
        let mut command = serve(&folder, &taken(&format!("[server]\n{setting}\n")));
        let variables = variables.iter().map(|(name, value)| (name, taken(value)));
        let output = command.envs(variables).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{setting}: {said}");
        for word in *words {
            assert!(said.contains(&taken(word)), "{setting}: {said}");
        }
        assert!(!said.contains("hunter2"), "{said}");
    }
}

/// Value of `--database`, and the expected hint.
const TYPOS: &[(&str, &str)] = &[
    ("sqlitte:x", "help: `sqlitte:` is not known; did you mean `sqlite:PATH`?"),
    ("postgre://me:hunter2@db/x", "help: `postgre:` is not known; did you mean `postgres://user@host/name`?"),
    ("foo", "help: a file of this name is `sqlite:foo`"),
    ("mysql://me:hunter2@db/x", ""),
    ("sqlite:", ""),
    ("sqlite::memory:", "error: an in-memory database keeps nothing; "),
    ("sqlite:x.db?mode=ro", "error: parameters after `?` are not supported; "),
];

#[test]
fn mistyped_database_creates_nothing() {
    for (typed, words) in TYPOS {
        for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["todo"]] {
            let folder = TempDir::new().expect("a folder");
            let ended = wharf(&folder).args(command).args(["--database", typed]).output().expect("it starts");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(2), "{typed}: {said}");
            assert!(
                said.contains("a database address is `sqlite:PATH` or `postgres://user@host/name`"),
                "{said}"
            );
            assert!(said.contains(words) && !said.contains("hunter2"), "{typed}: {said}");
            assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "{typed}");
        }
    }
}

fn serve(folder: &TempDir, settings: &str) -> Command {
    let file = folder.path().join("wharf.toml");
    fs::write(&file, settings).expect("settings");
    let mut command = wharf(folder);
    command.arg("--settings").arg(file).arg("serve").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Users often type a port alone.
#[test]
fn a_port_alone_gets_help_with_the_address() {
    for words in [&["serve", "--listen", "80"][..], &["todo", "--transport", "http", "--listen", "80"]] {
        let folder = TempDir::new().expect("a folder");
        let output = wharf(&folder).args(words).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{words:?}");
        assert!(said.starts_with("error: cannot listen on `80`: "), "{words:?}: {said}");
        assert!(
            said.contains("\nhelp: a port alone is not an address: `--listen 127.0.0.1:80`"),
            "{words:?}: {said}"
        );
    }
}
