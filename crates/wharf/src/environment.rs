//! The environment of the process: variables, current directory, home, and the paths derived from them.
//!
//! No other module reads them. All others receive what they may know, configuration as an [`Env`].

#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]

pub(crate) use crate::agent_input::read as read_agent_file;
use crate::{
    agent_input,
    running_gateway::{self, RunningGateway},
    state_folder, telemetry,
    tool_cache::ToolCache,
};
use std::{
    collections::BTreeMap,
    env, io,
    num::NonZero,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};
use wharf_config::find_program;
use wharf_config::{
    DatabaseLocation, Diagnostics, Env, FileError, Folder, Grants, LocatedValue, LockUse, MAX_FILE_BYTES,
    ServerSettings, Settings, TelemetrySettings, closest, load_settings, parse_env_file, read_regular,
};
use wharf_store::Location;

/// Default listen address of the gateway.
const DEFAULT_ADDRESS: &str = "127.0.0.1:7373";

/// The environment that the process was started with.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) folder: PathBuf,
    pub(crate) home: Option<PathBuf>,
    /// Temporary folder that replaces an unwritable state folder.
    fallback: Option<PathBuf>,
    /// How to use a lock file beside the agent file.
    pub(crate) lock: LockUse,
    /// Whether missing variables get made-up values, because no real server is started with them.
    assumes_variables: bool,
}

/// The gateway's token, or the file that contains it.
#[derive(Debug)]
pub(crate) enum Token {
    /// The token itself, set by the operator.
    Set(String),
    /// The file that contains the token.
    File(PathBuf),
}

