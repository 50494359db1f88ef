//! The structure of the configuration files as written: declares the known keys of every mapping, but not their
//! meaning.
//!
//! Lowering destructures these structs without `..`, so a new key does not compile until it is handled.

use super::{
    diagnostic::Diagnostics,
    node::{Node, Value},
    place::Place,
    transport::unused_keys,
};

/// A key that is present, with its value.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) key_at: Place,
    pub(crate) node: Node,
}

/// Access to the fields of a mapping without knowing their keys.
pub(crate) trait Fields {
    /// Returns the keys that are present.
    fn written_keys(&self) -> Vec<&'static str>;
    /// Iterates over all fields that are present.
    fn fields_mut(&mut self) -> impl Iterator<Item = &mut Field>;
}

/// Returns the keys that a mapping does not use, given its other values.
type UnusedKeys = fn(&Node) -> Vec<&'static str>;

/// Declares a mapping with known keys: the struct, its list of keys and its reader.
macro_rules! raw {
    ($(#[$doc:meta])* $name:ident, $what:literal $(, $unused:path)? { $($field:ident = $key:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: Option<Field>,)+
        }

        impl $name {
            pub(crate) const KEYS: &'static [&'static str] = &[$($key),+];

            /// Assigns a mapping's values to the fields. Returns `None` if the node is not a mapping.
            pub(crate) fn read(node: Node, diagnostics: &mut Diagnostics) -> Option<$name> {
                let unused: &[UnusedKeys] = &[$($unused)?];
                let mut slots = assign_fields(node, $what, Self::KEYS, unused, diagnostics)?.into_iter();
                Some($name { $($field: slots.next().flatten(),)+ })
            }
        }

        impl Fields for $name {
            fn written_keys(&self) -> Vec<&'static str> {
                [$(self.$field.as_ref().map(|_| $key)),+].into_iter().flatten().collect()
            }

            fn fields_mut(&mut self) -> impl Iterator<Item = &mut Field> {
                [$(self.$field.as_mut()),+].into_iter().flatten()
            }
        }
    };
}

raw! {
    /// The top level.
    RawAgent, "an agent file" {
        name = "name", description = "description", author = "author", model = "model",
        instructions = "instructions", tools = "tools", limits = "limits", approval = "approval",
        context = "context", response_format = "response_format", sampling = "sampling", lock = "lock",
        results = "results", record = "record",
    }
}

raw! {
    /// `model:`
    RawModel, "'model'" {
        provider = "provider", name = "name", temperature = "temperature", max_tokens = "max_tokens",
        top_p = "top_p", endpoint = "endpoint", api_key = "api_key", api_version = "api_version", api = "api",
        reasoning = "reasoning", context_window = "context_window", images = "images", timeout = "timeout",
        idle_timeout = "idle_timeout", headers = "headers", extra = "extra",
    }
}

raw! {
    /// `limits:`
    RawLimits, "'limits'" {
        max_turns = "max_turns", max_tool_calls = "max_tool_calls", max_repeats = "max_repeats",
        max_parallel = "max_parallel", run_timeout = "run_timeout", max_total_tokens = "max_total_tokens",
        max_cost = "max_cost", approval_timeout = "approval_timeout",
    }
}

raw! {
    /// `approval:`
    RawApproval, "'approval'" {
        default = "default", allow = "allow", ask = "ask", deny = "deny", after_untrusted = "after_untrusted",
    }
}

raw! {
    /// `context:`
    RawContext, "'context'" {
        preamble = "preamble", compact = "compact", tool_budget = "tool_budget", pin = "pin", clients = "clients",
        server_instructions = "server_instructions",
    }
}

raw! {
    /// `instructions:`
    RawInstructions, "'instructions'" { file = "file", inline = "inline" }
}

raw! {
    /// One entry of `tools:`.
    RawTool, "a tool", unused_keys {
        name = "name", description = "description", kind = "type", server = "server", transport = "transport",
        command = "command", args = "args", env = "env", env_file = "envFile", env_file_snake = "env_file",
        inherit_env = "inherit_env", encoding = "encoding", url = "url", headers = "headers", auth = "auth",
        timeout = "timeout", sse_read_timeout = "sse_read_timeout", terminate_on_close = "terminate_on_close",
        config = "config", load_tools = "load_tools", load_prompts = "load_prompts",
        instructions = "instructions",
        request_timeout = "request_timeout", max_total_timeout = "max_total_timeout",
        connect_timeout = "connect_timeout", install_timeout = "install_timeout", prefix = "prefix",
        lifecycle = "lifecycle", required = "required", era = "era", max_result_bytes = "max_result_bytes", allow = "allow", deny = "deny",
        trust = "trust", defer_loading = "defer_loading", overrides = "overrides", lock = "lock", results = "results",
    }
}

