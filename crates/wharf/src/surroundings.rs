//! The world around the program: its environment, the current directory, the files it is told to read.
//!
//! The only place that looks at any of them. Everything below gets what it may know as an [`Env`].

#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]

pub(crate) use crate::agent_input::read as read_agent_file;
use crate::{
    agent_input,
    commands::Token,
    remembered::Remembered,
    running_gateway::{self, RunningGateway},
    state_folder, telemetry,
};
use std::{
    collections::BTreeMap,
    env, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use wharf_runtime::config::{
    DatabasePlace, Diagnostics, Env, FileTrouble, Folder, Grants, LONGEST_FILE, ServerSettings, Settings,
    TelemetrySettings, Written, closest, load_settings, read_regular,
};
use wharf_runtime::upstream::find_program;
use wharf_store::Location;

/// Where the gateway listens if nobody says otherwise.
const USUAL_ADDRESS: &str = "127.0.0.1:7373";

/// What the process was started with.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) folder: PathBuf,
    pub(crate) home: Option<PathBuf>,
    /// The folder used instead of the state folder if that cannot be written to.
    stand_in: Option<PathBuf>,
}

impl Surroundings {
    /// Looks around. Variables that are not text are left out; nothing could name them.
    pub(crate) fn look() -> io::Result<Surroundings> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Ok(Surroundings {
            variables: env::vars_os().filter_map(text).collect(),
            folder: env::current_dir()?,
            home: env::home_dir().filter(|it| it.is_absolute()),
            stand_in: None,
        })
    }

    /// What an agent file at this path may know.
    pub(crate) fn env_for(&self, file: &Path, grants: Grants) -> Env {
        let absolute = self.folder.join(file);
        let folder = absolute.parent().map_or_else(|| self.folder.clone(), Path::to_owned);
        let folder = folder.canonicalize().unwrap_or(folder);
        Env {
            file: agent_input::shown(file),
            files: Arc::new(Folder::new(&folder)),
            folder,
            home: self.home.clone(),
            variables: self.variables.clone(),
            grants,
            ..Env::bare()
        }
    }

    /// The operator's settings: the file that is named, else wharf.toml in the state directory, else none.
    pub(crate) fn settings(&self, named: Option<&Path>) -> Result<Settings, Diagnostics> {
        let Some(path) = self.settings_file(named) else {
            return Ok(Settings::default());
        };
        // Whoever lacks a grant is told where it belongs, also where there is no such file yet.
        let filed = |mut settings: Settings| {
            settings.grants.file = Some(self.folder.join(&path));
            settings
        };
        let shown = path.display().to_string();
        let bytes = match read_regular(&path, LONGEST_FILE) {
            Ok(bytes) => bytes,
            Err(FileTrouble::Missing) if named.is_none() => return Ok(filed(Settings::default())),
            Err(trouble) => {
                return Err(Diagnostics::unreadable(
                    &shown,
                    format!("ConfigError: '{shown}' {trouble}"),
                    None,
                ));
            }
        };
        let (settings, diagnostics) = load_settings(bytes, &shown);
        settings.map(filed).ok_or(diagnostics)
    }

    /// Where the operator's settings are kept, whether or not they are there.
    fn settings_file(&self, named: Option<&Path>) -> Option<PathBuf> {
        named.map(Path::to_owned).or_else(|| self.state().map(|it| it.join("wharf.toml")))
    }

    /// Where wharf keeps what it must remember: `$WHARF_HOME`, or the platform's place for such things.
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

    /// Goes over to a temporary folder if the state folder cannot be written to, as in a container whose disk is read-only.
    /// Says so in a warning.
    pub(crate) fn find_writable_state(&mut self) -> Option<String> {
        let folder = self.folder.join(self.state()?);
        let error = state_folder::check_writable(&folder).err()?;
        let stand_in = state_folder::make_stand_in(&env::temp_dir()).ok()?;
        let warning = format!(
            "warning: `{}` cannot be written to ({error}); what is to be kept goes to `{}`, which may be gone after a restart\n\
             help: set WHARF_HOME to a folder that can be written to",
            folder.display(),
            stand_in.display()
        );
        self.stand_in = Some(stand_in);
        Some(warning)
    }

    /// The folder that is written to: the state folder, or the one that stands in for it.
    fn writable_state(&self) -> Option<PathBuf> {
        self.stand_in.clone().or_else(|| self.state())
    }

    /// Keeps other users out of the state folder, if it exists. One that is or holds the current folder or the user's home
    /// has other purposes too and stays as it is.
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

    /// Where what remote servers granted is kept.
    pub(crate) fn credentials(&self) -> Option<PathBuf> {
        self.writable_state().map(|it| it.join("credentials"))
    }

    /// Where what is to be remembered of sources, calls and todos is: what was typed, else what the environment says, else
    /// the operator's file, else the usual place, if there is one.
    pub(crate) fn database(
        &self,
        typed: Option<&str>,
        settings: &ServerSettings,
    ) -> Result<Option<Location>, String> {
        let usual =
            || self.writable_state().map(|it| Location::Sqlite(self.folder.join(it).join("wharf.db")));
        let parsed = |address: &str| Location::parse(address).map_err(|error| error.to_string());
        let hinted = |address: &str| parsed(address).map(Some).map_err(|error| error + &hint(address));
        if let Some(address) = typed {
            return hinted(address);
        }
        if let Some(address) = self.variable("WHARF_DATABASE") {
            return hinted(address).map_err(|error| format!("WHARF_DATABASE: {error}"));
        }
        let Some(Written { value, at }) = &settings.database else { return Ok(usual()) };
        let found = match value {
            DatabasePlace::Address(address) => parsed(address),
            DatabasePlace::Variable(name) => match self.variable(name) {
                Some(address) => parsed(address).map_err(|error| format!("{name}: {error}")),
                None => Err(format!("`{name}`, which holds the address of the database, is not set")),
            },
        };
        found.map(Some).map_err(|error| format!("{error}\n --> {at}"))
    }

    /// Where the gateway listens, in the same order, and where that stands if it stands in the operator's file.
    pub(crate) fn listen(&self, typed: Option<&str>, settings: &ServerSettings) -> (String, Option<String>) {
        let said = typed.or_else(|| self.variable("WHARF_LISTEN"));
        match (said, &settings.listen) {
            (Some(said), _) => (said.to_owned(), None),
            (None, Some(Written { value, at })) => (value.clone(), Some(at.clone())),
            (None, None) => (USUAL_ADDRESS.to_owned(), None),
        }
    }

    /// A variable that is set, and not to nothing.
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// The gateway that runs on the state folder, if there is one.
    pub(crate) fn running_gateway(&self) -> Option<RunningGateway> {
        running_gateway::find(&self.folder.join(self.writable_state()?))
    }

    /// Where calls wait while the database cannot be reached.
    pub(crate) fn spool(&self) -> Option<PathBuf> {
        self.writable_state().map(|it| self.folder.join(it))
    }

    /// The key that the secrets of registered sources are sealed with.
    pub(crate) fn secret_key(&self) -> Option<PathBuf> {
        self.writable_state().map(|it| self.folder.join(it).join("secrets.key"))
    }

    /// What opens the door of the gateway.
    pub(crate) fn token(&self) -> Option<Token> {
        let set = self.variables.get("WHARF_TOKEN").filter(|it| !it.is_empty()).cloned().map(Token::Set);
        // A token that the operator has put beside wharf.toml counts, even where nothing can be written.
        let token = |it: PathBuf| self.folder.join(it).join("token");
        let given = || self.state().map(token).filter(|it| it.exists());
        set.or_else(|| given().or_else(|| self.writable_state().map(token)).map(Token::File))
    }

    /// Where traces go, if they go anywhere.
    pub(crate) fn telemetry(
        &self,
        settings: &TelemetrySettings,
    ) -> Result<Option<telemetry::Config>, String> {
        telemetry::Config::of(settings, |name| self.variables.get(name).cloned())
    }

    /// Where the last good list of an agent file's tools is kept.
    pub(crate) fn remembered(&self, file: &Path) -> Option<Remembered> {
        if agent_input::is_standard_input(file) {
            return None;
        }
        let file = self.folder.join(file);
        let file = file.canonicalize().unwrap_or(file);
        self.writable_state().map(|it| Remembered::new(&it.join("catalogs"), &file))
    }

    /// Where short-lived folders are made.
    pub(crate) fn scratch(&self) -> PathBuf {
        // Not in a folder that everybody may write to: npm looks upwards for packages and would find a stranger's.
        self.writable_state().map_or_else(env::temp_dir, |it| it.join("scratch"))
    }

    /// What holds the processes of servers together: this program. On Linux it is found even when its file was replaced.
    pub(crate) fn supervisor(&self) -> Option<PathBuf> {
        let itself = PathBuf::from("/proc/self/exe");
        if itself.exists() { Some(itself) } else { env::current_exe().ok() }
    }

    /// The path of this program, for others to start it by.
    pub(crate) fn program(&self) -> Option<PathBuf> {
        env::current_exe().ok()
    }

    /// The absolute path of a program on PATH.
    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        find_program(name, self.variables.get("PATH")?)
    }
}

/// What to supervise, if that is what this process was started for.
#[cfg(target_os = "linux")]
pub(crate) fn supervised() -> Option<impl Iterator<Item = std::ffi::OsString>> {
    let mut words = env::args_os().skip(1);
    (words.next()? == wharf_mcp::stdio::SUPERVISE).then_some(words)
}

/// Whether a JSON document is wanted, where what was typed makes no sense otherwise.
pub(crate) fn is_json_wanted() -> bool {
    env::args_os().any(|it| it == "--json")
}

/// What was probably meant by an address that names no database. Of the address only its first word is repeated: the rest
/// may hold a password.
fn hint(address: &str) -> String {
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

/// The day it is here, as YYYY-MM-DD.
pub(crate) fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

/// Whether colour is unwelcome everywhere.
pub(crate) fn no_colour() -> bool {
    env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
}
