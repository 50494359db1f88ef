//! Collects the facts about one source or model, each as text and as JSON. They never contain a secret.

use crate::environment::Environment;
use serde_json::{Map, Value, json};
use std::time::Duration;
use wharf_agent::{default_endpoint, dialect::Dialect, key_variable, model::ModelOptions, uses_key_variable};
use wharf_config::{
    Arg, ArgOrigin, ChildEnv, Endpoint, EnvOrigin, Launch, Model, OAuthSettings, Program, RemoteEndpoint,
    Source,
};
use wharf_runtime::{MaskedString, NameParts, shown_names};

/// A fact about a source: its key, its lines of text and its JSON value.
pub(crate) struct Fact {
    pub(crate) key: &'static str,
    pub(crate) lines: Vec<String>,
    pub(crate) json: Value,
}

impl Fact {
    pub(crate) fn new(key: &'static str, line: impl Into<String>, json: Value) -> Fact {
        Fact { key, lines: vec![line.into()], json }
    }

    fn list(key: &'static str, lines: Vec<String>, json: Value) -> Fact {
        Fact { key, lines, json }
    }
}

/// Builds the JSON document of a source.
pub(crate) fn source_facts_json(source: &Source, environment: &Environment) -> Value {
    let name = Fact::new("name", source.name.shown(), json!(source.name.shown()));
    facts_json([name].into_iter().chain(describe(source, environment)))
}

/// Builds the JSON document of facts.
pub(crate) fn facts_json(facts: impl IntoIterator<Item = Fact>) -> Value {
    Value::Object(facts.into_iter().map(|fact| (fact.key.to_owned(), fact.json)).collect::<Map<_, _>>())
}

/// Describes everything that the configuration says about a source, without starting it.
pub(crate) fn describe(source: &Source, environment: &Environment) -> Vec<Fact> {
    let transport = source.endpoint.transport();
    let mut facts = vec![
        Fact::new("description", source.description.shown(), json!(source.description.shown())),
        Fact::new("server", source.server.shown(), json!(source.server.shown())),
        Fact::new("transport", mark_default(source, "transport", transport), json!(transport)),
    ];
    facts.extend(endpoint(source, environment));
    if let Some(config) = &source.config {
        let keys: Vec<&str> =
            config.shown().as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let line = format!("{} (passed as MCP_CONFIG to a process, and in the handshake)", keys.join(", "));
        facts.push(Fact::new("config", line, json!(keys)));
    }
    if !source.roots.is_empty() {
        let roots: Vec<&str> = source.roots.iter().map(MaskedString::shown).collect();
        let mut lines: Vec<String> = roots.iter().map(|it| (*it).to_owned()).collect();
        lines.push("(offered as MCP roots, from config.allowed_directories)".to_owned());
        facts.push(Fact::list("roots", lines, json!(roots)));
    }
    facts.push(timeouts(source));
    let lifecycle = source.lifecycle.as_str();
    facts.push(Fact::new("lifecycle", mark_default(source, "lifecycle", lifecycle), json!(lifecycle)));
    facts.push(Fact::new(
        "era",
        mark_default(source, "era", source.era.as_str()),
        json!(source.era.as_str()),
    ));
    facts.push(Fact::new(
        "required",
        mark_default(source, "required", yes_or_no(source.required)),
        json!(source.required),
    ));
    facts.push(names(source));
    facts.push(discovery(source));
    facts.push(instructions(source));
    facts
}

/// Describes the configuration of the model, without sending it a request.
pub(crate) fn describe_model(model: &Model) -> Vec<Fact> {
    let provider = model.provider;
    let key = match (&model.api_key, key_variable(provider)) {
        (Some(key), _) if key.is_secret() => format!("`api_key`, {}", key.shown()),
        (Some(_), _) => "`api_key`, as written".to_owned(),
        (None, Some(variable)) if uses_key_variable(model) => {
            format!("your environment, {variable} (default)")
        }
        (None, Some(_)) => "none; `endpoint` is another host, so only `api_key` is sent".to_owned(),
        (None, None) => "none is needed".to_owned(),
    };
    let endpoint = match (&model.endpoint, default_endpoint(provider)) {
        (Some(endpoint), _) => endpoint.shown.shown().to_owned(),
        (None, Some(endpoint)) => format!("{endpoint} (default)"),
        (None, None) => "missing; `endpoint` must name your own".to_owned(),
    };
    let dialect = Dialect::of(model).as_str();
    let options = ModelOptions::of(model);
    let window = options.context_window;
    let window_note = if model.context_window.is_some() { "" } else { " (default)" };
    vec![
        Fact::new("provider", provider.as_str(), json!(provider.as_str())),
        Fact::new("name", model.name.shown(), json!(model.name.shown())),
        Fact::new("api", dialect, json!(dialect)),
        Fact::new("endpoint", endpoint.clone(), json!(endpoint)),
        Fact::new("key", key.clone(), json!(key)),
        Fact::new("context_window", format!("{window} tokens{window_note}"), json!(window)),
        Fact::new("images", yes_or_no(options.images), json!(options.images)),
    ]
}

