//! Lowers the transport of an entry: selects the transport, checks which fields it uses and builds the [`Endpoint`].

use super::{
    auth,
    tool::{CLASS, EnvFile},
};
use crate::{
    child_env::{self, EnvSettings},
    diagnostic::Diagnostics,
    encoding,
    env::{Env, Origin},
    launch::{self, Arguments, LaunchContext},
    masked_string::MaskedString,
    place::{Place, Placed, PlacedString},
    plan::{Arg, ArgOrigin, Builtin, Endpoint, Interpreter, Launch, Launcher, Program, RemoteEndpoint},
    raw::Field,
    read::{Reader, StringPairs},
    server_config::ServerConfig,
    transport::Transport,
    url::{self, SchemeRule},
};
use std::{collections::HashSet, time::Duration};

/// Default timeout for the download that precedes a server's first start.
const DEFAULT_INSTALL_TIMEOUT: Duration = Duration::from_secs(600);

/// Fields of an entry that belong to specific transports.
pub(super) struct TransportFields {
    pub(super) command: Option<Field>,
    pub(super) args: Option<Field>,
    pub(super) env: Option<Field>,
    pub(super) inherit_env: Option<Field>,
    pub(super) encoding: Option<Field>,
    pub(super) url: Option<Field>,
    pub(super) headers: Option<Field>,
    pub(super) auth: Option<Field>,
    pub(super) timeout: Option<Field>,
    pub(super) sse_read_timeout: Option<Field>,
    pub(super) terminate_on_close: Option<Field>,
    pub(super) install_timeout: Option<Field>,
}

/// The transport-independent parts of an entry.
pub(super) struct EntryContext<'a> {
    /// Place to report when a required field is missing.
    pub(super) here: Place,
    pub(super) server: Option<&'a PlacedString>,
    pub(super) config: Option<&'a ServerConfig>,
    pub(super) env_file: Option<&'a EnvFile>,
    pub(super) env: &'a Env,
}

/// Transport of an entry, with the place where the entry names it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
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

impl TransportKind {
    /// Determines the transport. `None` means that a diagnostic was recorded.
    pub(super) fn of(
        transport: Option<Field>,
        server: Option<&PlacedString>,
        command: Option<&Field>,
        reader: &mut Reader<'_>,
    ) -> Option<TransportKind> {
        if let Some(server) = server.filter(|it| it.value.expose().starts_with("builtin:")) {
            return builtin(server, transport, command, reader);
        }
        let Some(transport) = transport else { return Some(TransportKind::Stdio { written: None }) };
        let transport = reader.text("transport", Some(transport))?;
        let written = transport.at;
        match Transport::named(transport.value.expose()) {
            Some(Transport::Stdio) => Some(TransportKind::Stdio { written: Some(written) }),
            Some(Transport::Sse) => Some(TransportKind::Sse { written }),
            Some(Transport::WebSocket) => Some(TransportKind::WebSocket { written }),
            Some(Transport::Http) => Some(TransportKind::Http { written }),
            Some(Transport::Builtin) | None => {
                reader.diagnostics.unknown_transport(written, &transport.value);
                None
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            TransportKind::Builtin(_) => "the built-in server",
            TransportKind::Stdio { .. } => "stdio transport",
            TransportKind::Sse { .. } => "sse transport",
            TransportKind::WebSocket { .. } => "websocket transport",
            TransportKind::Http { .. } => "http transport",
        }
    }

    /// Returns the transport-specific keys that this transport uses.
    fn used_keys(self) -> &'static [&'static str] {
        let transport = match self {
            TransportKind::Builtin(_) => Transport::Builtin,
            TransportKind::Stdio { .. } => Transport::Stdio,
            TransportKind::Sse { .. } => Transport::Sse,
            TransportKind::WebSocket { .. } => Transport::WebSocket,
            TransportKind::Http { .. } => Transport::Http,
        };
        transport.used_keys()
    }
}

/// V-16: checks a `builtin:` server, which takes neither `transport` nor `command`.
fn builtin(
    server: &PlacedString,
    transport: Option<Field>,
    command: Option<&Field>,
    reader: &mut Reader<'_>,
) -> Option<TransportKind> {
    let builtin = Builtin::parse(server.value.expose());
    if builtin.is_none() {
        reader.diagnostics.unknown_builtin(server.at, &server.value);
    }
    for (key, field) in [("transport", transport.as_ref()), ("command", command)] {
        if let Some(field) = field {
            reader.diagnostics.builtin_takes_no(field.key_at, key);
        }
    }
    builtin.map(TransportKind::Builtin)
}

