//! Tests the first five minutes of a new user at a terminal, in an empty folder: every printed step works.
//!
//! The recorded session is docs/first-five-minutes.md, apart from times, the port and paths. `UPDATE=1` rewrites
//! the page; review the diff.

use crate::{
    servers::workspace::{caches, path_with},
    terminal::{TerminalOutput, TerminalProgram},
};
use std::{
    env, fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/first-five-minutes.md");
const PROGRAM: &str = env!("CARGO_BIN_EXE_wharf");

/// Maximum line length on the page; longer lines are cut.
const MAX_LINE_LENGTH: usize = 150;

const HEAD: &str = "\
# The first five minutes

Recorded at a terminal, in an empty folder, by a test that runs every step as it is printed. Paths, the port and times are those
of an example; lines that are longer than the page are cut. It needs `wharf` on the PATH, and Node.js for the second server.
";

/// An empty home folder, and the page being recorded.
struct NewUser {
    folder: TempDir,
    page: String,
}

#[test]
fn every_step_works_as_printed() {
    let mut user = NewUser::new();
    user.add_section(
        "Serve",
        "In one terminal, start the gateway. Without an agent file it serves the built-in Todo server.",
    );
    let mut serving = user.start("wharf serve");
    serving.wait_for("5 tools, ready");
    let screen = serving.screen();
    user.record("wharf serve", &screen);

    user.add_section("Ask it", "In another terminal, paste the line that `wharf serve` prints:");
    let pasted = screen.lines().find_map(|it| it.strip_prefix("try it: ")).expect("a line to try").to_owned();
    let answer = user.step(&pasted);
    assert!(answer.contains("todo__create_todo"), "{answer}");

    user.add_section("Add a server", "A package of npm or PyPI, an address, or what a page shows as JSON:");
    let added = user.step("wharf add @modelcontextprotocol/server-filesystem");
    assert!(added.contains("filesystem is added to agent.yaml"), "{added}");

    user.add_section("Look at its tools", "The first time, npm downloads the package.");
    let tools = user.step("wharf tools");
    assert!(tools.contains("list_directory"), "{tools}");

    user.add_section(
        "Call one",
        "A tool is named by its shown name, or by its bare name where only one server has it.",
    );
    let called = user.step("wharf call list_directory path=$PWD");
    assert!(called.contains("[FILE] agent.yaml"), "{called}");

    user.add_section(
        "Connect your client",
        "Without `--print` this is written into the client's own file, after a copy of it. The other clients are in\n[clients.md](clients.md).",
    );
    let connected = user.step("wharf connect --print claude");
    assert!(connected.contains("\"stdio\""), "{connected}");

    serving.type_in("\u{3}");
    let TerminalOutput { text, code } = serving.end();
    assert_eq!(code, Some(0), "{text}");
    user.compare();
}

impl NewUser {
    fn new() -> NewUser {
        let folder = TempDir::new().expect("a folder");
        fs::create_dir_all(folder.path().join("tools")).expect("a folder");
        NewUser { folder, page: HEAD.to_owned() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder").join(name)
    }

    /// Returns the variables of a login, and caches that other tests have filled, so that nothing is downloaded.
    fn variables(&self) -> Vec<(String, String)> {
        let text = |it: PathBuf| it.to_string_lossy().into_owned();
        let program = Path::new(PROGRAM).parent().map(Path::to_owned);
        let path = path_with(program).to_string_lossy().into_owned();
        let own = [
            ("PATH", path),
            ("HOME", text(self.path(""))),
            ("LANG", "C.UTF-8".to_owned()),
            ("NO_COLOR", "1".to_owned()),
            // Other gateways may use the default port on this machine.
            ("WHARF_LISTEN", "127.0.0.1:0".to_owned()),
        ];
        let caches = caches().into_iter().map(|(name, value)| (name.to_owned(), text(value)));
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(caches).collect()
    }

    fn start(&self, typed: &str) -> TerminalProgram {
        TerminalProgram::start(
            &self.path("tools"),
            &self.variables(),
            &["sh", "-c", &format!("exec {typed}")],
        )
    }

    /// Runs a command line, records it and returns its output.
    fn step(&mut self, typed: &str) -> String {
        let TerminalOutput { text, code } = self.start(typed).end();
        assert_eq!(code, Some(0), "`{typed}`: {text}");
        self.record(typed, &text);
        text
    }

    fn add_section(&mut self, heading: &str, what: &str) {
        self.page.push_str(&format!("\n## {heading}\n\n{what}\n"));
    }

    fn record(&mut self, typed: &str, seen: &str) {
        let text = self.normalise(&format!("$ {typed}\n{}\n", seen.trim_end()));
        let lines = text.lines().map(|line| match line.char_indices().nth(MAX_LINE_LENGTH) {
            Some((end, _)) if !line.starts_with("$ ") && !line.starts_with("try it") => {
                format!("{}…\n", &line[..end])
            }
            _ => format!("{line}\n"),
        });
        self.page.push_str(&format!("\n```console\n{}```\n", lines.collect::<String>()));
    }

    /// Replaces paths, port, ticket and times by those of an example.
    fn normalise(&self, text: &str) -> String {
        let home = self.path("").to_string_lossy().trim_end_matches('/').to_owned();
        let text = text.replace(PROGRAM, "/usr/local/bin/wharf").replace(&home, "/home/you");
        with_port(&with_times(&without_ticket(&text)))
    }

    #[expect(clippy::disallowed_methods, reason = "the UPDATE variable decides whether to write")]
    fn compare(&self) {
        if env::var_os("UPDATE").is_some() {
            fs::write(PAGE, &self.page).expect("the page can be written");
        }
        let page = fs::read_to_string(PAGE).unwrap_or_default();
        assert!(page == self.page, "the page says:\n{page}\nbut this was seen:\n{}", self.page);
    }
}

/// Replaces the ticket of the console, which is random.
fn without_ticket(text: &str) -> String {
    let shorten = |line: &str| match line.split_once("#ticket=wt_") {
        Some((before, _)) => format!("{before}#ticket=wt_…"),
        None => line.to_owned(),
    };
    text.split('\n').map(shorten).collect::<Vec<_>>().join("\n")
}

/// Replaces every port of the gateway by the default one.
fn with_port(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        format!("{out}127.0.0.1:7373{}", part.trim_start_matches(|c: char| c.is_ascii_digit()))
    })
}

/// Replaces every duration by `0.1 s`.
fn with_times(text: &str) -> String {
    let is_number = |it: &str| {
        !it.is_empty()
            && it.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && it.as_bytes()[0].is_ascii_digit()
    };
    let lines = text.split('\n').map(|line| {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for at in 1..words.len() {
            let unit = words[at].trim_end_matches([',', '.', ')', ';']).to_owned();
            if matches!(unit.as_str(), "s" | "ms") && is_number(words[at - 1].trim_start_matches('(')) {
                let open = if words[at - 1].starts_with('(') { "(" } else { "" };
                words[at - 1] = format!("{open}0.1");
                words[at] = format!("s{}", &words[at][unit.len()..]);
            }
        }
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn times_and_ports_are_normalised() {
    assert_eq!(
        with_times("ok  todo  5 tools, ready after 12.3 s\n(450 ms), 3 servers"),
        "ok  todo  5 tools, ready after 0.1 s\n(0.1 s), 3 servers"
    );
    assert_eq!(
        with_port("http://127.0.0.1:41234/mcp and 127.0.0.1:1"),
        "http://127.0.0.1:7373/mcp and 127.0.0.1:7373"
    );
}
