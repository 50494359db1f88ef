//! Loads wharf.toml, the operator's settings file: what this machine allows, independent of the agent file's author.

mod agent;
mod edit;
mod journal;
mod server;
mod telemetry;

use super::{
    decode,
    diagnostic::Diagnostics,
    grants::Grants,
    plan::Launcher,
    raw::{
        Field, RawArguments, RawBreaker, RawCalls, RawGrants, RawLockPolicy, RawResultQuotas, RawSettings,
    },
    read::Reader,
    toml,
};
use crate::{
    agent_settings::AgentPolicy, breaker_policy::BreakerPolicy, glob::Glob, lock::RegisteredLock,
    result_settings::ResultQuotas,
};
pub use edit::settings_with_grant;
pub use journal::{JournalSettings, Limit};
pub use server::{DatabaseLocation, LocatedValue, NamedToken, Role, ServerSettings, TokenLocation};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
pub use telemetry::TelemetrySettings;

/// Maximum value of `max_processes`.
const MAX_PROCESSES: u64 = 10_000;

/// Settings of this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Exceptions from the rules of agent.yaml.
    pub grants: Grants,
    /// Circuit breaker policy of the sources.
    pub breaker: BreakerPolicy,
    /// Tools that are safe to run twice, as globs over `source:tool`.
    pub repeatable: Vec<Glob>,
    /// Idle time after which a server is stopped. `None` means never.
    pub idle_stop: Option<Duration>,
    /// Maximum number of servers that run as processes, if set.
    pub max_processes: Option<usize>,
    /// Maximum size in bytes of recorded parameters and results, if set. Of larger ones only the beginning is
    /// recorded.
    pub record_limit: Option<usize>,
    /// Listener, authentication and limits of the gateway.
    pub server: ServerSettings,
    /// Export of traces.
    pub telemetry: TelemetrySettings,
    /// Retention of call records.
    pub journal: JournalSettings,
    /// Settings for agents.
    pub agent: AgentPolicy,
    /// Limits on stored results.
    pub results: ResultQuotas,
    /// Treatment of changed definitions of registered servers.
    pub registered_lock: RegisteredLock,
}

/// Loads wharf.toml. Returns either settings, possibly with warnings, or at least one error.
pub fn load_settings(text: impl AsRef<[u8]>, file: &str) -> (Option<Settings>, Diagnostics) {
    let mut diagnostics = match decode(text.as_ref(), file) {
        Ok(text) => Diagnostics::new(file, text),
        Err(diagnostics) => return (None, diagnostics),
    };
    let source = diagnostics.source().to_owned();
    let settings = toml::parse(&source, &mut diagnostics).and_then(|root| {
        let RawSettings { grants, breaker, calls, server, tokens, telemetry, journal, agent, results, lock } =
            RawSettings::read(root, &mut diagnostics)?;
        let grants = grants.map_or(Some(Grants::default()), |it| self::grants(it, &mut diagnostics));
        let usual = BreakerPolicy::default();
        let breaker = breaker.map_or(Some(usual), |it| self::breaker(it, usual, &mut diagnostics));
        let calls = calls.map_or(Some(Default::default()), |it| self::calls(it, &mut diagnostics));
        let server = server::server(server, tokens, &mut diagnostics);
        let telemetry = telemetry::telemetry(telemetry, &mut diagnostics);
        let journal = journal::journal(journal, &mut diagnostics);
        let agent = agent::agent(agent, &mut diagnostics);
        let results = result_quotas(results, &mut diagnostics);
        let registered_lock = registered_lock(lock, &mut diagnostics);
        let CallSettings { repeatable, idle_stop, max_processes, record_limit } = calls?;
        let (grants, breaker, server) = (grants?, breaker?, server?);
        let (telemetry, journal) = (telemetry?, journal?);
        Some(Settings {
            grants,
            breaker,
            repeatable,
            idle_stop,
            max_processes,
            record_limit,
            server,
            telemetry,
            journal,
            agent: agent?,
            results,
            registered_lock,
        })
    });
    diagnostics.finish();
    (settings.filter(|_| !diagnostics.has_errors()), diagnostics)
}

fn grants(field: Field, diagnostics: &mut Diagnostics) -> Option<Grants> {
    let raw = RawGrants::read(field.node, diagnostics)?;
    #[rustfmt::skip]
    let RawGrants {
        commands, arguments, packages, environment, insecure_hosts, private_hosts, plugin_roots, processes_over_rest,
        secrets_file, token_files,
    } = raw;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let processes_over_rest = reader.flag("processes_over_rest", processes_over_rest).unwrap_or(false);
    let secrets_file = reader.text("secrets_file", secrets_file);
    if let Some(file) = secrets_file.as_ref().filter(|it| !Path::new(it.value.expose()).is_absolute()) {
        diagnostics.grant_not_absolute(file.at, "secrets_file", file.value.shown());
    }
    Some(Grants {
        secrets_file: secrets_file.map(|it| PathBuf::from(it.value.expose())),
        commands: absolute_paths("commands", commands, diagnostics),
        plugin_roots: absolute_paths("plugin_roots", plugin_roots, diagnostics),
        token_files: absolute_paths("token_files", token_files, diagnostics),
        private_hosts: strings("private_hosts", private_hosts, diagnostics),
        processes_over_rest,
        arguments: self::arguments(arguments, diagnostics),
        packages: globs("packages", packages, diagnostics),
        environment: globs("environment", environment, diagnostics),
        insecure_hosts: strings("insecure_hosts", insecure_hosts, diagnostics),
        file: None,
    })
}