raw! {
    /// `record:`
    RawRecord, "'record'" { ignore = "ignore", redact = "redact" }
}

raw! {
    /// A scenario.
    RawScenario, "a scenario" {
        name = "name", agent = "agent", cassette = "cassette", message = "message", calls = "calls",
        faults = "faults", expect = "expect",
    }
}

raw! {
    /// The file of `--faults`.
    RawFaultFile, "a file of faults" { seed = "seed", faults = "faults" }
}

raw! {
    /// A fault to inject.
    RawFaultRule, "'faults'" {
        tool = "tool", model = "model", kind = "kind", ms = "ms", code = "code", text = "text", bytes = "bytes",
        times = "times", nth = "nth", rate = "rate",
    }
}

raw! {
    /// A call of a scenario.
    RawScenarioCall, "'calls'" { tool = "tool", arguments = "arguments" }
}

raw! {
    /// `expect:` of a scenario.
    RawExpect, "'expect'" {
        calls = "calls", order = "order", never = "never", answer = "answer", max = "max",
    }
}

raw! {
    /// A call that a scenario expects.
    RawExpectedCall, "'expect.calls'" { tool = "tool", arguments = "arguments", result = "result" }
}

raw! {
    /// Limits of a scenario.
    RawMaximum, "'expect.max'" { turns = "turns", tokens = "tokens" }
}

raw! {
    /// Check of a text in a scenario.
    RawTextCheck, "a check" { contains = "contains", not = "not", matches = "matches", json = "json" }
}

raw! {
    /// `lock:`
    RawLock, "'lock'" { mode = "mode", pin = "pin", dependencies = "dependencies" }
}

raw! {
    /// `results:`
    RawResults, "'results'" { inline_limit = "inline_limit", keep = "keep", readers = "for", pass = "pass" }
}

raw! {
    /// One entry of `overrides:`.
    RawOverride, "an override" {
        enabled = "enabled", name = "name", title = "title", description = "description", arguments = "arguments",
        annotations = "annotations",
    }
}

raw! {
    /// One entry of `arguments:` of an override.
    RawArgumentOverride, "an argument of an override" {
        fixed = "fixed", hidden = "hidden", name = "name", description = "description", default = "default",
    }
}

raw! {
    /// `annotations:` of an override.
    RawAnnotations, "'annotations' of an override" {
        title = "title", read_only = "readOnlyHint", destructive = "destructiveHint", idempotent = "idempotentHint",
        open_world = "openWorldHint",
    }
}

raw! {
    /// `auth:` of an entry.
    RawAuth, "'auth'" {
        kind = "type", grant = "grant", scopes = "scopes", issuer = "issuer", dpop = "dpop", client_id = "client_id",
        client_secret = "client_secret", private_key = "private_key", signing_algorithm = "signing_algorithm",
        token = "token", token_file = "token_file", id_token = "id_token", id_token_file = "id_token_file",
        idp = "idp",
    }
}

raw! {
    /// `auth.idp` of an entry.
    RawIdp, "'auth.idp'" {
        token_endpoint = "token_endpoint", client_id = "client_id", client_secret = "client_secret",
    }
}

raw! {
    /// A source as it is registered.
    RawRegistration, "a source" {
        name = "name", description = "description", url = "url", source_type = "source_type",
        plugin_dir = "mcp_plugin_dir", transport_type = "mcp_transport_type", runtime_hint = "mcp_runtime_hint",
        lifecycle_mode = "mcp_lifecycle_mode", env_vars = "mcp_env_vars", command = "mcp_command",
        args = "mcp_args", server_url = "mcp_server_url", call_vars = "mcp_call_vars",
    }
}

raw! {
    /// wharf.toml.
    RawSettings, "the settings" {
        grants = "grants", breaker = "breaker", calls = "calls", server = "server", tokens = "tokens",
        telemetry = "telemetry", journal = "journal", agent = "agent", results = "results",
        lock = "lock",
    }
}

raw! {
    /// `[journal]` of wharf.toml.
    RawJournal, "[journal]" { keep = "keep", max_bytes = "max_bytes" }
}

raw! {
    /// `[results]` of wharf.toml.
    RawResultQuotas, "[results]" { per_principal = "per_principal", count = "count", total = "total" }
}

raw! {
    /// `[lock]` of wharf.toml.
    RawLockPolicy, "[lock]" { registered = "registered" }
}

