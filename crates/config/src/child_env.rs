//! Builds the environment of a child process: a few of the operator's variables plus the ones the entry asks for.
//! Nothing else is inherited.
//!
//! An agent file may not set names that make a launcher run something else, such as a search path, a preloaded
//! library, another registry or an interpreter's startup file.

use super::{
    diagnostic::Diagnostics,
    env::Env,
    env_file::Assignment,
    grants::Grants,
    mask,
    place::{Place, PlacedString},
    plan::{ChildEnv, EnvOrigin, EnvVar, Launcher, Program},
    read::StringPairs,
    server_config::ServerConfig,
};
use crate::{glob, masked_string::MaskedString};
use std::collections::BTreeSet;

/// Names of the operator's variables that every child inherits.
const ALWAYS_INHERITED: &[&str] =
    &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_*", "TZ", "TMPDIR"];

/// Names of the operator's variables that package runners need behind a corporate proxy.
const NETWORK_NAMES: &str = "\
    *_PROXY SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE";

/// Names that an agent file may not set. They match in any letter case.
const REFUSED_NAMES: &str = "\
    PATH HOME SHELL ENV BASH_ENV LD_* DYLD_* GLIBC_TUNABLES NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS \
    NODE_TLS_REJECT_UNAUTHORIZED NPM_CONFIG_* PYTHON* PIP_* UV_* DOCKER_* GIT_* XDG_CONFIG_HOME PERL5OPT \
    RUBYOPT JAVA_TOOL_OPTIONS SSL_CERT_* REQUESTS_CA_BUNDLE CURL_CA_BUNDLE XDG_* BASH_FUNC_* BASHOPTS \
    SHELLOPTS PS4 OPENSSL_* GCONV_PATH NODE_REPL_* NODE_COMPILE_CACHE MCP_CONFIG WHARF_*";

/// Exceptions from the refused names that are harmless.
const HARMLESS_NAMES: &str = "\
    PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE GIT_AUTHOR_* GIT_COMMITTER_*";

/// Location of a variable's name in the configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclaredIn {
    Entry,
    EnvFile,
    InheritEnv,
}

/// Environment settings of an entry.
pub(crate) struct EnvSettings<'a> {
    pub(crate) entry: StringPairs,
    /// Name of the env file, its assignments, and the place where the entry names it.
    pub(crate) env_file: Option<(&'a str, &'a [Assignment], Place)>,
    pub(crate) inherit: Vec<PlacedString>,
    pub(crate) config: Option<&'a ServerConfig>,
}

/// Builds the complete environment of a child. Later sources win: the operator, `inherit_env`, the env file, `env`,
/// then `MCP_CONFIG`.
pub(crate) fn build_child_env(
    program: &Program,
    env_settings: EnvSettings<'_>,
    env: &Env,
    diagnostics: &mut Diagnostics,
) -> ChildEnv {
    let mut child = ChildEnv::default();
    for (name, value) in &env.variables {
        if let Some(origin) = inherited_origin(name, program) {
            child.put(name, secret(value), origin);
        }
    }
    for name in &env_settings.inherit {
        inherit(&mut child, name, env, diagnostics);
    }
    if let Some((file, assignments, at)) = env_settings.env_file {
        for Assignment { name, value } in assignments {
            if is_permitted(&MaskedString::plain(name), DeclaredIn::EnvFile, at, env, diagnostics) {
                child.put(name, secret(value), EnvOrigin::EnvFile(file.to_owned()));
            }
        }
    }
    for (name, value) in env_settings.entry {
        if mask::is_secret_name(&name.value) {
            diagnostics.hide(value.at);
        }
        match () {
            () if name.value.is_empty() || name.value.contains(['=', '\0']) => {
                diagnostics.invalid_env_name(name.at, &name.value);
            }
            () if value.value.expose().contains('\0') => {
                diagnostics.nul_byte(value.at, "MCPConfigError", "env");
            }
            () if is_permitted(
                &MaskedString::plain(&name.value),
                DeclaredIn::Entry,
                name.at,
                env,
                diagnostics,
            ) =>
            {
                child.put(&name.value, value.value, EnvOrigin::Entry);
            }
            () => {}
        }
    }
    if let Some(config) = env_settings.config {
        let json = MaskedString::secret(config.value.to_string(), config.shown.to_string());
        child.put("MCP_CONFIG", json, EnvOrigin::Config);
    }
    child
}

/// Returns the names of the operator's variables that the entry could inherit but does not. Returns none for a
/// registered source, because a REST client must not learn which variables are set.
pub(crate) fn withheld(child: &ChildEnv, env: &Env) -> BTreeSet<String> {
    let is_known = !env.origin.is_registered();
    let names = env.variables.iter().filter(|(_, value)| is_known && !value.is_empty());
    let names = names.map(|(name, _)| name).filter(|it| !child.0.contains_key(*it));
    names.filter(|it| !is_refused(it, &env.grants)).cloned().collect()
}

