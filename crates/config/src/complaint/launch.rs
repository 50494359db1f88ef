//! Diagnostics about the arguments of a launcher and about the operator's settings.

use crate::{
    complaint::echo, diagnostic::Diagnostics, env::Env, environment::Named, files::FileTrouble,
    grants::MissingGrant, place::Place, plan::Launcher, text::Text,
};

/// Diagnostics about the arguments of a launcher. Each refusal shows the setting with which an operator can allow it.
impl Diagnostics {
    pub(crate) fn empty_args(&mut self, at: Place, launcher: Launcher) {
        let launcher = launcher.as_str();
        self.error("C-01", at, format!("MCPConfigError: 'args' is empty: {launcher} has nothing to run"))
            .hint("remove `args` to run what `server` names");
    }

    pub(crate) fn nothing_to_run(&mut self, at: Place, launcher: Launcher, wants_tool: bool) {
        let what = match launcher {
            Launcher::Docker => "image",
            _ if wants_tool => "tool",
            _ => "package",
        };
        self.error(
            "C-01",
            at,
            format!("MCPConfigError: 'args' names no {what} for {} to run", launcher.as_str()),
        );
    }

    pub(crate) fn argument_without_value(&mut self, at: Place, launcher: Launcher, arg: &Text) {
        let name = launcher.as_str();
        self.error("C-02", at, format!("MCPConfigError: {name} needs a value after '{}'", arg.shown()));
    }

    pub(crate) fn refused_argument(
        &mut self,
        at: Place,
        launcher: Launcher,
        arg: &Text,
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
        let message = format!("MCPConfigError: {name} may not be given '{}'", arg.shown());
        let flag = arg.shown().split('=').next().unwrap_or_default();
        let grant = match may_have_value || arg.expose().contains('=') {
            _ if arg.is_secret() => String::new(),
            true => grant(&format!(
                "[grants.arguments] {name} = [\"{flag}\"], or [\"{flag}=*\"] if it takes a value"
            )),
            false => grant(&format!("[grants.arguments] {name} = [\"{flag}\"]")),
        };
        self.error("C-02", at, message).hint(format!("before what it runs, {name} takes {allowed}{grant}"));
    }

    pub(crate) fn refused_value(&mut self, at: Place, launcher: Launcher, flag: &str, expected: &str) {
        let name = launcher.as_str();
        self.error("C-02", at, format!("MCPConfigError: {name} may be given '{flag}' only with {expected}"))
            .hint(format!(
                "an operator can allow more in wharf.toml: [grants.arguments] {name} = [\"{flag}=VALUE\"]"
            ));
    }

    pub(crate) fn refused_package(&mut self, at: Place, launcher: Launcher, spec: &Text, env: &Env) {
        let what = match launcher {
            Launcher::Docker => "the name of an image",
            _ => "a package of the registry",
        };
        let message = format!("MCPConfigError: '{}' is not {what}", spec.shown());
        let name = launcher.as_str();
        let hint = format!("{name} may run what comes from a registry{}", package_grant(spec, env));
        self.error("C-03", at, message).hint(hint).missing_grant = missing_package(spec);
    }

    pub(crate) fn refused_interpreter(&mut self, at: Place, launcher: Launcher, tool: &Text, env: &Env) {
        let (name, shown) = (launcher.as_str(), tool.shown());
        let message = format!("MCPConfigError: {name} may not run '{shown}', which runs anything");
        let hint = format!("name the server's own package{}", package_grant(tool, env));
        self.error("C-03", at, message).hint(hint);
    }

    pub(crate) fn refused_program(&mut self, at: Place, launcher: Launcher, tool: &Text, env: &Env) {
        let (name, shown) = (launcher.as_str(), tool.shown());
        let message = format!(
            "MCPConfigError: '{shown}' is a program on PATH, which {name} would run instead of the package's"
        );
        let hint = format!("name a tool that only the package has{}", package_grant(tool, env));
        self.error("C-03", at, message).hint(hint);
    }

    pub(crate) fn docker_runs_only(&mut self, at: Place, found: &Text) {
        self.error("C-02", at, format!("MCPConfigError: docker may not be given '{}'", found.shown()))
            .hint("the first argument is `run`");
    }

    pub(crate) fn refused_mount(&mut self, at: Place, why: &str) {
        self.error("C-04", at, format!("MCPConfigError: docker may not mount this: {why}")).hint(
            "mount a path inside the folder of the agent file; an operator can allow more in wharf.toml: [grants.arguments] docker = [\"--volume=SOURCE:TARGET\"]",
        );
    }

    pub(crate) fn docker_file(&mut self, at: Place, flag: &str, trouble: &FileTrouble) {
        self.error("C-04", at, format!("MCPConfigError: what '{flag}' names {trouble}"))
            .hint("the path is relative to the agent file, and lies in its folder or below");
    }

