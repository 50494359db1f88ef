//! The table of known causes, from the most specific to the most general.

use super::{Clue::*, KnownCause, On};
use wharf_mcp::Phase;

const STARTING: &[Phase] = &[Phase::Open, Phase::Handshake];
const WORKING: &[Phase] = &[Phase::Listing, Phase::Request];

pub(super) const TABLE: &[KnownCause] = &[
    // Before a process is started.
    row(
        "breaker-open",
        On::All,
        &[Cause("the circuit breaker for")],
        "`wharf doctor` shows what is wrong with `{name}`",
    ),
    row(
        "no-scratch",
        On::Process,
        &[Cause("could not make a working directory")],
        "set `WHARF_HOME` to a writable folder",
    ),
    row(
        "no-npx",
        On::Process,
        &[Cause("there is no `npx`")],
        "install Node.js, which includes npx, or run the server with `command: docker`",
    ),
    row(
        "no-uvx",
        On::Process,
        &[Cause("there is no `uvx`")],
        "install uv, which includes uvx: `pip install uv`",
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
        "check the path in `command` and in the grant in wharf.toml",
    ),
    row(
        "not-a-program",
        On::Process,
        &[Cause("exec format error")],
        "the file is not a program for this machine; a script needs a first line such as `#!/bin/sh`",
    ),
    row(
        "not-executable",
        On::Process,
        &[Cause(": permission denied")],
        "the file is not executable; run `chmod +x` on it",
    ),
    // npm.
    row(
        "npx-asks",
        On::Process,
        &[Stderr("need to install the following packages"), Stderr("npx canceled due to missing packages")],
        "npx asks before it installs; add `-y` to `args`",
    ),
    row(
        "npm-unknown-package",
        On::Process,
        &[Stderr("npm error code e404"), Stderr("npm error 404")],
        "npm does not know this package; check its name and version",
    ),
    row(
        "npm-unknown-version",
        On::Process,
        &[Stderr("no matching version found for "), Stderr("npm error code etarget")],
        "npm has no version `{word}`; check the version, or try another version of the package if this is one of its dependencies",
    ),
    row(
        "npm-credentials",
        On::Process,
        &[Stderr("npm error code e401"), Stderr("npm error code e403")],
        "npm's registry needs credentials; put them into .npmrc in your home folder",
    ),
    row(
        "npm-no-tool",
        On::Process,
        &[Stderr("npm error could not determine executable")],
        "the package has no program to run; check that it is an MCP server",
    ),
    row(
        "npm-cache",
        On::Process,
        &[Stderr("npm error code eacces")],
        "npm cannot write to one of its folders; check the owner of its cache folder",
    ),
    row("disk-full", On::Process, &[Stderr("enospc"), Stderr("no space left on device")], "the disk is full"),
    row(
        "npm-unreachable",
        On::Process,
        &[
            Stderr("npm error network"),
            Stderr("npm error code econnrefused"),
            Stderr("npm error code enotfound"),
            Stderr("npm error code eai_again"),
            Stderr("npm error code etimedout"),
        ],
        "npm cannot reach its registry; check the network and the proxy settings",
    ),
    row("npm-failed", On::Process, &[Stderr("npm error")], "npm failed; see its message above"),
    // uv.
    row(
        "uv-unknown-package",
        On::Process,
        &[Stderr("was not found in the package registry")],
        "PyPI does not know this package; check its name",
    ),
    row(
        "uv-no-python",
        On::Process,
        &[Stderr("no interpreter found for python ")],
        "Python {word} is not installed, and uv may not download it; run `uv python install {word}`, or remove `--python`",
    ),
    row(
        "uv-no-tool",
        On::Process,
        &[Stderr("an executable named"), Stderr("executables are provided by")],
        "the package has no such tool; add `--from PACKAGE` before the tool's name",
    ),
    row(
        "uv-unreachable",
        On::Process,
        &[Stderr("failed to fetch:"), Stderr("because the network was disabled")],
        "uv cannot reach its index; check the network and the proxy settings",
    ),
    row(
        "uv-newer-python",
        On::Process,
        &[Stderr("does not satisfy python>=")],
        "the package needs Python {word} or newer; write `args: [--python, \"{word}\", {args}]` in the entry `{name}`: uv finds that Python, or downloads it",
    ),
    row(
        "uv-no-solution",
        On::Process,
        &[Stderr("no solution found when resolving")],
        "uv finds no versions that fit together; pin one, as in `package==1.2`",
    ),
    // Containers.
    row(
        "docker-no-daemon",
        On::Process,
        &[
            Stderr("cannot connect to the docker daemon"),
            Stderr("cannot connect to podman"),
            Stderr("unable to connect to podman"),
            Stderr("error while fetching server api version"),
        ],
        "start Docker, then try again",
    ),
    row(
        "docker-no-init",
        On::Process,
        &[Stderr("container-init binary not found")],
        "podman needs an init for containers; install catatonit",
    ),
    row(
        "docker-no-tag",
        On::Process,
        &[Stderr("manifest unknown")],
        "there is no such image, or it has no such tag",
    ),
    row(
        "docker-credentials",
        On::Process,
        &[
            Stderr("pull access denied"),
            Stderr("requested access to the resource is denied"),
            Stderr("unauthorized"),
            Stderr(": denied"),
        ],
        "there is no such image, or it needs `docker login`",
    ),
    // Messages that a server prints before it exits.
    row(
        "python-sdk",
        On::Uvx,
        &[
            Stderr("'server' object has no attribute"),
            Stderr("no module named 'mcp.server.fastmcp'"),
            Stderr("cannot import name 'fastmcp' from 'mcp"),
        ],
        "the server was written for version 1 of the MCP SDK; write `args: [--with, \"mcp<2\", {args}]` in the entry `{name}`",
    ),
    row(
        "python-module",
        On::Process,
        &[Stderr("modulenotfounderror: no module named ")],
        "the server needs the Python module `{word}`; with uvx, begin `args` with `--with` and the package that has it",
    ),
    row(
        "npx-module",
        On::Npx,
        &[Stderr("cannot find module"), Stderr("err_module_not_found")],
        "the installed package is incomplete: remove `{folder}` and try again; if that does not help, try another version",
    ),
    row(
        "node-module",
        On::Process,
        &[Stderr("cannot find module"), Stderr("err_module_not_found")],
        "a Node module is missing; check the package and its version",
    ),
    row(
        "variable-not-passed-on",
        On::Process,
        &[UninheritedVariable],
        "the server needs {variables}, which is set here but not passed on; {remedy}",
    ),
    row("variable-missing", On::Process, &[MissingVariable], "the server needs {variables}; {remedy}"),
    row(
        "argument-missing",
        On::Process,
        &[
            Stderr("arguments are required: "),
            Stderr("missing required argument"),
            Stderr("required option"),
            Stderr("required flag"),
            Stderr("command-line argument"),
        ],
        "the server needs another argument at the end of `args`; it says: {line}",
    ),
    row(
        "no-kubeconfig",
        On::Process,
        &[
            Stderr("no contexts are defined in kubeconfig"),
            Stderr("no configuration has been provided, try setting kubernetes_master"),
        ],
        "no Kubernetes cluster is configured; create ~/.kube/config, or end `args` of `{name}` with `--kubeconfig`, `PATH`",
    ),
    row(
        "port-taken",
        On::Process,
        &[Stderr("address already in use"), Stderr("eaddrinuse")],
        "another process uses the port that the server needs",
    ),
    row(
        "server-refused",
        On::Process,
        &[Stderr("econnrefused"), Stderr("connection refused")],
        "the server cannot reach something it needs; see its message above",
    ),
    row(
        "server-unresolved",
        On::Process,
        &[
            Stderr("enotfound"),
            Stderr("eai_again"),
            Stderr("name or service not known"),
            Stderr("temporary failure in name resolution"),
        ],
        "a name could not be resolved; check the network and the proxy settings",
    ),
    row(
        "server-not-allowed",
        On::Process,
        &[Stderr("permission denied"), Stderr("eacces")],
        "the server lacks a permission that it needs; see its message above",
    ),
    // Exit status.
    row(
        "killed",
        On::Process,
        &[Signal(&[9])],
        "the server was killed, perhaps by the kernel because memory was low",
    ),
    row(
        "crashed",
        On::Process,
        &[Signal(&[4, 5, 6, 7, 8, 11])],
        "the server crashed; this is a bug in the server, or its build does not fit this machine",
    ),
    row("ended-by-signal", On::Process, &[Signal(&[])], "something on this machine stopped the server"),
    row(
        "listens-elsewhere",
        On::Process,
        &[
            StderrAndTimeout("listening on port"),
            StderrAndTimeout("listening on http"),
            StderrAndTimeout("server listening"),
            StderrAndTimeout("running on http://"),
        ],
        "the server listens on a port instead of reading its stdin; look for an option such as `--stdio`, or run it by itself and use `transport: http` with its address",
    ),
    row(
        "noise",
        On::Process,
        &[Noise],
        "the server writes text other than MCP messages to stdout; check that it is an MCP server and logs to stderr",
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
        &[
            StatusAtPath(400, "/sse"),
            StatusAtPath(404, "/sse"),
            StatusAtPath(405, "/sse"),
            Status(405),
            Status(406),
        ],
        "the server may support HTTP+SSE only; try `transport: sse`, or the path /mcp",
    ),
    row(
        "http-only",
        On::Sse,
        &[
            Status(400),
            Status(405),
            Status(406),
            Cause("offers no event stream"),
            Cause("names no place to send"),
        ],
        "this address does not support HTTP+SSE; try `transport: http`, or the path /sse",
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
        "the server does not understand the request; check the address, and whether it needs https",
    ),
    row("sign-in", On::Remote, &[Cause("could not sign in")], "check `auth` of this entry"),
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
        "there is nothing at this path; MCP servers often use /mcp, or /sse with `transport: sse`",
    ),
    row("429", On::Remote, &[Status(429)], "the server is overloaded or limits your rate; try again later"),
    row("500", On::Remote, &[Status(500)], "the server failed; see its log"),
    row("502", On::Remote, &[Status(502), Status(504)], "a proxy in front of the server cannot reach it"),
    row("503", On::Remote, &[Status(503)], "the server is not ready; try again later"),
    row(
        "elsewhere",
        On::Remote,
        &[Cause("it redirects")],
        "the server redirects; put the new address into `url`",
    ),
    row(
        "not-mcp",
        On::Remote,
        &[Cause("something that is not a json-rpc message"), Cause("contains no answer")],
        "the response is not MCP; check the path of `url`",
    ),
    // Connection errors.
    row(
        "out-of-reach",
        On::Remote,
        &[Cause("egress policy forbids it")],
        "if this is intended, an operator can add the host of `{name}` to [grants] private_hosts in wharf.toml",
    ),
    row(
        "connection-refused",
        On::Remote,
        &[Cause("connection refused")],
        "nothing listens there; check that the server runs, and the port",
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
        "the server's certificate is not trusted; check the address, or set SSL_CERT_FILE to your own certificate authority",
    ),
    row(
        "no-tls-there",
        On::Remote,
        &[Cause("corrupt message"), Cause("invalidcontenttype")],
        "the server does not use TLS on this port; try http:// (or ws://)",
    ),
    row(
        "tls-there",
        On::Remote,
        &[Cause("invalid http version"), Cause("httparse error")],
        "the response is not HTTP; try https:// (or wss://)",
    ),
    // Fallbacks, based only on the kind of failure.
    row(
        "version",
        On::All,
        &[Cause("requires the unsupported protocol version")],
        "wharf does not support the server's version of MCP; update the server, or wharf",
    ),
    row(
        "too-long",
        On::All,
        &[Cause("longer than the limit")],
        "a message of the server exceeds the size limit; ask for less data at once",
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
        &[TimedOut(STARTING)],
        "raise `connect_timeout`, or run the command by hand to see what it waits for",
    ),
    row(
        "slow-far-start",
        On::Remote,
        &[TimedOut(STARTING)],
        "check that this is the address of an MCP server; raise `connect_timeout` if it is only slow",
    ),
    row(
        "slow-request",
        On::All,
        &[TimedOut(WORKING)],
        "raise `request_timeout`, or `--timeout` of a call, if the work really takes that long",
    ),
    row(
        "download-failed",
        On::Process,
        &[Cause("could not download")],
        "the download failed; see the message above",
    ),
    row(
        "ended-talking",
        On::Process,
        &[DisconnectedAfterStderr(STARTING)],
        "the server exited during startup; see its message above",
    ),
    row(
        "ended-silently",
        On::Process,
        &[Disconnected(STARTING)],
        "the server exited without a message; run the command by hand to see why",
    ),
    row(
        "hung-up",
        On::Remote,
        &[Disconnected(STARTING)],
        "the server closed the connection; check that this is the address of an MCP server",
    ),
    row(
        "gone-at-work",
        On::All,
        &[Disconnected(WORKING)],
        "the server disconnected during the call; the call may or may not have had an effect",
    ),
    row(
        "breach",
        On::All,
        &[ProtocolViolation],
        "the server violated the MCP protocol; try another version of it, or report it to its author",
    ),
    row(
        "refused-by-the-server",
        On::All,
        &[ErrorResponse],
        "the server refused the request; see its message",
    ),
];

const fn row(name: &'static str, on: On, clues: &'static [super::Clue], hint: &'static str) -> KnownCause {
    KnownCause { name, hint, on, clues }
}
