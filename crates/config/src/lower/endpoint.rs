//! Lowers the transport of an entry: selects the transport, checks which fields it uses and builds the [`Endpoint`].

use super::tool::{CLASS, EnvFile};
use crate::{
    diagnostic::Diagnostics,
    encoding,
    env::{Env, Origin},
    environment::{self, Wishes},
    launch::{self, Arguments, Launching},
    node::{Node, Value},
    place::{Place, Placed},
    plan::{Arg, ArgOrigin, Builtin, Endpoint, Interpreter, Launch, Launcher, Program, Remote, ServerConfig},
    raw::Field,
    read::{Reader, Texts},
    text::Text,
    url::{self, Wants},
};
use std::{collections::HashSet, time::Duration};

/// Default timeout for the download that precedes a server's first start.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(600);

/// Fields of an entry that belong to specific transports.
pub(super) struct Wire {
    pub(super) command: Option<Field>,
    pub(super) args: Option<Field>,
    pub(super) env: Option<Field>,
    pub(super) inherit_env: Option<Field>,
    pub(super) encoding: Option<Field>,
    pub(super) url: Option<Field>,
    pub(super) headers: Option<Field>,
    pub(super) timeout: Option<Field>,
    pub(super) sse_read_timeout: Option<Field>,
    pub(super) terminate_on_close: Option<Field>,
    pub(super) install_timeout: Option<Field>,
}

/// The transport-independent parts of an entry.
pub(super) struct Entry<'a> {
    /// Place to report when a required field is missing.
    pub(super) here: Place,
    pub(super) server: Option<&'a Placed<Text>>,
    pub(super) config: Option<&'a ServerConfig>,
    pub(super) env_file: Option<&'a EnvFile>,
    pub(super) env: &'a Env,
}

/// Transport of an entry, with the place where the entry names it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Builtin(Builtin),
    /// `written` is `None` if the entry names no transport and stdio is the default.
    Stdio {
        written: Option<Place>,
    },
    Sse {
        written: Place,
    },
    WebSocket {
        written: Place,
    },
    Http {
        written: Place,
    },
}

/// Keys that belong to specific transports.
const WIRE_KEYS: [&str; 11] = [
    "command",
    "args",
    "env",
    "inherit_env",
    "encoding",
    "url",
    "headers",
    "timeout",
    "sse_read_timeout",
    "terminate_on_close",
    "install_timeout",
];

/// Returns the keys that this entry's transport does not use. Returns none if the transport is not clear yet.
pub(crate) fn unused_keys(node: &Node) -> Vec<&'static str> {
    let text = |key: &str| match node.child(key).map(|it| &it.value) {
        Some(Value::Str(it)) => it.text.expose(),
        _ => "",
    };
    let at = node.at;
    let kind = match (text("transport"), text("command"), text("server")) {
        ("stdio", ..) => Kind::Stdio { written: Some(at) },
        ("sse", ..) => Kind::Sse { written: at },
        ("websocket", ..) => Kind::WebSocket { written: at },
        ("http" | "streamable_http" | "streamable-http", ..) => Kind::Http { written: at },
        ("", "", server) if !launch::spec::is_scoped_npm(server) => return Vec::new(),
        ("", ..) => Kind::Stdio { written: None },
        _ => return Vec::new(),
    };
    WIRE_KEYS.into_iter().filter(|it| !kind.uses().contains(it)).collect()
}

/// Names of the transports.
pub(crate) const TRANSPORTS: [&str; 4] = ["stdio", "sse", "websocket", "http"];

impl Kind {
    /// Determines the transport. `None` means that a diagnostic was recorded.
    pub(super) fn of(
        transport: Option<Field>,
        server: Option<&Placed<Text>>,
        command: Option<&Field>,
        reader: &mut Reader<'_>,
    ) -> Option<Kind> {
        if let Some(server) = server.filter(|it| it.value.expose().starts_with("builtin:")) {
            return builtin(server, transport, command, reader);
        }
        let Some(transport) = transport else { return Some(Kind::Stdio { written: None }) };
        let transport = reader.text("transport", Some(transport))?;
        let written = transport.at;
        match transport.value.expose() {
            "stdio" => Some(Kind::Stdio { written: Some(written) }),
            "sse" => Some(Kind::Sse { written }),
            "websocket" => Some(Kind::WebSocket { written }),
            "http" | "streamable_http" | "streamable-http" => Some(Kind::Http { written }),
            _ => {
                reader.diagnostics.unknown_transport(written, &transport.value);
                None
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Builtin(_) => "the built-in server",
            Kind::Stdio { .. } => "stdio transport",
            Kind::Sse { .. } => "sse transport",
            Kind::WebSocket { .. } => "websocket transport",
            Kind::Http { .. } => "http transport",
        }
    }

    /// Returns the transport-specific keys that this transport uses.
    fn uses(self) -> &'static [&'static str] {
        match self {
            Kind::Builtin(_) => &["command"],
            Kind::Stdio { .. } => &["command", "args", "env", "inherit_env", "encoding", "install_timeout"],
            Kind::Sse { .. } => &["url", "headers", "timeout", "sse_read_timeout"],
            Kind::WebSocket { .. } => &["url"],
            Kind::Http { .. } => &["url", "headers", "timeout", "sse_read_timeout", "terminate_on_close"],
        }
    }
}