fn endpoint(source: &Source, environment: &Environment) -> Vec<Fact> {
    match &source.endpoint {
        Endpoint::Builtin(builtin) => {
            vec![Fact::new(
                "runs",
                format!("in this process ({})", builtin.as_str()),
                json!(builtin.as_str()),
            )]
        }
        Endpoint::Stdio(launch) => stdio(launch, environment),
        Endpoint::Sse(remote) => self::remote(remote),
        Endpoint::WebSocket(_, url) => vec![Fact::new("url", url.shown(), json!(url.shown()))],
        Endpoint::Http { remote, terminate_on_close } => {
            let mut facts = self::remote(remote);
            let line = mark_default(source, "terminate_on_close", yes_or_no(*terminate_on_close));
            facts.push(Fact::new("terminate_on_close", line, json!(terminate_on_close)));
            facts
        }
    }
}

fn stdio(launch: &Launch, environment: &Environment) -> Vec<Fact> {
    let (name, path) = match &launch.program {
        Program::Launcher(launcher) => {
            (launcher.as_str().to_owned(), environment.find_program(launcher.as_str()))
        }
        Program::Granted(path) => (path.display().to_string(), Some(path.clone())),
        Program::Interpreter(interpreter) => {
            let path = interpreter.programs().iter().find_map(|it| environment.find_program(it));
            (interpreter.as_str().to_owned(), path)
        }
    };
    let found = match (&launch.program, &path) {
        (Program::Granted(_), _) => format!("{name} (granted in wharf.toml)"),
        (_, Some(path)) => format!("{} (found on PATH)", path.display()),
        (_, None) => format!("{name} is not on PATH; install it before you start this server"),
    };
    let argv: Vec<&str> =
        [name.as_str()].into_iter().chain(launch.args.iter().map(|it| it.value.shown())).collect();
    let command_line = argv.iter().map(|it| shell_word(it)).collect::<Vec<_>>().join(" ");
    let mut run = vec![command_line];
    run.extend(launch.args.iter().filter_map(explain_arg).map(|it| format!("({it})")).fold(
        Vec::new(),
        |mut seen, it| {
            if !seen.contains(&it) {
                seen.push(it);
            }
            seen
        },
    ));
    let args: Vec<Value> =
        launch.args.iter().map(|it| json!({ "value": it.value.shown(), "why": explain_arg(it) })).collect();
    vec![
        Fact::list("runs", run, json!(argv)),
        Fact::new("program", found, json!(path.map(|it| it.display().to_string()))),
        Fact { key: "args", lines: Vec::new(), json: json!(args) },
        Fact::new("encoding", launch.encoding.name(), json!(launch.encoding.name())),
        environment_fact(&launch.env),
    ]
}

/// Lists the names and origins of the variables, never their values.
fn environment_fact(env: &ChildEnv) -> Fact {
    let width = env.0.keys().map(String::len).max().unwrap_or_default();
    let lines =
        env.0.iter().map(|(name, it)| format!("{name:<width$}  {}", origin(&it.origin, &it.value))).collect();
    let json: Vec<Value> = env
        .0
        .iter()
        .map(|(name, it)| json!({ "name": name, "from": origin(&it.origin, &it.value) }))
        .collect();
    Fact::list("environment", lines, json!(json))
}

fn origin(origin: &EnvOrigin, value: &MaskedString) -> String {
    match origin {
        // A secret is shown as written, which names variables and not values. A literal is not shown at all.
        EnvOrigin::Entry if value.is_secret() => format!("`env`, {}", value.shown()),
        EnvOrigin::Entry => "`env`, as written".to_owned(),
        EnvOrigin::EnvFile(file) => format!("`envFile` {file}"),
        EnvOrigin::Inherited => "your environment, named in `inherit_env`".to_owned(),
        EnvOrigin::Always => "your environment, always passed on".to_owned(),
        EnvOrigin::Network => "your environment, proxies and certificates".to_owned(),
        EnvOrigin::Launcher(launcher) => {
            format!("your environment, settings of {}", launcher.as_str())
        }
        EnvOrigin::Config => "`config`, as JSON".to_owned(),
    }
}

fn remote(remote: &RemoteEndpoint) -> Vec<Fact> {
    let mut facts = vec![Fact::new("url", remote.shown_url.shown(), json!(remote.shown_url.shown()))];
    let headers: Vec<&str> = remote.headers.iter().map(|(name, _)| name.as_str()).collect();
    if !headers.is_empty() {
        facts.push(Fact::new("headers", headers.join(", "), json!(headers)));
    }
    facts.extend(remote.auth.as_deref().map(auth));
    for (key, value) in [("timeout", remote.timeout), ("sse_read_timeout", remote.sse_read_timeout)] {
        if let Some(value) = value {
            facts.push(Fact::new(key, seconds(value), json!(value.as_secs_f64())));
        }
    }
    facts
}