/// Lowers the fields of one transport. `None` means that a diagnostic was recorded.
pub(super) fn endpoint(
    kind: TransportKind,
    fields: TransportFields,
    entry: &EntryContext<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Endpoint> {
    let foreign = foreign_fields(kind, &fields, diagnostics);
    match kind {
        TransportKind::Builtin(builtin) => Some(Endpoint::Builtin(builtin)),
        TransportKind::Stdio { written } => {
            // `foreign_fields` has already reported a URL without a transport. Do not report a second error for it.
            let is_meant_as_remote =
                written.is_none() && fields.command.is_none() && foreign.contains(&"url");
            let Env { origin, grants, .. } = entry.env;
            if !is_meant_as_remote && origin.is_registered() && !grants.processes_over_rest {
                diagnostics.stdio_registration_disabled(entry.here);
                return None;
            }
            (!is_meant_as_remote)
                .then(|| stdio(written, fields, entry, diagnostics))
                .flatten()
                .map(Endpoint::Stdio)
        }
        TransportKind::Sse { written } => {
            remote("sse", written, fields, entry, diagnostics).map(|(it, _)| Endpoint::Sse(it))
        }
        TransportKind::WebSocket { written } => {
            let url = required_url("websocket", written, fields.url, diagnostics)?;
            let parsed = url::check(&url, SchemeRule::WebSocket, entry.env, diagnostics)?;
            Some(Endpoint::WebSocket(parsed, url.value))
        }
        TransportKind::Http { written } => remote("http", written, fields, entry, diagnostics)
            .map(|(remote, terminate_on_close)| Endpoint::Http { remote, terminate_on_close }),
    }
}

/// V-12: reports fields that belong to another transport and returns their keys.
fn foreign_fields(
    kind: TransportKind,
    fields: &TransportFields,
    diagnostics: &mut Diagnostics,
) -> Vec<&'static str> {
    let TransportFields {
        command,
        args,
        env,
        inherit_env,
        encoding,
        url,
        headers,
        auth,
        timeout,
        sse_read_timeout,
        terminate_on_close,
        install_timeout,
    } = fields;
    let fields = [
        ("command", command),
        ("args", args),
        ("env", env),
        ("inherit_env", inherit_env),
        ("encoding", encoding),
        ("url", url),
        ("headers", headers),
        ("auth", auth),
        ("timeout", timeout),
        ("sse_read_timeout", sse_read_timeout),
        ("terminate_on_close", terminate_on_close),
        ("install_timeout", install_timeout),
    ];
    // With a URL and no transport, the only mistake is the missing transport. Report it once, at `url`.
    let forgot_transport =
        matches!(kind, TransportKind::Stdio { written: None }) && command.is_none() && url.is_some();
    let foreign = fields.into_iter().filter(|(key, _)| !kind.used_keys().contains(key));
    foreign
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
    fields: TransportFields,
    entry: &EntryContext<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<(RemoteEndpoint, bool)> {
    let mut reader = Reader { class: CLASS, diagnostics };
    let headers = reader.text_map("headers", fields.headers).unwrap_or_default();
    let timeout = reader.seconds("timeout", fields.timeout);
    let sse_read_timeout = reader.seconds("sse_read_timeout", fields.sse_read_timeout);
    let terminate_on_close = reader.flag("terminate_on_close", fields.terminate_on_close).unwrap_or(true);
    let headers = self::headers(headers, diagnostics);
    let auth_at = fields.auth.as_ref().map(|it| it.key_at);
    if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        auth_at.into_iter().for_each(|at| diagnostics.auth_and_header(at));
    }
    let auth = fields.auth.and_then(|it| auth::auth(it, entry.env, diagnostics)).map(Box::new);
    let shown_url = required_url(transport, written, fields.url, diagnostics)?;
    let url = url::check(&shown_url, SchemeRule::Http, entry.env, diagnostics)?;
    Some((
        RemoteEndpoint { url, shown_url: shown_url.value, headers, auth, timeout, sse_read_timeout },
        terminate_on_close,
    ))
}