/// V-16: checks a `builtin:` server, which takes neither `transport` nor `command`.
fn builtin(
    server: &Placed<Text>,
    transport: Option<Field>,
    command: Option<&Field>,
    reader: &mut Reader<'_>,
) -> Option<Kind> {
    let builtin = Builtin::parse(server.value.expose());
    if builtin.is_none() {
        reader.diagnostics.unknown_builtin(server.at, &server.value);
    }
    for (key, field) in [("transport", transport.as_ref()), ("command", command)] {
        if let Some(field) = field {
            reader.diagnostics.builtin_takes_no(field.key_at, key);
        }
    }
    builtin.map(Kind::Builtin)
}

/// Lowers the fields of one transport. `None` means that a diagnostic was recorded.
pub(super) fn endpoint(
    kind: Kind,
    wire: Wire,
    entry: &Entry<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Endpoint> {
    let strayed = foreign_fields(kind, &wire, diagnostics);
    match kind {
        Kind::Builtin(builtin) => Some(Endpoint::Builtin(builtin)),
        Kind::Stdio { written } => {
            // `foreign_fields` has already reported a URL without a transport. Do not report a second error for it.
            let meant_remote = written.is_none() && wire.command.is_none() && strayed.contains(&"url");
            let Env { origin, grants, .. } = entry.env;
            if !meant_remote && origin.is_registered() && !grants.processes_over_rest {
                diagnostics.stdio_registration_disabled(entry.here);
                return None;
            }
            (!meant_remote).then(|| stdio(written, wire, entry, diagnostics)).flatten().map(Endpoint::Stdio)
        }
        Kind::Sse { written } => {
            remote("sse", written, wire, entry, diagnostics).map(|(it, _)| Endpoint::Sse(it))
        }
        Kind::WebSocket { written } => {
            let url = required_url("websocket", written, wire.url, diagnostics)?;
            let parsed = url::check(&url, Wants::WebSocket, entry.env, diagnostics)?;
            Some(Endpoint::WebSocket(parsed, url.value))
        }
        Kind::Http { written } => remote("http", written, wire, entry, diagnostics)
            .map(|(remote, terminate_on_close)| Endpoint::Http { remote, terminate_on_close }),
    }
}

/// V-12: reports fields that belong to another transport and returns their keys.
fn foreign_fields(kind: Kind, wire: &Wire, diagnostics: &mut Diagnostics) -> Vec<&'static str> {
    let Wire {
        command,
        args,
        env,
        inherit_env,
        encoding,
        url,
        headers,
        timeout,
        sse_read_timeout,
        terminate_on_close,
        install_timeout,
    } = wire;
    let fields = [
        ("command", command),
        ("args", args),
        ("env", env),
        ("inherit_env", inherit_env),
        ("encoding", encoding),
        ("url", url),
        ("headers", headers),
        ("timeout", timeout),
        ("sse_read_timeout", sse_read_timeout),
        ("terminate_on_close", terminate_on_close),
        ("install_timeout", install_timeout),
    ];
    // With a URL and no transport, the only mistake is the missing transport. Report it once, at `url`.
    let forgot_transport =
        matches!(kind, Kind::Stdio { written: None }) && command.is_none() && url.is_some();
    let strayed = fields.into_iter().filter(|(key, _)| !kind.uses().contains(key));
    strayed
        .filter(|(key, _)| !forgot_transport || *key == "url")
        .filter_map(|(key, field)| {
            diagnostics.foreign_field(field.as_ref()?.key_at, key, kind.name());
            Some(key)
        })
        .collect()
}

