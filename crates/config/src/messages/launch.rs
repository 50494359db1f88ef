//! Diagnostics about the arguments of a launcher and about the operator's settings.

use crate::{
    child_env::DeclaredIn, diagnostic::Diagnostics, echo::echo, env::Env, files::FileError,
    grants::MissingGrant, masked_string::MaskedString, place::Place, plan::Launcher,
};

/// Diagnostics about the arguments of a launcher. Each refusal shows the setting with which an operator can allow it.
impl Diagnostics {
    pub(crate) fn empty_args(&mut self, at: Place, launcher: Launcher) {
        let launcher = launcher.as_str();
        self.error("C-01", at, format!("MCPConfigError: 'args' is empty: {launcher} has nothing to run"))
            .hint("remove `args` to run the package or image in `server`");
    }

    pub(crate) fn missing_run_target(&mut self, at: Place, launcher: Launcher, needs_tool: bool) {
        let what = match launcher {
            Launcher::Docker => "image",
            _ if needs_tool => "tool",
            _ => "package",
        };
        self.error(
            "C-01",
            at,
            format!("MCPConfigError: 'args' is missing the {what} for {} to run", launcher.as_str()),
        );
    }

    pub(crate) fn missing_argument_value(&mut self, at: Place, launcher: Launcher, arg: &MaskedString) {
        let name = launcher.as_str();
        self.error("C-02", at, format!("MCPConfigError: {name} needs a value after '{}'", arg.shown()));
    }

    pub(crate) fn refused_argument(
        &mut self,
        at: Place,
        launcher: Launcher,
        arg: &MaskedString,
        may_have_value: bool,
    ) {
        let allowed = match launcher {
            Launcher::Npx => "-y, -q, -p PACKAGE, --prefer-offline, --offline",
            Launcher::Uvx => {
                "--from, --with, --python, --prerelease, -q, --offline, --isolated, --refresh, --no-progress"
            }
            Launcher::Docker => {
                "-i, --rm, -e, --env-file, --init, --network=none, --pull, --platform, --user, --read-only, -v, --mount"
            }
        };
        let name = launcher.as_str();
        let message = format!("MCPConfigError: {name} argument not allowed: '{}'", arg.shown());
        let flag = arg.shown().split('=').next().unwrap_or_default();
        let grant_hint = match may_have_value || arg.expose().contains('=') {
            _ if arg.is_secret() => String::new(),
            true => grant_hint(&format!(
                "[grants.arguments] {name} = [\"{flag}\"], or [\"{flag}=*\"] if it takes a value"
            )),
            false => grant_hint(&format!("[grants.arguments] {name} = [\"{flag}\"]")),
        };
        self.error("C-02", at, message).hint(format!("allowed {name} options: {allowed}{grant_hint}"));
    }

    pub(crate) fn refused_value(&mut self, at: Place, launcher: Launcher, flag: &str, expected: &str) {
        let name = launcher.as_str();
        self.error("C-02", at, format!("MCPConfigError: {name} argument '{flag}' must be {expected}")).hint(
            format!(
                "an operator can allow more in wharf.toml: [grants.arguments] {name} = [\"{flag}=VALUE\"]"
            ),
        );
    }

    pub(crate) fn refused_package(&mut self, at: Place, launcher: Launcher, spec: &MaskedString, env: &Env) {
        let what = match launcher {
            Launcher::Docker => "an image name",
            _ => "a registry package",
        };
        let message = format!("MCPConfigError: '{}' is not {what}", spec.shown());
        let name = launcher.as_str();
        let hint = format!(
            "{name} may run only packages and images from a registry{}",
            package_grant_hint(spec, env)
        );
        self.error("C-03", at, message).hint(hint).missing_grant = missing_package(spec);
    }

    pub(crate) fn refused_interpreter(
        &mut self,
        at: Place,
        launcher: Launcher,
        tool: &MaskedString,
        env: &Env,
    ) {
        let (name, shown) = (launcher.as_str(), tool.shown());
        let message = format!("MCPConfigError: {name} may not run '{shown}', which can run arbitrary code");
        let hint = format!("use the server's own package{}", package_grant_hint(tool, env));
        self.error("C-03", at, message).hint(hint);
    }

    pub(crate) fn refused_program(&mut self, at: Place, launcher: Launcher, tool: &MaskedString, env: &Env) {
        let (name, shown) = (launcher.as_str(), tool.shown());
        let message = format!(
            "MCPConfigError: '{shown}' is a program on PATH, which {name} would run instead of the package's tool"
        );
        let hint = format!("use a tool name that only the package has{}", package_grant_hint(tool, env));
        self.error("C-03", at, message).hint(hint);
    }

    pub(crate) fn docker_requires_run(&mut self, at: Place, found: &MaskedString) {
        self.error("C-02", at, format!("MCPConfigError: docker argument not allowed: '{}'", found.shown()))
            .hint("the first argument must be `run`");
    }

    pub(crate) fn refused_mount(&mut self, at: Place, why: &str) {
        self.error("C-04", at, format!("MCPConfigError: docker mount not allowed: {why}")).hint(
            "mount a path inside the folder of the agent file; an operator can allow more in wharf.toml: [grants.arguments] docker = [\"--volume=SOURCE:TARGET\"]",
        );
    }

