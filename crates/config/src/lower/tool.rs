//! Lowers one entry of `tools:` to a [`Source`].

use super::{
    endpoint::{self, TransportFields, TransportKind},
    lock::EntryOptions,
};
use crate::{
    diagnostic::{Diagnostics, Severity},
    env::Env,
    env_file::{self, Assignment},
    files::FileError,
    glob::Glob,
    launch,
    lock::LockSettings,
    masked_string::MaskedString,
    node::{Node, Value},
    place::{Place, PlacedString},
    plan::{DeferLoading, EraChoice, Lifecycle, Source, Timeouts},
    raw::{Field, Fields, RawTool},
    read::{MAX_TIMEOUT_SECONDS, Reader},
    result_settings::ResultSettings,
    server_config::ServerConfig,
    url,
    variables::{Scope, Substitution},
};
use std::time::Duration;

/// Error class in messages about an entry, unless the contract fixes another one.
pub(super) const CLASS: &str = "MCPConfigError";

/// Key of `config` that also defines the MCP roots of a server.
/// Prefix of the tools that the agent itself offers to a model.
const RESERVED_PREFIX: &str = "wharf";
const ROOTS_KEY: &str = "allowed_directories";
const MAX_ENV_FILE_BYTES: u64 = 1024 * 1024;
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A parsed env file.
pub(super) struct EnvFile {
    pub(super) name: String,
    pub(super) at: Place,
    pub(super) assignments: Vec<Assignment>,
}

/// Lowers an entry. `None` means that at least one diagnostic was recorded.
pub(crate) fn tool(
    node: Node,
    substitution: &mut Substitution<'_>,
    env: &Env,
    entries: &mut Vec<EntryOptions>,
    diagnostics: &mut Diagnostics,
) -> Option<Source> {
    let before = diagnostics.count(Severity::Error);
    let at = node.at;
    let mut raw = RawTool::read(node, diagnostics)?;
    let written = raw.written_keys();
    reject_unregistrable(&mut raw, env, diagnostics);
    let env_file = read_env_file(&mut raw, substitution, env, diagnostics);
    substitute(&mut raw, env_file.as_ref(), substitution, env, diagnostics);
    let empty_env_names = empty_env_names(&raw, env_file.as_ref(), substitution);
    // No `..` here, so a new key does not compile until it is handled.
    #[rustfmt::skip]
    let RawTool {
        name, description, kind, server, transport, command, args, env: variables, env_file: _, env_file_snake: _,
        inherit_env, encoding, url, headers, auth, timeout, sse_read_timeout, terminate_on_close, config, load_tools,
        load_prompts, instructions, request_timeout, max_total_timeout, connect_timeout, install_timeout, prefix, lifecycle, required, era,
        max_result_bytes, allow, deny, trust, defer_loading, overrides, lock, results,
    } = raw;
    let position = |at| substitution.position(at, &env.file);
    let overrides = super::overrides::overrides(overrides, &position, diagnostics);
    let mut reader = Reader { class: CLASS, diagnostics };
    let name = identifier("name", at, name, &mut reader);
    entries.extend(name.clone().map(|name| EntryOptions { name, lock, results }));
    check_tool_type(at, kind, &mut reader);
    let here = name.as_ref().map_or(at, |it| it.at);
    let server = identifier("server", here, server, &mut reader);
    let description = description_of(here, description, name.as_ref(), &mut reader);
    let roots_at = config.as_ref().and_then(|it| it.node.child(ROOTS_KEY)).map_or(here, |it| it.at);
    let config = reader.json("config", config);
    let timeouts = timeouts(request_timeout, max_total_timeout, connect_timeout, &mut reader);
    let trust = reader.flag("trust", trust).unwrap_or(true) && !env.origin.is_registered();
    let defer_loading = read_defer_loading(defer_loading, &mut reader);
    let prefix = prefix_of(prefix, name.as_ref(), &mut reader);
    let flags = [("load_tools", load_tools), ("load_prompts", load_prompts), ("instructions", instructions)];
    let [load_tools, load_prompts, instructions] = flags.map(|(key, it)| reader.flag(key, it) != Some(false));
    let required = reader.flag("required", required).unwrap_or(false);
    let lifecycle = reader.keyword("lifecycle", lifecycle, Lifecycle::KEYWORDS, Lifecycle::parse);
    let era = reader.keyword("era", era, EraChoice::KEYWORDS, EraChoice::parse);
    let max_result_bytes = reader.count("max_result_bytes", max_result_bytes, u64::MAX);
    let (allow, deny) = (globs("allow", allow, &mut reader), globs("deny", deny, &mut reader));
    let roots = roots(config.as_ref(), roots_at, env, &mut reader);

    #[rustfmt::skip]
    let fields = TransportFields {
        command, args, env: variables, inherit_env, encoding, url, headers, auth, timeout, sse_read_timeout, terminate_on_close,
        install_timeout,
    };
    let env_file = env_file.ok().flatten();
    let (server_ref, config_ref, env_file) = (server.as_ref(), config.as_ref(), env_file.as_ref());
    let entry = endpoint::EntryContext { here, server: server_ref, config: config_ref, env_file, env };
    let kind = TransportKind::of(transport, server_ref, fields.command.as_ref(), &mut reader);
    warn_empty_env_names(kind, env_file, &empty_env_names, diagnostics);
    let endpoint = kind.and_then(|kind| endpoint::endpoint(kind, fields, &entry, diagnostics));

    let (name, endpoint) = (name?.value, endpoint?);
    #[rustfmt::skip]
    let source = Source {
        description, server: server?.value, egress: endpoint.url().and_then(|it| url::egress(it, env)), endpoint, prefix: prefix?, config,
        roots, load_tools, load_prompts, instructions, lifecycle: lifecycle.unwrap_or(Lifecycle::Singleton), required,
        era: era.unwrap_or(EraChoice::Auto), timeouts, max_result_bytes, allow, deny, trust, defer_loading, overrides, lock: LockSettings::default(), package: None,
        results: ResultSettings::default(),
        at: position(here), written, name,
    };
    (diagnostics.count(Severity::Error) == before).then_some(source)
}