fn remote(
    transport: &str,
    written: Place,
    wire: Wire,
    entry: &Entry<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<(Remote, bool)> {
    let mut reader = Reader { class: CLASS, diagnostics };
    let headers = reader.text_map("headers", wire.headers).unwrap_or_default();
    let timeout = reader.seconds("timeout", wire.timeout);
    let sse_read_timeout = reader.seconds("sse_read_timeout", wire.sse_read_timeout);
    let terminate_on_close = reader.flag("terminate_on_close", wire.terminate_on_close).unwrap_or(true);
    let headers = self::headers(headers, diagnostics);
    let shown_url = required_url(transport, written, wire.url, diagnostics)?;
    let url = url::check(&shown_url, Wants::Http, entry.env, diagnostics)?;
    Some((Remote { url, shown_url: shown_url.value, headers, timeout, sse_read_timeout }, terminate_on_close))
}

/// V-06: a remote transport requires `url`.
fn required_url(
    transport: &str,
    at: Place,
    field: Option<Field>,
    diagnostics: &mut Diagnostics,
) -> Option<Placed<Text>> {
    match field {
        None => {
            diagnostics.missing_url(at, transport);
            None
        }
        field => Reader { class: CLASS, diagnostics }.text("url", field),
    }
}

/// Checks headers: names are valid tokens and unique, values fit on one line, and none is a header that wharf sets
/// itself.
fn headers(headers: Texts, diagnostics: &mut Diagnostics) -> Vec<(String, Text)> {
    const OURS: [&str; 14] = [
        "host",
        "content-length",
        "content-type",
        "accept",
        "connection",
        "transfer-encoding",
        "upgrade",
        "te",
        "trailer",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "last-event-id",
    ];
    let is_token = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    let mut checked: Vec<(String, Text)> = Vec::new();
    let mut seen = HashSet::new();
    for (name, value) in headers {
        let lower = name.value.to_ascii_lowercase();
        match () {
            () if !is_token(&name.value) => diagnostics.header_name(name.at, &name.value),
            () if OURS.contains(&lower.as_str()) => diagnostics.header_ours(name.at, &name.value),
            () if value.value.expose().contains(|c: char| c.is_control() && c != '\t') => {
                diagnostics.header_value(name.at, &name.value);
            }
            () if !seen.insert(lower) => {
                diagnostics.header_twice(name.at, &name.value);
            }
            () => checked.push((name.value, value.value)),
        }
    }
    checked
}

fn stdio(
    written: Option<Place>,
    wire: Wire,
    entry: &Entry<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Launch> {
    let mut reader = Reader { class: CLASS, diagnostics };
    let variables = reader.text_map("env", wire.env).unwrap_or_default();
    let inherit = reader.texts("inherit_env", wire.inherit_env).map_or_else(Vec::new, |it| it.value);
    let encoding = encoding_of(wire.encoding, &mut reader);
    let install_timeout = reader.seconds("install_timeout", wire.install_timeout).unwrap_or(INSTALL_TIMEOUT);
    let has_args = wire.args.is_some();
    let args = reader.texts("args", wire.args);
    let program = program(written, wire.command, entry, &mut reader);
    let container_env = container_env(&variables, &inherit, entry);
    let assumed = program.clone().unwrap_or(Program::Launcher(Launcher::Npx));
    let env_file = entry.env_file.map(|it| (it.name.as_str(), it.assignments.as_slice(), it.at));
    let wishes = Wishes { entry: variables, env_file, inherit, config: entry.config };
    let env = environment::assemble(&assumed, wishes, entry.env, diagnostics);
    let program = program?;
    if has_args && args.is_none() {
        return None;
    }
    let mut launching = Launching { env: entry.env, container_env, diagnostics };
    let Arguments { args, download } = arguments(&program, args, entry, &mut launching)?;
    let (withheld, encoding) = (environment::withheld(&env, entry.env), encoding?);
    Some(Launch { program, args, env, withheld, encoding, serves: None, download, install_timeout })
}

/// V-04, V-05, V-15: determines the program to start and checks that it is allowed.
fn program(
    written: Option<Place>,
    command: Option<Field>,
    entry: &Entry<'_>,
    reader: &mut Reader<'_>,
) -> Option<Program> {
    if command.is_none() {
        let server = entry.server?;
        if written.is_none() && launch::spec::is_scoped_npm(server.value.expose()) {
            reader.diagnostics.legacy_entry(server.at, &server.value);
            return Some(Program::Launcher(Launcher::Npx));
        }
        reader.diagnostics.missing_command(written.unwrap_or(entry.here), server.value.shown());
        return None;
    }
    let command = reader.text("command", command)?;
    let name = command.value.expose();
    let granted = entry.env.grants.matching_commands(name);
    let in_plugin = entry.env.origin == Origin::Plugin;
    let interpreter = Interpreter::parse(name).filter(|_| in_plugin).map(Program::Interpreter);
    let known = Launcher::parse(name).map(Program::Launcher).or(interpreter);
    match (known, &granted[..]) {
        (Some(program), _) => Some(program),
        (None, [path]) => Some(Program::Granted(path.to_path_buf())),
        (None, []) => {
            reader.diagnostics.invalid_command(command.at, &command.value, entry.env);
            None
        }
        (None, several) => {
            reader.diagnostics.ambiguous_command(command.at, &command.value, several);
            None
        }
    }
}

/// Checks and completes the arguments by the rules of the program.
fn arguments(
    program: &Program,
    args: Option<Placed<Vec<Placed<Text>>>>,
    entry: &Entry<'_>,
    launching: &mut Launching<'_>,
) -> Option<Arguments> {
    let launcher = match program {
        Program::Launcher(launcher) => *launcher,
        Program::Granted(_) => {
            let args = args.map_or_else(Vec::new, |it| it.value);
            let args = args.into_iter().map(|it| launch::free(it.value, &entry.env.folder));
            return Some(args.collect::<Vec<_>>().into());
        }
        Program::Interpreter(_) => {
            return script(args.map_or_else(Vec::new, |it| it.value), entry, launching).map(Arguments::from);
        }
    };
    match args {
        Some(args) if args.value.is_empty() => {
            launching.diagnostics.empty_args(args.at, launcher);
            None
        }
        Some(args) => launch::arguments(launcher, args.value, launching),
        None => {
            let derived = launch::derived(launcher, entry.server?);
            let Arguments { args, download } = launch::arguments(launcher, derived, launching)?;
            let from_server = |it: Arg| match it.origin {
                ArgOrigin::Written => Arg { origin: ArgOrigin::FromServer, ..it },
                _ => it,
            };
            Some(Arguments { args: args.into_iter().map(from_server).collect(), download })
        }
    }
}

/// Resolves a script in the plugin's own folder, followed by its arguments.
fn script(args: Vec<Placed<Text>>, entry: &Entry<'_>, launching: &mut Launching<'_>) -> Option<Vec<Arg>> {
    let mut args = args.into_iter();
    let Some(script) = args.next() else {
        launching.diagnostics.not_a_script(entry.here, "is not named");
        return None;
    };
    let found = match script.value.expose() {
        it if it.starts_with('-') || it.is_empty() => Err("is a file, not a flag".to_owned()),
        it => entry.env.files.trusted(it).map_err(|trouble| trouble.of_plugin()),
    };
    match found {
        Ok(path) => {
            let value = script.value.map(|_| path.to_string_lossy().into_owned());
            let script = Arg { value, origin: ArgOrigin::Resolved(script.value) };
            let rest = args.map(|it| launch::free(it.value, &entry.env.folder));
            Some([script].into_iter().chain(rest).collect())
        }
        Err(why) => {
            launching.diagnostics.not_a_script(script.at, &why);
            None
        }
    }
}

/// Names of the variables that the entry sets. Docker must be told to pass them into the container.
fn container_env(variables: &Texts, inherit: &[Placed<Text>], entry: &Entry<'_>) -> Vec<Text> {
    let mut names: Vec<Text> = variables.iter().map(|(name, _)| Text::plain(&name.value)).collect();
    names.extend(inherit.iter().map(|it| it.value.clone()));
    names.extend(entry.env_file.iter().flat_map(|it| &it.assignments).map(|it| Text::plain(&it.name)));
    names.extend(entry.config.map(|_| Text::plain("MCP_CONFIG")));
    names.sort_by(|a, b| a.expose().cmp(b.expose()));
    names.dedup_by(|a, b| a.expose() == b.expose());
    names
}

fn encoding_of(field: Option<Field>, reader: &mut Reader<'_>) -> Option<&'static encoding_rs::Encoding> {
    let Some(field) = field else { return Some(encoding_rs::UTF_8) };
    let label = reader.text("encoding", Some(field))?;
    let found = encoding::find(label.value.expose());
    if found.is_none() {
        reader.diagnostics.unknown_encoding(label.at, &label.value);
    }
    found
}