    pub(crate) fn docker_path_error(&mut self, at: Place, flag: &str, error: &FileError) {
        self.error("C-04", at, format!("MCPConfigError: the path of '{flag}' {error}"))
            .hint("the path is relative to the agent file and must be inside its folder");
    }

    pub(crate) fn refused_environment(&mut self, at: Place, name: &MaskedString, declared_in: DeclaredIn) {
        let (verb, place) = match declared_in {
            DeclaredIn::Entry => ("set", "env"),
            DeclaredIn::EnvFile => ("set", "envFile"),
            DeclaredIn::InheritEnv => ("pass on", "inherit_env"),
        };
        let upper = name.expose().to_ascii_uppercase();
        let instead = match () {
            () if upper == "MCP_CONFIG" => "write `config:`, which becomes MCP_CONFIG",
            () if upper.ends_with("_PROXY") => "the operator's proxy settings are passed on unchanged",
            () if matches!(upper.as_str(), "PATH" | "HOME" | "SHELL") => {
                "the operator's value is always passed on"
            }
            () => "it can change what a launcher runs",
        };
        let shown = name.shown();
        let grant_hint = if name.is_secret() {
            String::new()
        } else {
            grant_hint(&format!("[grants] environment = [\"{shown}\"]"))
        };
        self.error("C-05", at, format!("MCPConfigError: '{place}' may not {verb} '{shown}'"))
            .hint(format!("{instead}{grant_hint}"));
    }

    pub(crate) fn unset_inherited_variable(&mut self, at: Place, name: &str) {
        self.warning("C-05", at, format!("'inherit_env' names '{name}', which is not set"));
    }
}

/// Returns the part of a hint that shows how an operator can allow the argument.
fn grant_hint(line: &str) -> String {
    format!("; an operator can allow more in wharf.toml: {line}")
}

fn package_grant_hint(spec: &MaskedString, env: &Env) -> String {
    missing_package(spec).map_or_else(String::new, |missing| {
        format!(
            "; an operator can allow it in {}: {}",
            env.settings_file(),
            env.grants.toml_line_with(&missing)
        )
    })
}

/// Returns the missing grant for a package, or `None` if its name comes from a variable and must not be shown.
fn missing_package(spec: &MaskedString) -> Option<MissingGrant> {
    (!spec.is_secret()).then(|| MissingGrant::Package(spec.shown().to_owned()))
}

/// Diagnostics about the operator's settings.
impl Diagnostics {
    pub(crate) fn grant_not_absolute(&mut self, at: Place, key: &str, path: &str) {
        self.error("S-01", at, format!("ConfigError: '{path}' is not an absolute path")).hint(match key {
            "commands" => "write the absolute path of the program",
            _ => "write the absolute path",
        });
    }

    pub(crate) fn invalid_collector_url(&mut self, at: Place) {
        let message = "ConfigError: 'endpoint' is not an http:// or https:// URL";
        self.error("S-03", at, message.to_owned())
            .hint("write the URL of the collector's HTTP port, for example http://127.0.0.1:4318");
    }

    pub(crate) fn invalid_listen_address(&mut self, at: Place, address: &str) {
        self.error(
            "S-04",
            at,
            format!("ConfigError: '{}' is not an address of the form HOST:PORT", echo(address)),
        )
        .hint("for example `listen = \"127.0.0.1:7373\"`; port 0 selects a free port");
    }

    pub(crate) fn invalid_database_url(&mut self, at: Place) {
        self.error("S-04", at, "ConfigError: 'database' is not a database URL")
            .hint("write `sqlite:/path/to/file`, `postgres://user@host/name`, or `${NAME}` for a variable that holds one");
    }

    pub(crate) fn database_not_absolute(&mut self, at: Place) {
        self.error("S-04", at, "ConfigError: the database path is not absolute")
            .hint("a relative path would depend on the directory in which wharf is started");
    }

    pub(crate) fn plaintext_password(&mut self, at: Place) {
        self.error("S-04", at, "ConfigError: the database password must not be in this file").hint(
            "set PGPASSWORD, or write `database = \"${NAME}\"` for a variable that holds the whole URL",
        );
    }

    pub(crate) fn token_without_role(&mut self, at: Place, name: &str, roles: &[&str]) {
        self.error("S-02", at, format!("ConfigError: the token '{}' has no role", echo(name)))
            .hint(format!("write `role`: one of {}", roles.join(", ")));
    }

    pub(crate) fn token_name_reserved(&mut self, at: Place, name: &str) {
        self.error("S-02", at, format!("ConfigError: no token may be called '{}'", echo(name)))
            .hint("wharf uses this name itself; choose another name");
    }

    pub(crate) fn plaintext_token(&mut self, at: Place, name: &str) {
        self.error("S-02", at, format!("ConfigError: the token '{}' must not be in this file", echo(name)))
            .hint("write `value = \"${NAME}\"` for a variable, or `file = \"/path\"`");
    }

    pub(crate) fn token_file_not_absolute(&mut self, at: Place, path: &str) {
        self.error("S-02", at, format!("ConfigError: '{}' is not an absolute path", echo(path)))
            .hint("write the absolute path of the token file");
    }

    pub(crate) fn token_needs_value_or_file(&mut self, at: Place, name: &str) {
        let message =
            format!("ConfigError: the token '{}' needs exactly one of 'value' and 'file'", echo(name));
        self.error("S-02", at, message);
    }
}