/// Describes the sign-in without its secrets.
fn auth(settings: &OAuthSettings) -> Fact {
    let OAuthSettings { grant, scopes, issuer, dpop } = settings;
    let client_id = grant.client_id().map(MaskedString::shown);
    let token_file = grant.token_file().map(|it| it.display().to_string());
    let grant = grant.grant_type().as_str();
    let bound = dpop.then(|| "tokens bound to a key (DPoP)".to_owned());
    let scope_list = (!scopes.is_empty()).then(|| format!("scopes {}", scopes.join(" ")));
    let lines = [
        Some(format!("oauth, {grant}")),
        client_id.map(|it| format!("client {it}")),
        issuer.as_ref().map(|it| format!("only at {it}")),
        scope_list,
        token_file.as_ref().map(|it| format!("token from {it}")),
        bound,
    ];
    let json = json!({
        "type": "oauth", "grant": grant, "client_id": client_id, "issuer": issuer, "scopes": scopes,
        "token_file": token_file, "dpop": dpop,
    });
    Fact::list("auth", lines.into_iter().flatten().collect(), json)
}

fn timeouts(source: &Source) -> Fact {
    let install = match &source.endpoint {
        Endpoint::Stdio(launch) if launch.download.is_some() => Some(launch.install_timeout),
        _ => None,
    };
    let install =
        install.map(|it| ("install_timeout", it, "default, for the download before the first start"));
    let all = [
        ("connect_timeout", source.timeouts.connect, "default"),
        ("request_timeout", source.timeouts.request, "default"),
        ("max_total_timeout", source.timeouts.total, "default, five times request_timeout"),
    ];
    let all: Vec<(&str, Duration, &str)> = install.into_iter().chain(all).collect();
    let line = |(key, value, default): &(&str, Duration, &str)| {
        format!(
            "{key} {}{}",
            seconds(*value),
            if source.sets_key(key) { String::new() } else { format!(" ({default})") }
        )
    };
    let json = all.iter().map(|(key, value, _)| ((*key).to_owned(), json!(value.as_secs_f64()))).collect();
    Fact::list("timeouts", all.iter().map(line).collect(), Value::Object(json))
}

/// Describes the tool names that models will see.
fn names(source: &Source) -> Fact {
    let prefix = &source.prefix;
    // If the prefix comes from a variable, show the variable's name and not its value.
    let pattern = match prefix.is_secret() {
        true => format!("{}__NAME", prefix.shown()),
        false => shown_names(&[NameParts::new(source.name.expose(), prefix.expose(), "NAME")]).concat(),
    };
    let line = match prefix.shown() {
        "" => "the server's own names (`prefix` is empty)".to_owned(),
        _ if source.sets_key("prefix") => pattern.clone(),
        _ => format!("{pattern} (default, from `name`)"),
    };
    let shown_prefix = pattern.strip_suffix("__NAME").unwrap_or_default();
    Fact::new("tool_names", line, json!(shown_prefix))
}

fn discovery(source: &Source) -> Fact {
    let (tools, prompts) = (source.load_tools, source.load_prompts);
    let line = match (tools, prompts) {
        (true, true) => "tools and prompts are listed at the start",
        (true, false) => "tools are listed at the start",
        (false, true) => "prompts are listed at the start",
        (false, false) => "nothing is listed; the server starts at its first call",
    };
    Fact::new("discovery", line, json!({ "load_tools": tools, "load_prompts": prompts }))
}

fn instructions(source: &Source) -> Fact {
    let line = match source.instructions {
        true => "clients of the gateway receive them",
        false => "clients of the gateway do not receive them",
    };
    Fact::new("instructions", mark_default(source, "instructions", line), json!(source.instructions))
}

fn explain_arg(arg: &Arg) -> Option<String> {
    let shown = arg.value.shown();
    match &arg.origin {
        ArgOrigin::Written => None,
        ArgOrigin::FromServer => Some("follows from `server`, because there is no `args`".to_owned()),
        ArgOrigin::Added(why) => Some(format!("`{shown}` is added: {why}")),
        ArgOrigin::Resolved(written) => {
            Some(format!("`{}` is `{shown}`: relative to the agent file", written.shown()))
        }
        ArgOrigin::Locked(written) => {
            Some(format!("`{}` is `{shown}`: the version in wharf.lock", written.shown()))
        }
        ArgOrigin::Versioned(written) => Some(format!(
            "`{}` is `{shown}`: any version from the registry, not the program of that name on PATH",
            written.shown()
        )),
    }
}

fn mark_default(source: &Source, key: &str, value: &str) -> String {
    if source.sets_key(key) { value.to_owned() } else { format!("{value} (default)") }
}

fn yes_or_no(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// Quotes a word for a shell, so that the user can paste the line.
fn shell_word(word: &str) -> String {
    let plain =
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:=@%+,~^".contains(&b));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
