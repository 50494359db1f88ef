//! The shapes of an agent file as written: which keys there are, and nothing about what they mean.
//!
//! Lowering takes these structs apart without `..`, so that a new key does not compile until it has a meaning.

use super::{
    diagnostic::Diagnostics,
    lower::unused_keys,
    node::{Node, Value},
    place::Place,
};

/// The value of a key that is there.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) key_at: Place,
    pub(crate) node: Node,
}

/// A mapping whose values can be changed without knowing which they are.
pub(crate) trait Fields {
    /// The keys that are there.
    fn written(&self) -> Vec<&'static str>;
    /// Every field that is there.
    fn fields_mut(&mut self) -> impl Iterator<Item = &mut Field>;
}

/// Tells which keys a mapping does not use, for what else it says.
type UnusedKeys = fn(&Node) -> Vec<&'static str>;

/// Declares a mapping with known keys: the struct, the list of its keys, and how it is read.
macro_rules! raw {
    ($(#[$doc:meta])* $name:ident, $what:literal $(, $unused:path)? { $($field:ident = $key:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: Option<Field>,)+
        }

        impl $name {
            pub(crate) const KEYS: &'static [&'static str] = &[$($key),+];

            /// Sorts a mapping's values by their keys; `None` when it is not a mapping.
            pub(crate) fn read(node: Node, diagnostics: &mut Diagnostics) -> Option<$name> {
                let unused: &[UnusedKeys] = &[$($unused)?];
                let mut slots = sort(node, $what, Self::KEYS, unused, diagnostics)?.into_iter();
                Some($name { $($field: slots.next().flatten(),)+ })
            }
        }

        impl Fields for $name {
            fn written(&self) -> Vec<&'static str> {
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
        instructions = "instructions", tools = "tools",
    }
}

raw! {
    /// `model:`
    RawModel, "'model'" {
        provider = "provider", name = "name", temperature = "temperature", max_tokens = "max_tokens",
        top_p = "top_p", endpoint = "endpoint", api_key = "api_key", api_version = "api_version",
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
        inherit_env = "inherit_env", encoding = "encoding", url = "url", headers = "headers",
        timeout = "timeout", sse_read_timeout = "sse_read_timeout", terminate_on_close = "terminate_on_close",
        config = "config", load_tools = "load_tools", load_prompts = "load_prompts",
        request_timeout = "request_timeout", max_total_timeout = "max_total_timeout",
        connect_timeout = "connect_timeout", install_timeout = "install_timeout", prefix = "prefix",
        lifecycle = "lifecycle", required = "required", era = "era", max_result_bytes = "max_result_bytes", allow = "allow", deny = "deny",
    }
}

raw! {
    /// A source as it is registered.
    RawRegistration, "a source" {
        name = "name", description = "description", url = "url", source_type = "source_type",
        plugin_dir = "mcp_plugin_dir", transport_type = "mcp_transport_type", runtime_hint = "mcp_runtime_hint",
        lifecycle_mode = "mcp_lifecycle_mode", env_vars = "mcp_env_vars", command = "mcp_command",
        args = "mcp_args", server_url = "mcp_server_url",
    }
}

raw! {
    /// wharf.toml.
    RawSettings, "the settings" {
        grants = "grants", breaker = "breaker", calls = "calls", server = "server", tokens = "tokens",
        telemetry = "telemetry", journal = "journal",
    }
}

raw! {
    /// `[journal]` of wharf.toml.
    RawJournal, "[journal]" { keep = "keep", max_bytes = "max_bytes" }
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
        listen = "listen", database = "database", no_auth = "no_auth",
    }
}

raw! {
    /// One token of `[tokens]` of wharf.toml.
    RawToken, "a token" { role = "role", value = "value", file = "file" }
}

raw! {
    /// `[breaker]` of wharf.toml.
    RawBreaker, "[breaker]" { failure_threshold = "failure_threshold", recovery_timeout = "recovery_timeout" }
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
        processes_over_rest = "processes_over_rest", secrets_file = "secrets_file",
    }
}

raw! {
    /// `[grants.arguments]` of wharf.toml.
    RawArguments, "[grants.arguments]" { npx = "npx", uvx = "uvx", docker = "docker" }
}

/// One slot per key. A key without a value is the same as no key.
fn sort(
    node: Node,
    what: &str,
    keys: &[&str],
    unused: &[UnusedKeys],
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Option<Field>>> {
    // A misspelt key is never taken for one that would be refused.
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
    // A misspelt key stands in for the one that was meant: its value is checked too, and "missing" is not a second mistake.
    for (guess, field) in guesses {
        let slot = keys.iter().position(|key| *key == guess).and_then(|index| slots.get_mut(index));
        if let Some(slot @ None) = slot {
            *slot = Some(field);
        }
    }
    Some(slots)
}