raw! {
    /// `[agent]` of wharf.toml.
    RawAgentPolicy, "[agent]" {
        keep = "keep", max_turns = "max_turns", max_tool_calls = "max_tool_calls", max_repeats = "max_repeats",
        max_parallel = "max_parallel", run_timeout = "run_timeout", max_total_tokens = "max_total_tokens",
        max_cost = "max_cost", approval_timeout = "approval_timeout", approval = "approval",
        openai_approval_wait = "openai_approval_wait", prices = "prices", breaker = "breaker",
    }
}

raw! {
    /// One entry of `[agent.prices]` of wharf.toml.
    RawPrice, "a price" { input = "input", cached_input = "cached_input", output = "output" }
}

raw! {
    /// `[telemetry]` of wharf.toml.
    RawTelemetry, "[telemetry]" {
        endpoint = "endpoint", headers = "headers", service_name = "service_name", sample_ratio = "sample_ratio",
    }
}

raw! {
    /// `[server]` of wharf.toml.
    RawServer, "[server]" {
        hosts = "hosts", origins = "origins", max_calls = "max_calls", max_streams = "max_streams",
        listen = "listen", database = "database", no_auth = "no_auth", threads = "threads",
    }
}

raw! {
    /// One token of `[tokens]` of wharf.toml.
    RawToken, "a token" { role = "role", value = "value", file = "file", tool_mode = "tool_mode" }
}

raw! {
    /// `[breaker]` of wharf.toml.
    RawBreaker, "[breaker]" { failure_threshold = "failure_threshold", recovery_timeout = "recovery_timeout" }
}

raw! {
    /// `[agent.breaker]` of wharf.toml.
    RawModelBreaker, "[agent.breaker]" {
        failure_threshold = "failure_threshold", recovery_timeout = "recovery_timeout",
    }
}

raw! {
    /// `[calls]` of wharf.toml.
    RawCalls, "[calls]" {
        repeatable = "repeatable", idle_stop = "idle_stop", max_processes = "max_processes",
        record_limit = "record_limit",
    }
}

raw! {
    /// `[grants]` of wharf.toml.
    RawGrants, "[grants]" {
        commands = "commands", arguments = "arguments", packages = "packages", environment = "environment",
        insecure_hosts = "insecure_hosts", private_hosts = "private_hosts", plugin_roots = "plugin_roots",
        processes_over_rest = "processes_over_rest", secrets_file = "secrets_file", token_files = "token_files",
    }
}

raw! {
    /// `[grants.arguments]` of wharf.toml.
    RawArguments, "[grants.arguments]" { npx = "npx", uvx = "uvx", docker = "docker" }
}

/// Sorts the pairs of a mapping into one slot per key. A key with a null value counts as absent.
fn assign_fields(
    node: Node,
    what: &str,
    keys: &[&str],
    unused: &[UnusedKeys],
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Option<Field>>> {
    // Never suggest a key that the entry could not use anyway.
    let unused: Vec<&str> = unused.iter().flat_map(|it| it(&node)).collect();
    let pairs = match node.value {
        Value::Map(pairs) => pairs,
        Value::Broken => return None,
        _ => {
            diagnostics.not_a_mapping(node.at, what);
            return None;
        }
    };
    let mut slots: Vec<Option<Field>> = vec![None; keys.len()];
    let mut guesses = Vec::new();
    for pair in pairs {
        let field = Field { key_at: pair.key_at, node: pair.node };
        match keys.iter().position(|key| *key == pair.key) {
            Some(_) if matches!(field.node.value, Value::Null) => {}
            Some(index) => slots[index] = Some(field),
            None => {
                let closest = diagnostics.closest(&pair.key, keys.iter().copied());
                let guess = closest.filter(|it| !unused.contains(it));
                match closest.filter(|_| guess.is_none()) {
                    Some(unused) => diagnostics.unknown_key_like(pair.key_at, &pair.key, what, unused),
                    None => diagnostics.unknown_key(pair.key_at, &pair.key, what, guess),
                }
                let has_value = !matches!(field.node.value, Value::Null);
                guesses.extend(guess.filter(|_| has_value).map(|guess| (guess, field)));
            }
        }
    }
    // Use the value of a misspelt key for the suggested key. Its value is then checked too, and the key is not also
    // reported as missing.
    for (guess, field) in guesses {
        let slot = keys.iter().position(|key| *key == guess).and_then(|index| slots.get_mut(index));
        if let Some(slot @ None) = slot {
            *slot = Some(field);
        }
    }
    Some(slots)
}
