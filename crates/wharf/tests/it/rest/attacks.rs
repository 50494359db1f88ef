//! Tests hostile requests: raw requests from `attacks.txt` and their expected responses. docs/security.md contains
//! a table of them; `UPDATE=1` rewrites it.

mod credentials;
mod large;
mod permissive;

use crate::serve::server::{AfterSending, Server};
use permissive::PermissiveGateway;
use std::{fs, path::Path};

const ATTACKS: &str = include_str!("attacks.txt");

/// `_meta` of a 2026-07-28 request.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Directive, not a line of the request: the client closes its sending side.
const STOP: &str = "STOP";

/// Directive, not a line of the request: omits `Connection: close`, and the server must close the connection anyway.
const KEEP: &str = "KEEP";

/// Directive, not a line of the request: sends it to a more permissive gateway.
const OPEN: &str = "OPEN";

/// Path of the page, relative to this crate, and the markers around the table.
const PAGE: &str = "../../docs/security.md";
const BEGIN: &str = "<!-- attacks -->\n";
const END: &str = "<!-- /attacks -->\n";

/// One hostile request.
struct Attack<'a> {
    /// Number of the table row; attacks of one kind share it.
    row: &'a str,
    what: &'a str,
    head: Vec<&'a str>,
    body: &'a str,
    status: &'a str,
    /// Text that the response must contain.
    has: &'a str,
}

fn attacks() -> Vec<Attack<'static>> {
    let blocks = ATTACKS.split("\n\n").filter(|it| !it.starts_with('#'));
    blocks.map(|it| Attack::read(it).unwrap_or_else(|| panic!("cannot be read: {it}"))).collect()
}

#[test]
fn every_attack_gets_its_expected_response() {
    let (server, permissive) = (Server::start(&[]), PermissiveGateway::start());
    let attacks = attacks();
    let check =
        |it: &Attack<'_>| it.check(if it.head.contains(&OPEN) { &permissive.server } else { &server });
    let wrong: Vec<String> = attacks.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{} of {}:\n\n{}", wrong.len(), attacks.len(), wrong.join("\n\n"));
    permissive.check_nothing_started();
    // The gateway still runs, and its log contains no secrets and no control characters.
    assert_eq!(server.ask_with("GET", "/health", &[], None).0, 200);
    let log = server.log();
    assert!(!log.contains(&server.token) && !log.contains('\u{1b}'), "{log}");
    assert!(!log.lines().any(|it| it.starts_with("red")), "a line was broken: {log}");
}

impl<'a> Attack<'a> {
    fn read(block: &'a str) -> Option<Attack<'a>> {
        let mut lines = block.trim().lines();
        let (row, what) = lines.next()?.split_once(' ')?;
        let (status, has) =
            lines.next_back()?.strip_prefix("=> ").map(|it| it.split_once(' ').unwrap_or((it, "")))?;
        let (body, head): (Vec<&str>, Vec<&str>) = lines.partition(|it| it.starts_with("body: "));
        let body = body.first().and_then(|it| it.strip_prefix("body: ")).unwrap_or_default();
        Some(Attack { row, what, head, body, status, has })
    }

    /// Returns the reason why the response is wrong, if it is.
    fn check(&self, server: &Server) -> Option<String> {
        let then = if self.head.contains(&STOP) { AfterSending::Stop } else { AfterSending::Stay };
        let (answer, is_closed) = server.send_and_see(self.request(server).as_bytes(), then);
        let status = answer.split(' ').nth(1).unwrap_or_default();
        let head = answer.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
        // Invalid HTTP is rejected before the API sees it, without its headers.
        let is_ours = head.contains("x-content-type-options: nosniff");
        let is_safe =
            !is_ours || head.contains("x-frame-options: deny") && head.contains("cache-control: no-");
        let leaks = head.contains("access-control-") || answer.contains(&server.token);
        let is_right = status == self.status && answer.contains(self.has) && is_safe && !leaks && is_closed;
        (!is_right).then(|| {
            let Attack { row, what, status, has, .. } = self;
            format!("{row} {what}: expected {status} `{has}`, and then the end: {is_closed}\n{answer}")
        })
    }

    fn request(&self, server: &Server) -> String {
        let head: String = self
            .head
            .iter()
            .filter(|it| ![STOP, OPEN, KEEP].contains(it))
            .map(|it| self.line(it, server) + "\r\n")
            .collect();
        let body = self.line(self.body, server);
        let has_length = ["Content-Length", "Transfer-Encoding"].iter().any(|it| head.contains(it));
        let length = match body.is_empty() || has_length {
            true => String::new(),
            false => format!("Content-Length: {}\r\n", body.len()),
        };
        let end = if self.head.contains(&KEEP) { "" } else { "Connection: close\r\n" };
        format!("{head}{length}{end}\r\n{body}")
    }

    /// Expands a line of the file into the line to send.
    fn line(&self, line: &str, server: &Server) -> String {
        let line = match line {
            "LIST" => "GET /api/v1/tools HTTP/1.1",
            "CALL" => "POST /api/v1/tools/todo:create_todo/call HTTP/1.1",
            "MCP" => "POST /mcp HTTP/1.1",
            "REGISTER" => "POST /api/v1/sources HTTP/1.1",
            "HOST" => "Host: ADDRESS",
            "TOKEN" => "Authorization: Bearer SECRET",
            "JSON" => "Content-Type: application/json",
            line => line,
        };
        let line =
            line.replace("ADDRESS", &server.address).replace("SECRET", &server.token).replace("META", META);
        let folder = server.folder.path().display().to_string();
        let line = permissive::TOKENS.iter().fold(line, |line, (word, token)| line.replace(word, token));
        let line = credentials::expand(line, server);
        let line = line.replace("MARKER", &format!("{folder}/marker")).replace("FOLDER", &folder);
        let line = line.replace("\\0", "\0").replace("\\r", "\r").replace("\\n", "\n");
        repeated(&line).unwrap_or(line)
    }
}

/// Expands `{x*9}` in a line.
fn repeated(line: &str) -> Option<String> {
    let (before, rest) = line.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    let (what, times) = inside.split_once('*')?;
    Some(format!("{before}{}{after}", what.repeat(times.parse().ok()?)))
}

#[test]
fn security_page_lists_every_attack() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (_, after) = rest.split_once(END).expect("where the table ends");
    let line = |it: &Attack<'_>| format!("| {} | {} | {} |\n", it.row, it.what, it.status);
    let table: String = attacks().iter().map(line).collect();
    let head = "| kind | what is tried | status |\n| --- | --- | --- |\n";
    let written = format!("{before}{BEGIN}{head}{table}{END}{after}");
    let update = std::env::var_os("UPDATE").is_some();
    if update {
        fs::write(&path, &written).expect("the page can be written");
    }
    assert!(page == written || update, "run this with UPDATE=1, and read what changed");
}
