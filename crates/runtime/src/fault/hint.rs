//! What to do about it: a table of known causes, the most telling first.

use crate::config::{Endpoint, Launcher, Program, Source};
use wharf_mcp::{Class, Failure, Phase};

/// Where a clue is looked for.
enum Clue {
    /// In what the server wrote to stderr, in small letters.
    Stderr(&'static str),
    /// In the cause.
    Cause(&'static str),
    /// In the status of an HTTP answer.
    Status(u16),
}

/// Known causes. `{name}` is the source.
const TABLE: &[(Clue, &str)] = &[
    (
        Clue::Cause("there is no `npx`"),
        "install Node.js, which brings npx, or run the server with `command: docker`",
    ),
    (Clue::Cause("there is no `uvx`"), "install uv, which brings uvx: `pip install uv`, or see its own site"),
    (
        Clue::Cause("there is no `docker`"),
        "install Docker or podman-docker, or run the server with npx or uvx",
    ),
    (
        Clue::Stderr("need to install the following packages"),
        "npx is asking whether to install; add `-y` to `args`",
    ),
    (Clue::Stderr("npm error code e404"), "npm does not know this package; check its name and version"),
    (Clue::Stderr("npm error 404"), "npm does not know this package; check its name and version"),
    (
        Clue::Stderr("npm error code eacces"),
        "npm may not write where it wants to; check the owner of its cache folder",
    ),
    (Clue::Stderr("npm error code enospc"), "the disk is full"),
    (Clue::Stderr("npm error code etarget"), "npm has the package, but not this version"),
    (
        Clue::Stderr("npm error could not determine executable"),
        "the package has no program to run; is it an MCP server?",
    ),
    (
        Clue::Stderr("npm error network"),
        "npm cannot reach its registry; check the network and the proxy settings",
    ),
    (
        Clue::Stderr("econnrefused"),
        "the server cannot reach something it needs; its own words above say what",
    ),
    (Clue::Stderr("enotfound"), "a name could not be resolved; check the network and the proxy settings"),
    (Clue::Stderr("npm error"), "npm failed; its own words above say why"),
    (
        Clue::Stderr("was not found in the package registry"),
        "PyPI does not know this package; check its name",
    ),
    (
        Clue::Stderr("no solution found when resolving"),
        "uv finds no versions that fit together; pin one, as in `package==1.2`",
    ),
    (
        Clue::Stderr("an executable named"),
        "the package has no such tool; add `--from PACKAGE` before the tool's name",
    ),
    (Clue::Stderr("cannot connect to the docker daemon"), "start Docker, then try again"),
    (Clue::Stderr("pull access denied"), "there is no such image, or it needs `docker login`"),
    (Clue::Stderr("manifest unknown"), "the image has no such tag"),
    (Clue::Stderr("modulenotfounderror"), "the server misses a Python module; add it with `--with NAME`"),
    (
        Clue::Stderr("cannot find module"),
        "the server misses a Node module; is the package whole, and its version right?",
    ),
    (Clue::Stderr("address already in use"), "another process has the port that the server wants"),
    (
        Clue::Stderr("permission denied"),
        "the server may not do something it needs; its own words above say what",
    ),
    (Clue::Status(401), "run `wharf login {name}`, or add an `Authorization` header"),
    (Clue::Status(403), "the server refuses these credentials; check the token and its scopes"),
    (
        Clue::Status(404),
        "nothing is at this path; MCP servers often listen at /mcp, or at /sse with `transport: sse`",
    ),
    (Clue::Status(405), "this path does not take MCP's requests; try /mcp, or `transport: sse`"),
    (Clue::Status(406), "the server does not speak streamable HTTP; try `transport: sse`"),
    (Clue::Status(429), "the server has too much to do; try again later"),
    (Clue::Status(502), "a proxy before the server cannot reach it"),
    (Clue::Status(503), "the server is not ready; try again later"),
    (
        Clue::Cause("connection refused"),
        "nothing listens there; is the server running, and is the port right?",
    ),
    (Clue::Cause("dns error"), "the host's name could not be resolved; check its spelling and the network"),
    (
        Clue::Cause("failed to lookup address"),
        "the host's name could not be resolved; check its spelling and the network",
    ),
    (
        Clue::Cause("certificate"),
        "the server's certificate is not trusted; is the address right? SSL_CERT_FILE can name your own authority",
    ),
    (
        Clue::Cause("another origin"),
        "the server redirects elsewhere; put the address it redirects to into `url`",
    ),
    (Clue::Cause("not part of this version"), "leave the entry out until then"),
];

/// What to do about a failure of this source.
pub(super) fn hint(source: &Source, failure: &Failure, stderr: &str) -> Option<String> {
    let (stderr, cause) = (stderr.to_lowercase(), failure.what.to_lowercase());
    let known = TABLE.iter().find(|(clue, _)| match clue {
        Clue::Stderr(words) => stderr.contains(words),
        Clue::Cause(words) => cause.contains(words),
        Clue::Status(status) => failure.status == Some(*status),
    });
    let general = || match (failure.class, failure.phase) {
        (Class::Timeout, Phase::Open | Phase::Handshake) => Some(slow_start(source)),
        (Class::Timeout, _) => Some(
            "raise `request_timeout`, or `--timeout` of a call, if the work really takes that long"
                .to_owned(),
        ),
        (Class::Closed, Phase::Handshake) if !stderr.is_empty() => {
            Some("the server ended before it was ready; its own words above say why".to_owned())
        }
        (Class::Closed, Phase::Handshake) => Some(by_hand(source)),
        _ => None,
    };
    known.map(|(_, hint)| hint.replace("{name}", source.name.shown())).or_else(general)
}

fn slow_start(source: &Source) -> String {
    match &source.endpoint {
        Endpoint::Stdio(launch) if launch.program == Program::Launcher(Launcher::Npx) => {
            "the first start downloads the package; raise `connect_timeout`, or run the command once by hand"
                .to_owned()
        }
        Endpoint::Stdio(_) => {
            "raise `connect_timeout`, or run the command by hand to see what it waits for".to_owned()
        }
        _ => "is this the address of an MCP server? raise `connect_timeout` if it is only slow".to_owned(),
    }
}

fn by_hand(source: &Source) -> String {
    match &source.endpoint {
        Endpoint::Stdio(_) => {
            "the server ended without a word; run the command by hand to see why".to_owned()
        }
        _ => "the server hung up; is this the address of an MCP server?".to_owned(),
    }
}