/// Returns the prefix of the tools' names: the written one, or the name of the entry.
fn prefix_of(
    field: Option<Field>,
    name: Option<&PlacedString>,
    reader: &mut Reader<'_>,
) -> Option<MaskedString> {
    let prefix = reader.text("prefix", field).or_else(|| name.cloned())?;
    if prefix.value.expose() == RESERVED_PREFIX {
        reader.diagnostics.reserved_prefix(prefix.at, RESERVED_PREFIX);
    }
    Some(prefix.value)
}

/// Reads a required name. A blank one is reported at its own place, a missing one at `at`.
fn identifier(key: &str, at: Place, field: Option<Field>, reader: &mut Reader<'_>) -> Option<PlacedString> {
    let written = field.is_some();
    let text = reader.text(key, field);
    match text {
        Some(text) if !text.value.is_blank() => Some(text),
        Some(blank) => {
            reader.diagnostics.empty_identifier(blank.at, key);
            None
        }
        None => {
            if !written {
                reader.diagnostics.empty_identifier(at, key);
            }
            None
        }
    }
}

/// Reads `defer_loading`: `auto`, `true` or `false`.
fn read_defer_loading(field: Option<Field>, reader: &mut Reader<'_>) -> DeferLoading {
    let is_auto = |it: &Field| matches!(&it.node.value, Value::Str(it) if it.text.expose() == "auto");
    match reader.flag("defer_loading", field.filter(|it| !is_auto(it))) {
        None => DeferLoading::Auto,
        Some(true) => DeferLoading::Always,
        Some(false) => DeferLoading::Never,
    }
}

fn check_tool_type(at: Place, field: Option<Field>, reader: &mut Reader<'_>) {
    if field.is_none() {
        return reader.diagnostics.missing_type(at);
    }
    if let Some(kind) = reader.text("type", field).filter(|it| it.value.expose() != "mcp") {
        reader.diagnostics.unknown_type(kind.at, &kind.value);
    }
}