impl Environment {
    /// Reads the environment. Skips variables that are not UTF-8, because no configuration could name them.
    pub(crate) fn from_process() -> io::Result<Environment> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Ok(Environment {
            variables: env::vars_os().filter_map(text).collect(),
            folder: env::current_dir()?,
            home: env::home_dir().filter(|it| it.is_absolute()),
            fallback: None,
            lock: LockUse::Enforce,
            assumes_variables: false,
        })
    }

    /// Adds the variables of `.env` in the state folder, which hold the keys of models. Variables of the process win. The
    /// error is for the user.
    pub(crate) fn add_state_variables(&mut self) -> Result<(), String> {
        let Some(path) = self.state().map(|it| it.join(".env")) else { return Ok(()) };
        let shown = path.display();
        let bytes = match read_regular(&path, MAX_FILE_BYTES) {
            Ok(bytes) => bytes,
            Err(FileError::Missing) => return Ok(()),
            Err(error) => return Err(format!("'{shown}' {error}")),
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let is_open = |it: std::fs::Metadata| it.permissions().mode() & 0o077 != 0;
            if path.metadata().is_ok_and(is_open) {
                return Err(format!("'{shown}' can be read by others\nhelp: `chmod 600 '{shown}'`"));
            }
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("'{shown}' is not UTF-8"))?;
        let found = parse_env_file(&text).map_err(|why| format!("'{shown}' cannot be read: {why}"))?;
        for (name, value) in found {
            self.variables.entry(name).or_insert(value);
        }
        Ok(())
    }

    /// Returns the environment of a command that starts nothing, such as a replay. Missing variables get made-up values,
    /// because such a command needs no keys.
    pub(crate) fn for_replay(&self, is_replay: bool) -> Environment {
        Environment { assumes_variables: is_replay, ..self.clone() }
    }

    /// Builds the environment for lowering the agent file at this path.
    pub(crate) fn env_for(&self, file: &Path, grants: Grants) -> Env {
        let absolute = self.folder.join(file);
        let folder = absolute.parent().map_or_else(|| self.folder.clone(), Path::to_owned);
        let folder = folder.canonicalize().unwrap_or(folder);
        Env {
            file: agent_input::display_name(file),
            files: Arc::new(Folder::new(&folder)),
            folder,
            home: self.home.clone(),
            variables: self.variables.clone(),
            grants,
            lock: self.lock,
            assumes_variables: self.assumes_variables,
            ..Env::bare()
        }
    }

    /// Loads the operator's settings: the named file, otherwise wharf.toml in the state folder, otherwise the
    /// defaults.
    pub(crate) fn settings(&self, named: Option<&Path>) -> Result<Settings, Diagnostics> {
        let Some(path) = self.settings_file(named) else {
            return Ok(Settings::default());
        };
        // Messages about a missing grant name this file, even if it does not exist yet.
        let with_file = |mut settings: Settings| {
            settings.grants.file = Some(self.folder.join(&path));
            settings
        };
        let shown = path.display().to_string();
        let bytes = match read_regular(&path, MAX_FILE_BYTES) {
            Ok(bytes) => bytes,
            Err(FileError::Missing) if named.is_none() => return Ok(with_file(Settings::default())),
            Err(trouble) => {
                return Err(Diagnostics::unreadable(
                    &shown,
                    format!("ConfigError: '{shown}' {trouble}"),
                    None,
                ));
            }
        };
        let (settings, diagnostics) = load_settings(bytes, &shown);
        settings.map(with_file).ok_or(diagnostics)
    }

    /// The path of the settings file, whether or not it exists.
    fn settings_file(&self, named: Option<&Path>) -> Option<PathBuf> {
        named.map(Path::to_owned).or_else(|| self.state().map(|it| it.join("wharf.toml")))
    }

    /// The state folder: `$WHARF_HOME`, or the platform's default data folder.
    fn state(&self) -> Option<PathBuf> {
        let named = |name: &str| self.variables.get(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        let below_home = |path: &str| self.home.as_ref().map(|it| it.join(path));
        named("WHARF_HOME").or_else(|| {
            if cfg!(target_os = "macos") {
                below_home("Library/Application Support/wharf")
            } else if cfg!(windows) {
                named("APPDATA").map(|it| it.join("wharf"))
            } else {
                named("XDG_DATA_HOME")
                    .filter(|it| it.is_absolute())
                    .map(|it| it.join("wharf"))
                    .or_else(|| below_home(".local/share/wharf"))
            }
        })
    }

    /// Switches to a temporary folder if the state folder is not writable, as in a container with a read-only disk.
    /// Returns a warning in that case.
    pub(crate) fn find_writable_state(&mut self) -> Option<String> {
        let folder = self.folder.join(self.state()?);
        let error = state_folder::check_writable(&folder).err()?;
        let fallback = state_folder::make_fallback_folder(&env::temp_dir()).ok()?;
        let warning = format!(
            "warning: `{}` is not writable ({error}); state goes to `{}`, which a restart may remove\n\
             help: set WHARF_HOME to a writable folder",
            folder.display(),
            fallback.display()
        );
        self.fallback = Some(fallback);
        Some(warning)
    }

    /// The file with the lines that were typed in `wharf chat`.
    pub(crate) fn chat_history(&self) -> Option<PathBuf> {
        self.writable_state().map(|it| self.folder.join(it).join("chat_history"))
    }

    /// The folder to write to: the state folder or its temporary replacement.
    fn writable_state(&self) -> Option<PathBuf> {
        self.fallback.clone().or_else(|| self.state())
    }

    /// Makes the state folder private, if it exists. Skips a folder that is or contains the current folder or the
    /// user's home, because other programs use it too.
    pub(crate) fn protect_state(&self) {
        let Some(folder) = self.state().and_then(|it| self.folder.join(it).canonicalize().ok()) else {
            return;
        };
        let others = [Some(&self.folder), self.home.as_ref()].into_iter().flatten();
        let is_shared = others.filter_map(|it| it.canonicalize().ok()).any(|it| it.starts_with(&folder));
        if !is_shared {
            state_folder::protect(&folder);
        }
    }

    /// The folder for unpacked bundles.
    pub(crate) fn bundles(&self) -> Option<PathBuf> {
        self.state().map(|it| self.folder.join(it).join("bundles"))
    }

    /// The folder for OAuth credentials of remote servers.
    pub(crate) fn credentials(&self) -> Option<PathBuf> {
        self.writable_state().map(|it| it.join("credentials"))
    }

    /// The database: from the command line, otherwise `WHARF_DATABASE`, otherwise the settings, otherwise the
    /// default, if there is a state folder.
    pub(crate) fn database(
        &self,
        typed: Option<&str>,
        settings: &ServerSettings,
    ) -> Result<Option<Location>, String> {
        let default_database =
            || self.writable_state().map(|it| Location::Sqlite(self.folder.join(it).join("wharf.db")));
        let parsed = |address: &str| Location::parse(address).map_err(|error| error.to_string());
        let hinted =
            |address: &str| parsed(address).map(Some).map_err(|error| error + &address_hint(address));
        if let Some(address) = typed {
            return hinted(address);
        }
        if let Some(address) = self.variable("WHARF_DATABASE") {
            return hinted(address).map_err(|error| format!("WHARF_DATABASE: {error}"));
        }
        let Some(LocatedValue { value, at }) = &settings.database else { return Ok(default_database()) };
        let found = match value {
            DatabaseLocation::Address(address) => parsed(address),
            DatabaseLocation::Variable(name) => match self.variable(name) {
                Some(address) => parsed(address).map_err(|error| format!("{name}: {error}")),
                None => Err(format!("`{name}`, which holds the address of the database, is not set")),
            },
        };
        found.map(Some).map_err(|error| format!("{error}\n --> {at}"))
    }

    /// The listen address, with the same precedence as the database, and its position in the settings file if it is
    /// from there.
    pub(crate) fn listen(&self, typed: Option<&str>, settings: &ServerSettings) -> (String, Option<String>) {
        let given = typed.or_else(|| self.variable("WHARF_LISTEN"));
        match (given, &settings.listen) {
            (Some(given), _) => (given.to_owned(), None),
            (None, Some(LocatedValue { value, at })) => (value.clone(), Some(at.clone())),
            (None, None) => (DEFAULT_ADDRESS.to_owned(), None),
        }
    }

    /// The number of threads that serve calls: as configured, or one for each core.
    pub(crate) fn threads(&self, settings: &ServerSettings) -> usize {
        settings.threads.unwrap_or_else(|| self.cores())
    }

    /// The number of cores.
    pub(crate) fn cores(&self) -> usize {
        thread::available_parallelism().map_or(1, NonZero::get)
    }

    /// Returns a variable that is set and not empty.
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// Checks whether there is a desktop, on which a browser could open.
    pub(crate) fn has_desktop(&self) -> bool {
        self.variable("DISPLAY").or_else(|| self.variable("WAYLAND_DISPLAY")).is_some()
    }

    /// Finds the gateway that runs on the state folder.
    pub(crate) fn running_gateway(&self) -> Option<RunningGateway> {
        running_gateway::find(&self.folder.join(self.writable_state()?))
    }

    /// The state folder, if it is writable: for the spool of a PostgreSQL journal and the name of the owner of runs.
    pub(crate) fn spool(&self) -> Option<PathBuf> {
        self.writable_state().map(|it| self.folder.join(it))
    }

    /// The path of the key that encrypts the secrets of registered sources.
    pub(crate) fn secret_key(&self) -> Option<PathBuf> {
        self.writable_state().map(|it| self.folder.join(it).join("secrets.key"))
    }

    /// The operator's token: from `WHARF_TOKEN`, otherwise from the token file.
    pub(crate) fn token(&self) -> Option<Token> {
        let set = self.variables.get("WHARF_TOKEN").filter(|it| !it.is_empty()).cloned().map(Token::Set);
        // A token file in the state folder counts even if the folder is not writable.
        let token = |it: PathBuf| self.folder.join(it).join("token");
        let given = || self.state().map(token).filter(|it| it.exists());
        set.or_else(|| given().or_else(|| self.writable_state().map(token)).map(Token::File))
    }

    /// The configuration of trace export, if enabled.
    pub(crate) fn telemetry(
        &self,
        settings: &TelemetrySettings,
    ) -> Result<Option<telemetry::TelemetryConfig>, String> {
        telemetry::TelemetryConfig::resolve(settings, |name| self.variables.get(name).cloned())
    }

    /// The cache of the tool list of an agent file. There is none for an agent file on standard input.
    pub(crate) fn tool_cache(&self, file: &Path) -> Option<ToolCache> {
        if agent_input::is_standard_input(file) {
            return None;
        }
        let file = self.folder.join(file);
        let file = file.canonicalize().unwrap_or(file);
        self.writable_state().map(|it| ToolCache::new(&it.join("catalogs"), &file))
    }

    /// The folder for temporary folders of servers.
    pub(crate) fn scratch(&self) -> PathBuf {
        // Not in a world-writable folder: npm searches parent folders for packages and could load another user's.
        self.writable_state().map_or_else(env::temp_dir, |it| it.join("scratch"))
    }

    /// The program that supervises the processes of servers: this executable. On Linux it is found even if its file
    /// was replaced.
    pub(crate) fn supervisor(&self) -> Option<PathBuf> {
        let itself = PathBuf::from("/proc/self/exe");
        if itself.exists() { Some(itself) } else { env::current_exe().ok() }
    }

    /// The path of this executable, for configurations that start it.
    pub(crate) fn program(&self) -> Option<PathBuf> {
        env::current_exe().ok()
    }

    /// Finds a program on `PATH` and returns its absolute path.
    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        find_program(name, self.variables.get("PATH")?)
    }
}

