//! The table of known causes, from the most specific to the most general.

use super::{Clue::*, KnownCause, On};
use wharf_mcp::Phase;

const STARTING: &[Phase] = &[Phase::Open, Phase::Handshake];
const WORKING: &[Phase] = &[Phase::Listing, Phase::Request];

pub(super) const TABLE: &[KnownCause] = &[
    // Before a process is started.
    row("breaker-open", On::All, &[Cause("is resting")], "`wharf doctor` says what is wrong with `{name}`"),
    row(
        "no-scratch",
        On::Process,
        &[Cause("could not make a working directory")],
        "wharf keeps its own files there; name a folder that can be written in `WHARF_HOME`",
    ),
    row(
        "no-npx",
        On::Process,
        &[Cause("there is no `npx`")],
        "install Node.js, which brings npx, or run the server with `command: docker`",
    ),
    row(
        "no-uvx",
        On::Process,
        &[Cause("there is no `uvx`")],
        "install uv, which brings uvx: `pip install uv`, or see its own site",
    ),
    row(
        "no-docker",
        On::Process,
        &[Cause("there is no `docker`")],
        "install Docker or podman-docker, or run the server with npx or uvx",
    ),
    row(
        "no-program",
        On::Process,
        &[Cause("there is no such program")],
        "check the path in `command`, and in the grant of wharf.toml",
    ),
    row(
        "not-a-program",
        On::Process,
        &[Cause("exec format error")],
        "this file is no program for this machine; a script needs a first line like `#!/bin/sh`",
    ),
    row(
        "not-executable",
        On::Process,
        &[Cause(": permission denied")],
        "this file may not be run; `chmod +x` allows it",
    ),
    // npm.
    row(
        "npx-asks",
        On::Process,
        &[Said("need to install the following packages"), Said("npx canceled due to missing packages")],
        "npx is asking whether to install; add `-y` to `args`",
    ),
    row(
        "npm-unknown-package",
        On::Process,
        &[Said("npm error code e404"), Said("npm error 404")],
        "npm does not know this package; check its name and version",
    ),
    row(
        "npm-unknown-version",
        On::Process,
        &[Said("no matching version found for "), Said("npm error code etarget")],
        "npm has no version `{word}`; check the version, or, if that is something the package depends on, try another version of the package",
    ),
    row(
        "npm-credentials",
        On::Process,
        &[Said("npm error code e401"), Said("npm error code e403")],
        "npm's registry wants credentials; put them into the .npmrc of your home folder",
    ),
    row(
        "npm-no-tool",
        On::Process,
        &[Said("npm error could not determine executable")],
        "the package has no program to run; is it an MCP server?",
    ),
    row(
        "npm-cache",
        On::Process,
        &[Said("npm error code eacces")],
        "npm may not write where it wants to; check the owner of its cache folder",
    ),
    row("disk-full", On::Process, &[Said("enospc"), Said("no space left on device")], "the disk is full"),
    row(
        "npm-unreachable",
        On::Process,
        &[
            Said("npm error network"),
            Said("npm error code econnrefused"),
            Said("npm error code enotfound"),
            Said("npm error code eai_again"),
            Said("npm error code etimedout"),
        ],
        "npm cannot reach its registry; check the network and the proxy settings",
    ),
    row("npm-failed", On::Process, &[Said("npm error")], "npm failed; its own words above say why"),
    // uv.
    row(
        "uv-unknown-package",
        On::Process,
        &[Said("was not found in the package registry")],
        "PyPI does not know this package; check its name",
    ),
    row(
        "uv-no-python",
        On::Process,
        &[Said("no interpreter found for python ")],
        "there is no Python {word} here, and uv may not download it; run `uv python install {word}`, or leave `--python` out",
    ),
    row(
        "uv-no-tool",
        On::Process,
        &[Said("an executable named"), Said("executables are provided by")],
        "the package has no such tool; add `--from PACKAGE` before the tool's name",
    ),
    row(
        "uv-unreachable",
        On::Process,
        &[Said("failed to fetch:"), Said("because the network was disabled")],
        "uv cannot reach its index; check the network and the proxy settings",
    ),
    row(
        "uv-newer-python",
        On::Process,
        &[Said("does not satisfy python>=")],
        "the package needs Python {word} or newer; write `args: [--python, \"{word}\", {args}]` in the entry `{name}`: uv finds that Python, or downloads it",
    ),
    row(
        "uv-no-solution",
        On::Process,
        &[Said("no solution found when resolving")],
        "uv finds no versions that fit together; pin one, as in `package==1.2`",
    ),
    // Containers.
    row(
        "docker-no-daemon",
        On::Process,
        &[
            Said("cannot connect to the docker daemon"),
            Said("cannot connect to podman"),
            Said("unable to connect to podman"),
            Said("error while fetching server api version"),
        ],
        "start Docker, then try again",
    ),
    row(
        "docker-no-init",
        On::Process,
        &[Said("container-init binary not found")],
        "podman needs an init for containers; install catatonit",
    ),
    row(
        "docker-no-tag",
        On::Process,
        &[Said("manifest unknown")],
        "there is no such image, or it has no such tag",
    ),
    row(
        "docker-credentials",
        On::Process,
        &[
            Said("pull access denied"),
            Said("requested access to the resource is denied"),
            Said("unauthorized"),
            Said(": denied"),
        ],
        "there is no such image, or it needs `docker login`",
    ),
    // Messages that a server prints before it exits.
    row(
        "python-sdk",
        On::Uvx,
        &[
            Said("'server' object has no attribute"),
            Said("no module named 'mcp.server.fastmcp'"),
            Said("cannot import name 'fastmcp' from 'mcp"),
        ],
        "the server was written for version 1 of the MCP SDK; write `args: [--with, \"mcp<2\", {args}]` in the entry `{name}`",
    ),
    row(
        "python-module",
        On::Process,
        &[Said("modulenotfounderror: no module named ")],
        "the server misses the Python module `{word}`; with uvx, begin `args` with `--with` and the package that has it",
    ),
    row(
        "npx-module",
        On::Npx,
        &[Said("cannot find module"), Said("err_module_not_found")],
        "the package is not whole: remove `{folder}` and try again; if that does not help, try another version",
    ),
    row(
        "node-module",
        On::Process,
        &[Said("cannot find module"), Said("err_module_not_found")],
        "the server misses a Node module; is the package whole, and its version right?",
    ),
    row(
        "variable-not-passed-on",
        On::Process,
        &[LacksOurVariable],
        "the server needs {variables}, which is set here but not passed on; {remedy}",
    ),
    row("variable-missing", On::Process, &[LacksVariable], "the server needs {variables}; {remedy}"),
    row(
        "argument-missing",
        On::Process,
        &[
            Said("arguments are required: "),
            Said("missing required argument"),
            Said("required option"),
            Said("required flag"),
            Said("command-line argument"),
        ],
        "the server needs another argument at the end of `args`; it says: {line}",
    ),
    row(
        "no-kubeconfig",
        On::Process,
        &[
            Said("no contexts are defined in kubeconfig"),
            Said("no configuration has been provided, try setting kubernetes_master"),
        ],
        "no Kubernetes cluster is configured; make a kubeconfig at ~/.kube/config, or end `args` of `{name}` with `--kubeconfig`, `PATH`",
    ),
    row(
        "port-taken",
        On::Process,
        &[Said("address already in use"), Said("eaddrinuse")],
        "another process has the port that the server wants",
    ),
    row(
        "server-refused",
        On::Process,
        &[Said("econnrefused"), Said("connection refused")],
        "the server cannot reach something it needs; its own words above say what",
    ),
    row(
        "server-unresolved",
        On::Process,
        &[
            Said("enotfound"),
            Said("eai_again"),
            Said("name or service not known"),
            Said("temporary failure in name resolution"),
        ],
        "a name could not be resolved; check the network and the proxy settings",
    ),
    row(
        "server-not-allowed",
        On::Process,
        &[Said("permission denied"), Said("eacces")],
        "the server may not do something it needs; its own words above say what",
    ),
    // Exit status.
    row(
        "killed",
        On::Process,
        &[Signal(&[9])],
        "somebody killed the server, perhaps the kernel because memory was short",
    ),
    row(
        "crashed",
        On::Process,
        &[Signal(&[4, 5, 6, 7, 8, 11])],
        "the server crashed; that is a bug of it, or of what it was built for",
    ),
    row("ended-by-signal", On::Process, &[Signal(&[])], "something on this machine told the server to end"),
    row(
        "listens-elsewhere",
        On::Process,
        &[
            SaidWhileLate("listening on port"),
            SaidWhileLate("listening on http"),
            SaidWhileLate("server listening"),
            SaidWhileLate("running on http://"),
        ],
        "the server listens on a port instead of reading its stdin; look for an option such as `--stdio`, or run it by itself and use `transport: http` with its address",
    ),
    row(
        "noise",
        On::Process,
        &[Noise],
        "the server writes to stdout what is not MCP; is it an MCP server, and does its log go to stderr?",
    ),
    // Responses of remote servers.
    row(
        "session-lost",
        On::Remote,
        &[Cause("has lost the session")],
        "the server forgets its sessions; behind a load balancer, all requests of a session have to reach the same process",
    ),
    row(
        "sse-only",
        On::Http,
        &[StatusAt(400, "/sse"), StatusAt(404, "/sse"), StatusAt(405, "/sse"), Status(405), Status(406)],
        "the server may speak HTTP+SSE only; try `transport: sse`, or the path /mcp",
    ),
    row(
        "http-only",
        On::Sse,
        &[
            Status(400),
            Status(405),
            Status(406),
            Cause("offers no stream of events"),
            Cause("names no place to send"),
        ],
        "there is no HTTP+SSE here; try `transport: http`, or the path /sse",
    ),
    row(
        "no-websocket",
        On::WebSocket,
        &[Cause("no websocket at"), Status(200), Status(400), Status(404), Status(405), Status(426)],
        "there is no WebSocket at this address; check the path, or try `transport: http`",
    ),
    row(
        "bad-request",
        On::Remote,
        &[Status(400)],
        "the server does not understand what MCP asks; is this its address, and does it want https?",
    ),
    row("401", On::Remote, &[Status(401)], "run `wharf login {name}`, or add an `Authorization` header"),
    row(
        "403",
        On::Remote,
        &[Status(403)],
        "the server refuses these credentials; check the token and its scopes",
    ),
    row(
        "wrong-path",
        On::Remote,
        &[Status(404), Status(410)],
        "nothing is at this path; MCP servers often listen at /mcp, or at /sse with `transport: sse`",
    ),
    row("429", On::Remote, &[Status(429)], "the server has too much to do; try again later"),
    row("500", On::Remote, &[Status(500)], "the server failed by itself; its own log says why"),
    row("502", On::Remote, &[Status(502), Status(504)], "a proxy before the server cannot reach it"),
    row("503", On::Remote, &[Status(503)], "the server is not ready; try again later"),
    row(
        "elsewhere",
        On::Remote,
        &[Cause("it redirects")],
        "the server redirects elsewhere; put the address it redirects to into `url`",
    ),
    row(
        "not-mcp",
        On::Remote,
        &[Cause("something that is no message"), Cause("holds no answer")],
        "something answers there, but not in MCP; check the path of `url`",
    ),
    // Connection errors.
    row(
        "out-of-reach",
        On::Remote,
        &[Cause("may not be dialled")],
        "if `{name}` is meant to be there, the operator can name its host in wharf.toml: [grants] private_hosts",
    ),
    row(
        "connection-refused",
        On::Remote,
        &[Cause("connection refused")],
        "nothing listens there; is the server running, and is the port right?",
    ),
    row(
        "unknown-host",
        On::Remote,
        &[Cause("dns error"), Cause("failed to lookup address"), Cause("name or service not known")],
        "the host's name could not be resolved; check its spelling and the network",
    ),
    row(
        "certificate",
        On::Remote,
        &[Cause("certificate")],
        "the server's certificate is not trusted; is the address right? SSL_CERT_FILE can name your own authority",
    ),
    row(
        "no-tls-there",
        On::Remote,
        &[Cause("corrupt message"), Cause("invalidcontenttype")],
        "the server does not speak TLS there; is it http:// (or ws://) instead?",
    ),
    row(
        "tls-there",
        On::Remote,
        &[Cause("invalid http version"), Cause("httparse error")],
        "what answers there is not HTTP; is it https:// (or wss://) instead?",
    ),
    // Fallbacks, based only on the kind of failure.
    row(
        "version",
        On::All,
        &[Cause("wants protocol version")],
        "the server speaks a version of MCP that is unknown here; update it, or wharf",
    ),
    row(
        "too-long",
        On::All,
        &[Cause("longer than the limit")],
        "one message of the server is too large to be taken in; ask it for less at once",
    ),
    row(
        "slow-npx-download",
        On::Npx,
        &[Cause("was not downloaded within")],
        "check the network, or raise `install_timeout`; if npx fails with this package afterwards, remove `{folder}`",
    ),
    row(
        "slow-download",
        On::Process,
        &[Cause("was not downloaded within")],
        "check the network and the proxy settings, or raise `install_timeout`",
    ),
    row(
        "slow-start",
        On::Process,
        &[Late(STARTING)],
        "raise `connect_timeout`, or run the command by hand to see what it waits for",
    ),
    row(
        "slow-far-start",
        On::Remote,
        &[Late(STARTING)],
        "is this the address of an MCP server? raise `connect_timeout` if it is only slow",
    ),
    row(
        "slow-request",
        On::All,
        &[Late(WORKING)],
        "raise `request_timeout`, or `--timeout` of a call, if the work really takes that long",
    ),
    row(
        "download-failed",
        On::Process,
        &[Cause("could not download")],
        "the server was not downloaded; the words above say why",
    ),
    row(
        "ended-talking",
        On::Process,
        &[GoneTalking(STARTING)],
        "the server ended before it was ready; its own words above say why",
    ),
    row(
        "ended-silently",
        On::Process,
        &[Gone(STARTING)],
        "the server ended without a word; run the command by hand to see why",
    ),
    row(
        "hung-up",
        On::Remote,
        &[Gone(STARTING)],
        "the server hung up; is this the address of an MCP server?",
    ),
    row(
        "gone-at-work",
        On::All,
        &[Gone(WORKING)],
        "the server went away in the middle of its work; what was asked of it may have been done, or not",
    ),
    row(
        "breach",
        On::All,
        &[Breach],
        "this is a mistake of the server; try another version of it, or tell its author",
    ),
    row("refused-by-the-server", On::All, &[Refused], "the server itself refused this; its words say why"),
];

const fn row(name: &'static str, on: On, clues: &'static [super::Clue], hint: &'static str) -> KnownCause {
    KnownCause { name, hint, on, clues }
}