fn breaker(field: Field, usual: BreakerPolicy, diagnostics: &mut Diagnostics) -> Option<BreakerPolicy> {
    let raw = RawBreaker::read(field.node, diagnostics)?;
    Some(breaker_policy(raw, usual, diagnostics))
}

/// Reads the thresholds of circuit breakers. Those that are not set stay as usual.
fn breaker_policy(raw: RawBreaker, usual: BreakerPolicy, diagnostics: &mut Diagnostics) -> BreakerPolicy {
    let RawBreaker { failure_threshold, recovery_timeout } = raw;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let threshold = reader.count("failure_threshold", failure_threshold, u64::from(u32::MAX));
    BreakerPolicy {
        failure_threshold: threshold.and_then(|it| it.try_into().ok()).unwrap_or(usual.failure_threshold),
        recovery_timeout: reader
            .seconds("recovery_timeout", recovery_timeout)
            .unwrap_or(usual.recovery_timeout),
    }
}

fn result_quotas(field: Option<Field>, diagnostics: &mut Diagnostics) -> ResultQuotas {
    let usual = ResultQuotas::default();
    let Some(raw) = field.and_then(|it| RawResultQuotas::read(it.node, diagnostics)) else { return usual };
    let RawResultQuotas { per_principal, count, total } = raw;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let mut limit = |key, field| reader.count(key, field, u64::from(u32::MAX) << 12);
    ResultQuotas {
        per_principal: limit("per_principal", per_principal).unwrap_or(usual.per_principal),
        count: limit("count", count).unwrap_or(usual.count),
        total: limit("total", total).unwrap_or(usual.total),
    }
}

fn registered_lock(field: Option<Field>, diagnostics: &mut Diagnostics) -> RegisteredLock {
    let raw = field.and_then(|it| RawLockPolicy::read(it.node, diagnostics));
    let Some(RawLockPolicy { registered }) = raw else { return RegisteredLock::default() };
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let lock = reader.keyword("registered", registered, RegisteredLock::KEYWORDS, RegisteredLock::parse);
    lock.unwrap_or_default()
}

/// Parsed values of `[calls]`.
#[derive(Default)]
struct CallSettings {
    repeatable: Vec<Glob>,
    idle_stop: Option<Duration>,
    max_processes: Option<usize>,
    record_limit: Option<usize>,
}

fn calls(field: Field, diagnostics: &mut Diagnostics) -> Option<CallSettings> {
    let RawCalls { repeatable, idle_stop, max_processes, record_limit } =
        RawCalls::read(field.node, diagnostics)?;
    let repeatable = globs("repeatable", repeatable, diagnostics);
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let mut count = |key, field, max| reader.count(key, field, max).and_then(|it| it.try_into().ok());
    let max_processes = count("max_processes", max_processes, MAX_PROCESSES);
    let record_limit = count("record_limit", record_limit, u64::from(u32::MAX));
    let idle_stop = reader.seconds("idle_stop", idle_stop);
    Some(CallSettings { repeatable, idle_stop, max_processes, record_limit })
}

fn absolute_paths(key: &str, field: Option<Field>, diagnostics: &mut Diagnostics) -> Vec<PathBuf> {
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let paths = reader.texts(key, field).map_or_else(Vec::new, |it| it.value);
    for path in paths.iter().filter(|it| !Path::new(it.value.expose()).is_absolute()) {
        reader.diagnostics.grant_not_absolute(path.at, key, path.value.shown());
    }
    paths.into_iter().map(|it| PathBuf::from(it.value.expose())).collect()
}

fn arguments(field: Option<Field>, diagnostics: &mut Diagnostics) -> Vec<(Launcher, Glob)> {
    let Some(raw) = field.and_then(|it| RawArguments::read(it.node, diagnostics)) else {
        return Vec::new();
    };
    let RawArguments { npx, uvx, docker } = raw;
    [(Launcher::Npx, npx), (Launcher::Uvx, uvx), (Launcher::Docker, docker)]
        .into_iter()
        .flat_map(|(launcher, field)| {
            let globs = globs(launcher.as_str(), field, diagnostics);
            globs.into_iter().map(move |it| (launcher, it))
        })
        .collect()
}

fn globs(key: &str, field: Option<Field>, diagnostics: &mut Diagnostics) -> Vec<Glob> {
    strings(key, field, diagnostics).into_iter().map(Glob::new).collect()
}

fn strings(key: &str, field: Option<Field>, diagnostics: &mut Diagnostics) -> Vec<String> {
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let strings = reader.texts(key, field).map_or_else(Vec::new, |it| it.value);
    strings.into_iter().map(|it| it.value.expose().to_owned()).collect()
}