/// The command to supervise, if this process was started as a supervisor.
#[cfg(target_os = "linux")]
pub(crate) fn supervised_command() -> Option<impl Iterator<Item = std::ffi::OsString>> {
    let mut words = env::args_os().skip(1);
    (words.next()? == wharf_mcp::stdio::SUPERVISE).then_some(words)
}

/// The command line of this process, with the name of the program.
pub(crate) fn command_line() -> Vec<std::ffi::OsString> {
    env::args_os().collect()
}

/// The maximum size of the results, in bytes, if this process was started to run a query.
#[cfg(unix)]
pub(crate) fn query_limit() -> Option<usize> {
    let mut words = env::args().skip(1);
    (words.next()? == wharf_runtime::result_handle::QUERY).then(|| words.next()?.parse().ok())?
}

/// Returns whether `--json` was given. Used when parsing the command line has failed.
pub(crate) fn is_json_wanted() -> bool {
    env::args_os().any(|it| it == "--json")
}

/// Suggests the intended form of an invalid database address. Repeats at most its scheme or a plain file name,
/// because the rest may contain a password.
fn address_hint(address: &str) -> String {
    const SCHEMES: [&str; 3] = ["sqlite", "postgres", "postgresql"];
    let scheme = match address.split_once(':') {
        Some((scheme, _)) if !SCHEMES.contains(&scheme) => scheme,
        None if !address.is_empty() && !address.contains(['@', '/']) => {
            return format!("\nhelp: a file of this name is `sqlite:{address}`");
        }
        _ => return String::new(),
    };
    let meant = match closest(scheme, SCHEMES.into_iter()) {
        Some("sqlite") => "sqlite:PATH",
        Some(_) => "postgres://user@host/name",
        None => return String::new(),
    };
    format!("\nhelp: `{scheme}:` is not known; did you mean `{meant}`?")
}

/// Today's date in the local time zone, as YYYY-MM-DD.
pub(crate) fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

/// Returns whether `NO_COLOR` is set.
pub(crate) fn no_colour() -> bool {
    env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
}