fn inherit(child: &mut ChildEnv, name: &PlacedString, env: &Env, diagnostics: &mut Diagnostics) {
    let written = name.value.expose();
    match env.variables.get(written) {
        _ if written.is_empty() || written.contains(['=', '\0']) => {
            diagnostics.invalid_env_name(name.at, name.value.shown());
        }
        _ if !is_permitted(&name.value, DeclaredIn::InheritEnv, name.at, env, diagnostics) => {}
        Some(value) => child.put(written, secret(value), EnvOrigin::Inherited),
        None => diagnostics.unset_inherited_variable(name.at, name.value.shown()),
    }
}

/// Returns the reason why every such child inherits the operator's variable `name`, or `None` if it does not.
fn inherited_origin(name: &str, program: &Program) -> Option<EnvOrigin> {
    let own = match program {
        Program::Launcher(launcher @ Launcher::Npx) => Some(("NPM_CONFIG_*", *launcher)),
        Program::Launcher(launcher @ Launcher::Uvx) => Some(("UV_*", *launcher)),
        Program::Launcher(launcher @ Launcher::Docker) => Some(("DOCKER_*", *launcher)),
        Program::Granted(_) | Program::Interpreter(_) => None,
    };
    match own {
        _ if ALWAYS_INHERITED.iter().any(|it| glob::matches(it, name)) => Some(EnvOrigin::Always),
        _ if matches_any(NETWORK_NAMES, name) => Some(EnvOrigin::Network),
        Some((pattern, launcher)) if matches_any(pattern, name) => Some(EnvOrigin::Launcher(launcher)),
        _ => None,
    }
}

/// Returns whether only the operator may set `name`.
pub(crate) fn is_refused(name: &str, grants: &Grants) -> bool {
    let refused = matches_any(REFUSED_NAMES, name) && !matches_any(HARMLESS_NAMES, name)
        || matches_any("*_PROXY", name);
    refused && !grants.allows_environment(name)
}

fn is_permitted(
    text: &MaskedString,
    declared_in: DeclaredIn,
    at: Place,
    env: &Env,
    diagnostics: &mut Diagnostics,
) -> bool {
    let name = text.expose();
    let proxy = declared_in == DeclaredIn::InheritEnv && matches_any("*_PROXY", name);
    let is_permitted = proxy || !is_refused(name, &env.grants);
    if !is_permitted {
        diagnostics.refused_environment(at, text, declared_in);
    }
    is_permitted
}

fn matches_any(patterns: &str, name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    patterns.split(' ').any(|it| glob::matches(it, &name))
}

fn secret(value: &str) -> MaskedString {
    MaskedString::secret(value, "***")
}

impl ChildEnv {
    fn put(&mut self, name: &str, value: MaskedString, origin: EnvOrigin) {
        self.0.insert(name.to_owned(), EnvVar { value, origin });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_names_follow_the_rules() {
        let env = Env::bare();
        for (name, declared_in, expected) in [
            ("API_KEY", DeclaredIn::Entry, true),
            ("path", DeclaredIn::Entry, false),
            ("LD_PRELOAD", DeclaredIn::Entry, false),
            ("DYLD_INSERT_LIBRARIES", DeclaredIn::EnvFile, false),
            ("npm_config_registry", DeclaredIn::Entry, false),
            ("NODE_OPTIONS", DeclaredIn::InheritEnv, false),
            ("PYTHONPATH", DeclaredIn::Entry, false),
            ("PYTHONUNBUFFERED", DeclaredIn::Entry, true),
            ("GIT_SSH_COMMAND", DeclaredIn::Entry, false),
            ("GIT_AUTHOR_NAME", DeclaredIn::Entry, true),
            ("https_proxy", DeclaredIn::Entry, false),
            ("HTTPS_PROXY", DeclaredIn::EnvFile, false),
            ("https_proxy", DeclaredIn::InheritEnv, true),
            ("MCP_CONFIG", DeclaredIn::Entry, false),
            ("WHARF_TOKEN", DeclaredIn::InheritEnv, false),
            ("ENVIRONMENT", DeclaredIn::Entry, true),
        ] {
            let mut diagnostics = Diagnostics::new("agent.yaml", "");
            assert_eq!(
                is_permitted(
                    &MaskedString::plain(name),
                    declared_in,
                    Place::default(),
                    &env,
                    &mut diagnostics
                ),
                expected,
                "{name}"
            );
            assert_eq!(diagnostics.has_errors(), !expected, "{name}");
        }
    }

    #[test]
    fn registered_source_does_not_learn_variable_names() {
        let mut env = Env::bare();
        for (name, value) in [("API_KEY", "x"), ("EMPTY", ""), ("PASSED", "x"), ("LD_PRELOAD", "x")] {
            env.variables.insert(name.to_owned(), value.to_owned());
        }
        let mut child = ChildEnv::default();
        child.put("PASSED", secret("x"), EnvOrigin::Inherited);
        assert!(withheld(&child, &env).iter().eq(["API_KEY"]));
        let registered = Env { origin: crate::Origin::Rest, ..env };
        assert!(withheld(&child, &registered).is_empty());
    }
}