    pub(crate) fn refused_environment(&mut self, at: Place, name: &Text, named: Named) {
        let (verb, place) = match named {
            Named::Entry => ("set", "env"),
            Named::EnvFile => ("set", "envFile"),
            Named::InheritEnv => ("pass on", "inherit_env"),
        };
        let upper = name.expose().to_ascii_uppercase();
        let instead = match () {
            () if upper == "MCP_CONFIG" => "write `config:`, which becomes MCP_CONFIG",
            () if upper.ends_with("_PROXY") => "the operator's proxies are passed on as they are",
            () if matches!(upper.as_str(), "PATH" | "HOME" | "SHELL") => {
                "the operator's own is always passed on"
            }
            () => "it can make a launcher run something else",
        };
        let shown = name.shown();
        let grant = if name.is_secret() {
            String::new()
        } else {
            grant(&format!("[grants] environment = [\"{shown}\"]"))
        };
        self.error("C-05", at, format!("MCPConfigError: '{place}' may not {verb} '{shown}'"))
            .hint(format!("{instead}{grant}"));
    }

    pub(crate) fn nothing_to_inherit(&mut self, at: Place, name: &str) {
        self.warning("C-05", at, format!("'inherit_env' names '{name}', which is not set"));
    }
}

/// Returns the part of a hint that shows how an operator can allow the argument.
fn grant(line: &str) -> String {
    format!("; an operator can allow more in wharf.toml: {line}")
}

fn package_grant(spec: &Text, env: &Env) -> String {
    missing_package(spec).map_or_else(String::new, |missing| {
        format!("; an operator can allow it in {}: {}", env.settings_file(), env.grants.line_with(&missing))
    })
}

/// Returns the missing grant for a package, or `None` if its name comes from a variable and must not be shown.
fn missing_package(spec: &Text) -> Option<MissingGrant> {
    (!spec.is_secret()).then(|| MissingGrant::Package(spec.shown().to_owned()))
}

/// Diagnostics about the operator's settings.
impl Diagnostics {
    pub(crate) fn grant_not_absolute(&mut self, at: Place, key: &str, path: &str) {
        self.error("S-01", at, format!("ConfigError: '{path}' is not an absolute path")).hint(match key {
            "commands" => "a granted command is exactly one program, so its whole path is written",
            _ => "what is allowed is exactly this, so its whole path is written",
        });
    }

    pub(crate) fn no_collector(&mut self, at: Place) {
        let message = "ConfigError: 'endpoint' is not an address with http:// or https://";
        self.error("S-03", at, message.to_owned())
            .hint("traces go to a collector's HTTP port, for example http://127.0.0.1:4318");
    }

    pub(crate) fn no_address(&mut self, at: Place, address: &str) {
        self.error("S-04", at, format!("ConfigError: '{}' is not a host and a port", echo(address)))
            .hint("for example `listen = \"127.0.0.1:7373\"`; port 0 takes any that is free");
    }

    pub(crate) fn no_database(&mut self, at: Place) {
        self.error("S-04", at, "ConfigError: 'database' is not the address of a database")
            .hint("write `sqlite:/path/to/file`, `postgres://user@host/name`, or `${NAME}` for a variable that holds one");
    }

    pub(crate) fn database_not_absolute(&mut self, at: Place) {
        self.error("S-04", at, "ConfigError: the path of the database is not absolute")
            .hint("another path would be another file wherever wharf is started");
    }

    pub(crate) fn password_in_the_open(&mut self, at: Place) {
        self.error("S-04", at, "ConfigError: the password of the database must not stand in this file").hint(
            "set PGPASSWORD, or write `database = \"${NAME}\"` for a variable that holds the whole address",
        );
    }

    pub(crate) fn token_without_role(&mut self, at: Place, name: &str, roles: &[&str]) {
        self.error("S-02", at, format!("ConfigError: the token '{}' has no role", echo(name)))
            .hint(format!("write `role`: one of {}", roles.join(", ")));
    }

    pub(crate) fn token_name_reserved(&mut self, at: Place, name: &str) {
        self.error("S-02", at, format!("ConfigError: no token may be called '{}'", echo(name)))
            .hint("that is what wharf itself calls somebody who comes in; choose another name");
    }

    pub(crate) fn token_in_the_open(&mut self, at: Place, name: &str) {
        self.error(
            "S-02",
            at,
            format!("ConfigError: the token '{}' must not stand in this file", echo(name)),
        )
        .hint("write `value = \"${NAME}\"` for a variable, or `file = \"/path\"`");
    }

    pub(crate) fn token_file_not_absolute(&mut self, at: Place, path: &str) {
        self.error("S-02", at, format!("ConfigError: '{}' is not an absolute path", echo(path)))
            .hint("a token's file is found from anywhere only by its whole path");
    }

    pub(crate) fn token_is_kept_once(&mut self, at: Place, name: &str) {
        let message =
            format!("ConfigError: the token '{}' needs exactly one of 'value' and 'file'", echo(name));
        self.error("S-02", at, message);
    }
}