/// V-14: a model needs a description. A missing one is a warning, and a default is generated.
fn description_of(
    at: Place,
    field: Option<Field>,
    name: Option<&PlacedString>,
    reader: &mut Reader<'_>,
) -> MaskedString {
    let written = field.is_some();
    match reader.text("description", field) {
        Some(text) if !text.value.is_blank() => text.value,
        None if written => MaskedString::plain(""),
        missing => {
            reader.diagnostics.missing_description(missing.map_or(at, |it| it.at));
            name.map_or_else(
                || MaskedString::plain(""),
                |it| it.value.map(|name| format!("MCP server '{name}'")),
            )
        }
    }
}

fn timeouts(
    request: Option<Field>,
    total: Option<Field>,
    connect: Option<Field>,
    reader: &mut Reader<'_>,
) -> Timeouts {
    let request = reader
        .count("request_timeout", request, MAX_TIMEOUT_SECONDS)
        .map_or(DEFAULT_REQUEST_TIMEOUT, Duration::from_secs);
    Timeouts {
        connect: reader.seconds("connect_timeout", connect).unwrap_or(DEFAULT_CONNECT_TIMEOUT),
        request,
        total: reader.seconds("max_total_timeout", total).unwrap_or(request * 5),
    }
}

fn globs(key: &str, field: Option<Field>, reader: &mut Reader<'_>) -> Vec<Glob> {
    let texts = reader.texts(key, field).map_or_else(Vec::new, |it| it.value);
    texts.into_iter().map(|it| Glob::of(it.value)).collect()
}