/// V-06: a remote transport requires `url`.
fn required_url(
    transport: &str,
    at: Place,
    field: Option<Field>,
    diagnostics: &mut Diagnostics,
) -> Option<PlacedString> {
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
fn headers(headers: StringPairs, diagnostics: &mut Diagnostics) -> Vec<(String, MaskedString)> {
    const RESERVED: &str = "\
        host content-length content-type accept connection transfer-encoding upgrade te trailer \
        mcp-session-id mcp-protocol-version mcp-method mcp-name last-event-id";
    let is_reserved = |name: &str| RESERVED.split(' ').any(|it| it.eq_ignore_ascii_case(name));
    let (reserved, headers): (StringPairs, StringPairs) =
        headers.into_iter().partition(|(name, _)| is_reserved(&name.value));
    for (name, _) in reserved {
        diagnostics.reserved_header(name.at, &name.value);
    }
    check_header_syntax(headers, diagnostics)
}

/// Checks headers: names are valid tokens and unique, and values fit on one line.
pub(super) fn check_header_syntax(
    headers: StringPairs,
    diagnostics: &mut Diagnostics,
) -> Vec<(String, MaskedString)> {
    let is_token = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    let mut checked: Vec<(String, MaskedString)> = Vec::new();
    let mut seen = HashSet::new();
    for (name, value) in headers {
        let lower = name.value.to_ascii_lowercase();
        match () {
            () if !is_token(&name.value) => diagnostics.invalid_header_name(name.at, &name.value),
            () if value.value.expose().contains(|c: char| c.is_control() && c != '\t') => {
                diagnostics.invalid_header_value(name.at, &name.value);
            }
            () if !seen.insert(lower) => {
                diagnostics.duplicate_header(name.at, &name.value);
            }
            () => checked.push((name.value, value.value)),
        }
    }
    checked
}

fn stdio(
    written: Option<Place>,
    fields: TransportFields,
    entry: &EntryContext<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Launch> {
    let mut reader = Reader { class: CLASS, diagnostics };
    let variables = reader.text_map("env", fields.env).unwrap_or_default();
    let inherit = reader.texts("inherit_env", fields.inherit_env).map_or_else(Vec::new, |it| it.value);
    let encoding = encoding_of(fields.encoding, &mut reader);
    let install_timeout =
        reader.seconds("install_timeout", fields.install_timeout).unwrap_or(DEFAULT_INSTALL_TIMEOUT);
    let has_args = fields.args.is_some();
    let args = reader.texts("args", fields.args);
    let program = program(written, fields.command, entry, &mut reader);
    let container_env = container_env(&variables, &inherit, entry);
    let assumed = program.clone().unwrap_or(Program::Launcher(Launcher::Npx));
    let env_file = entry.env_file.map(|it| (it.name.as_str(), it.assignments.as_slice(), it.at));
    let env_settings = EnvSettings { entry: variables, env_file, inherit, config: entry.config };
    let env = child_env::build_child_env(&assumed, env_settings, entry.env, diagnostics);
    let program = program?;
    if has_args && args.is_none() {
        return None;
    }
    let mut context = LaunchContext { env: entry.env, container_env, diagnostics };
    let Arguments { args, download } = arguments(&program, args, entry, &mut context)?;
    let (withheld, encoding) = (child_env::withheld(&env, entry.env), encoding?);
    Some(Launch {
        program,
        args,
        env,
        withheld,
        encoding,
        port: None,
        download,
        install_timeout,
        constraints: None,
    })
}

/// V-04, V-05, V-15: determines the program to start and checks that it is allowed.
fn program(
    written: Option<Place>,
    command: Option<Field>,
    entry: &EntryContext<'_>,
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
    args: Option<Placed<Vec<PlacedString>>>,
    entry: &EntryContext<'_>,
    context: &mut LaunchContext<'_>,
) -> Option<Arguments> {
    let launcher = match program {
        Program::Launcher(launcher) => *launcher,
        Program::Granted(_) => {
            let args = args.map_or_else(Vec::new, |it| it.value);
            let args = args.into_iter().map(|it| launch::server_argument(it.value, &entry.env.folder));
            return Some(args.collect::<Vec<_>>().into());
        }
        Program::Interpreter(_) => {
            return script(args.map_or_else(Vec::new, |it| it.value), entry, context).map(Arguments::from);
        }
    };
    match args {
        Some(args) if args.value.is_empty() => {
            context.diagnostics.empty_args(args.at, launcher);
            None
        }
        Some(args) => launch::arguments(launcher, args.value, context),
        None => {
            let derived_arguments = launch::derived_arguments(launcher, entry.server?);
            let Arguments { args, download } = launch::arguments(launcher, derived_arguments, context)?;
            let from_server = |it: Arg| match it.origin {
                ArgOrigin::Written => Arg { origin: ArgOrigin::FromServer, ..it },
                _ => it,
            };
            Some(Arguments { args: args.into_iter().map(from_server).collect(), download })
        }
    }
}

/// Resolves a script in the plugin's own folder, followed by its arguments.
fn script(
    args: Vec<PlacedString>,
    entry: &EntryContext<'_>,
    context: &mut LaunchContext<'_>,
) -> Option<Vec<Arg>> {
    let mut args = args.into_iter();
    let Some(script) = args.next() else {
        context.diagnostics.invalid_script(entry.here, "is missing");
        return None;
    };
    let found = match script.value.expose() {
        it if it.starts_with('-') || it.is_empty() => Err("must be a file, not a flag".to_owned()),
        it => entry.env.files.locate_trusted(it).map_err(|error| error.plugin_message()),
    };
    match found {
        Ok(path) => {
            let value = script.value.map(|_| path.to_string_lossy().into_owned());
            let script = Arg { value, origin: ArgOrigin::Resolved(script.value) };
            let rest = args.map(|it| launch::server_argument(it.value, &entry.env.folder));
            Some([script].into_iter().chain(rest).collect())
        }
        Err(why) => {
            context.diagnostics.invalid_script(script.at, &why);
            None
        }
    }
}

/// Names of the variables that the entry sets. Docker must be told to pass them into the container.
fn container_env(
    variables: &StringPairs,
    inherit: &[PlacedString],
    entry: &EntryContext<'_>,
) -> Vec<MaskedString> {
    let mut names: Vec<MaskedString> =
        variables.iter().map(|(name, _)| MaskedString::plain(&name.value)).collect();
    names.extend(inherit.iter().map(|it| it.value.clone()));
    names
        .extend(entry.env_file.iter().flat_map(|it| &it.assignments).map(|it| MaskedString::plain(&it.name)));
    names.extend(entry.config.map(|_| MaskedString::plain("MCP_CONFIG")));
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