/// Returns `config.allowed_directories` as absolute paths. Only the server interprets the other settings.
fn roots(config: Option<&ServerConfig>, at: Place, env: &Env, reader: &mut Reader<'_>) -> Vec<MaskedString> {
    use serde_json::Value as Json;
    let paths = |tree: &Json| match tree.get(ROOTS_KEY) {
        None | Some(Json::Null) => Some(Vec::new()),
        Some(Json::String(path)) => Some(vec![path.clone()]),
        Some(Json::Array(paths)) => paths.iter().map(|it| it.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    };
    let Some(config) = config else { return Vec::new() };
    let (Some(values), Some(shown)) = (paths(&config.value), paths(&config.shown)) else {
        reader.diagnostics.invalid_allowed_directories(at);
        return Vec::new();
    };
    let absolute = |path: &str| launch::absolute(path, &env.folder).to_string_lossy().into_owned();
    let both = values.into_iter().zip(shown);
    both.map(|(value, shown)| {
        if value == shown {
            MaskedString::plain(absolute(&value))
        } else {
            MaskedString::secret(absolute(&value), shown)
        }
    })
    .collect()
}

/// Reads the entry's env file. `Err` means that the entry names one that cannot be read.
fn read_env_file(
    raw: &mut RawTool,
    substitution: &mut Substitution<'_>,
    env: &Env,
    diagnostics: &mut Diagnostics,
) -> Result<Option<EnvFile>, ()> {
    let scope = Scope { env, env_file: Some(&[]) };
    for field in [&mut raw.env_file, &mut raw.env_file_snake].into_iter().flatten() {
        substitution.apply(&mut field.node, &scope, diagnostics);
    }
    let mut reader = Reader { class: CLASS, diagnostics };
    let named = raw.env_file.is_some() || raw.env_file_snake.is_some();
    let camel = reader.text("envFile", raw.env_file.clone());
    let snake = reader.text("env_file", raw.env_file_snake.clone());
    if let (Some(camel), Some(snake)) = (&camel, &snake)
        && camel.value.expose() != snake.value.expose()
    {
        diagnostics.conflicting_env_files(snake.at, camel.at);
        return Err(());
    }
    let Some(path) = camel.or(snake) else { return if named { Err(()) } else { Ok(None) } };
    let bytes = env.files.read(path.value.expose(), MAX_ENV_FILE_BYTES);
    parse_env_file(&path, bytes, diagnostics).map(Some).ok_or(())
}

/// Returns the names that the env file leaves empty and that neither `env` nor a diagnostic about substitution
/// covers. A stdio server receives them all as empty values.
fn empty_env_names(
    raw: &RawTool,
    env_file: Result<&Option<EnvFile>, &()>,
    substitution: &Substitution<'_>,
) -> Vec<String> {
    let is_set = |name: &str| raw.env.as_ref().is_some_and(|it| it.node.child(name).is_some());
    let assignments = env_file.ok().and_then(Option::as_ref).into_iter().flat_map(|it| &it.assignments);
    assignments
        .filter(|it| it.value.is_empty() && !is_set(&it.name) && !substitution.empty.contains(&it.name))
        .map(|it| it.name.clone())
        .collect()
}

fn warn_empty_env_names(
    kind: Option<TransportKind>,
    env_file: Option<&EnvFile>,
    empty_env_names: &[String],
    diagnostics: &mut Diagnostics,
) {
    let file =
        env_file.filter(|_| matches!(kind, Some(TransportKind::Stdio { .. })) && !empty_env_names.is_empty());
    if let Some(file) = file {
        diagnostics.empty_env_file_values(file.at, &file.name, empty_env_names);
    }
}

fn parse_env_file(
    path: &PlacedString,
    bytes: Result<Vec<u8>, FileError>,
    diagnostics: &mut Diagnostics,
) -> Option<EnvFile> {
    let name = path.value.shown().to_owned();
    match bytes.map(String::from_utf8) {
        Err(error) => diagnostics.file_error(path.at, CLASS, "envFile", &path.value, &error),
        Ok(Err(_)) => diagnostics.file_not_text(path.at, CLASS, "envFile", &path.value),
        Ok(Ok(text)) => match env_file::parse(&text) {
            Ok(assignments) => return Some(EnvFile { name, at: path.at, assignments }),
            Err(bad) => diagnostics.invalid_env_line(path.at, &path.value, &bad),
        },
    }
    None
}

/// Rejects the keys and variables that a registered entry must not use: it sees neither files nor variables of this
/// machine.
fn reject_unregistrable(raw: &mut RawTool, env: &Env, diagnostics: &mut Diagnostics) {
    if !env.origin.is_registered() {
        return;
    }
    let RawTool { env_file, env_file_snake, inherit_env, auth, .. } = raw;
    let fields =
        [("envFile", env_file), ("env_file", env_file_snake), ("inherit_env", inherit_env), ("auth", auth)];
    for (key, field) in fields {
        if let Some(field) = field.take() {
            diagnostics.key_not_registrable(field.key_at, key);
        }
    }
    for field in raw.fields_mut() {
        reject_variables(&field.node, diagnostics);
    }
}

/// Rejects `${` in values. Secrets are exempt, because a secret may contain any characters.
fn reject_variables(node: &Node, diagnostics: &mut Diagnostics) {
    match &node.value {
        Value::Str(it) if !it.text.is_secret() && it.text.expose().contains("${") => {
            diagnostics.variable_in_registration(node.at);
        }
        Value::Seq(items) => items.iter().for_each(|it| reject_variables(it, diagnostics)),
        Value::Map(pairs) => pairs.iter().for_each(|it| reject_variables(&it.node, diagnostics)),
        _ => {}
    }
}

fn substitute(
    raw: &mut RawTool,
    env_file: Result<&Option<EnvFile>, &()>,
    substitution: &mut Substitution<'_>,
    env: &Env,
    diagnostics: &mut Diagnostics,
) {
    if env.origin.is_registered() {
        return;
    }
    let known = env_file.ok().map(|file| file.as_ref().map_or(&[][..], |it| &it.assignments));
    let scope = Scope { env, env_file: known };
    (raw.env_file, raw.env_file_snake) = (None, None);
    for field in raw.fields_mut() {
        substitution.apply(&mut field.node, &scope, diagnostics);
    }
}
